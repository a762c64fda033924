/** Tables that are lists of cards where the page is narrow. */
import type { ReactNode } from "react"

/** A column: its name, what it shows, and whether it holds numbers. */
export interface Column<A> {
  readonly name: string
  readonly show: (row: A) => ReactNode
  readonly number?: boolean
  /** Takes what room there is. */
  readonly wide?: boolean
}

interface TableProps<A> {
  readonly label: string
  readonly rows: ReadonlyArray<A>
  readonly columns: ReadonlyArray<Column<A>>
  readonly keyOf: (row: A) => string
  /** Its cards have two columns in a line: for tables of few words. */
  readonly compact?: boolean
}

const classOf = (column: { readonly number?: boolean; readonly wide?: boolean }) => [column.number === true ? "right" : "", column.wide === true ? "wide" : ""].join(" ").trim() || undefined

/** A table with a name. */
export const Table = <A,>({ columns, compact, keyOf, label, rows }: TableProps<A>) => (
  <div className="scroll" tabIndex={0} role="group" aria-label={label}>
    <table className={compact === true ? "cards compact" : "cards"}>
      <thead><tr>{columns.map((column) => <th key={column.name} scope="col" className={classOf(column)}>{column.name}</th>)}</tr></thead>
      <tbody>
        {rows.map((row) => <tr key={keyOf(row)}>{columns.map((column) => <td key={column.name} data-name={column.name} className={classOf(column)}><div>{column.show(row)}</div></td>)}</tr>)}
      </tbody>
    </table>
  </div>
)
