/** Records of a CSV file to entries: the first record that is not blank is the header, every other one is a row. */
import { Result } from "effect"
import { type CsvHeader, readHeader } from "./CsvHeader.ts"
import type { CsvRecord } from "./CsvScanner.ts"
import type { Cells, InputOptions } from "./InputOptions.ts"
import type { RecordReader, Refuse } from "./RecordReader.ts"
import { makeRowReader } from "./RowReader.ts"

/** Reads the records of one file. */
export const makeCsvRows = (options: InputOptions, refuse: Refuse): RecordReader<CsvRecord> => {
  const readRow = makeRowReader(options)
  let header: CsvHeader | undefined
  return {
    end: () => undefined,
    read: (record) => {
      if (record.cells.every((cell) => cell === "" || cell.trim() === "")) return { _tag: "Blank", line: record.line }
      if (header === undefined) {
        const read = readHeader(record, options)
        if (Result.isFailure(read)) return read.failure
        header = read.success
        return undefined
      }
      const { positions, width } = header
      if (record.cells.length !== width) {
        return refuse(record, null, record.cells.join(options.delimiter ?? ","), "CellCount",
          `has ${record.cells.length} cells, the header has ${width}`)
      }
      const cells: Cells = {}
      for (const [column, position] of positions) cells[column] = record.cells[position] || undefined
      const row = readRow(record.line, cells)
      if (Result.isSuccess(row)) return row.success
      const { cell, code, column, hint } = row.failure
      return refuse(record, { column, index: (positions.get(column) ?? 0) + 1 }, cell, code, hint)
    }
  }
}
