/** What the rows of both formats have in common: a record in, an entry out. */
import type { InputErrorReason } from "./InputError.ts"
import type { InputRefusal, RefusalCode } from "./InputRefusal.ts"
import type { InputEntry } from "./InputRow.ts"

/** Turns records into entries. A header yields none; a failure is one that no later row can mend. */
export interface RecordReader<R> {
  readonly read: (record: R) => InputEntry | InputErrorReason | undefined
  /** Checked when the file is over. */
  readonly end: () => InputErrorReason | undefined
}

/** Where a refusal stands. */
export type Refuse = (
  lines: { readonly line: number; readonly endLine: number },
  at: { readonly column: string; readonly index: number | null } | null,
  cell: string,
  code: RefusalCode,
  hint: string
) => InputRefusal
