/** Plain tables for terminals: a header, a rule, and columns that are as wide as their widest cell. */
import { plainText } from "@purser/core"

/** Lines of a table; numbers stand right when `right` names their column. */
export const table = (header: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>, right: ReadonlyArray<number> = []): string => {
  const shown = rows.map((row) => row.map(plainText))
  const widths = header.map((title, column) => Math.max(title.length, ...shown.map((row) => row[column]?.length ?? 0)))
  const line = (cells: ReadonlyArray<string>) =>
    cells.map((cell, column) => right.includes(column) ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)).join("  ").trimEnd()
  return [line(header), widths.map((width) => "─".repeat(width)).join("  "), ...shown.map(line)].join("\n")
}
