import { Cause, Effect, Exit, FileSystem, Layer, Stdio, Stream } from "effect"
import type { InputError } from "../../src/input/InputError.ts"
import { InputFile } from "../../src/input/InputFile.ts"
import type { InputOptions } from "../../src/input/InputOptions.ts"
import type { InputRefusal } from "../../src/input/InputRefusal.ts"
import type { InputEntry, InputRow } from "../../src/input/InputRow.ts"

/** All that reading yields: the entries, and the error that ended it. */
export interface Read {
  readonly entries: ReadonlyArray<InputEntry>
  readonly error: InputError | undefined
}

/** Drains a stream of entries; a defect is not a result and stays one. */
export const drain = <R>(stream: Stream.Stream<InputEntry, InputError, R>): Effect.Effect<Read, never, R> =>
  Effect.gen(function*() {
    const entries: Array<InputEntry> = []
    const exit = yield* Effect.exit(Stream.runForEach(stream, (entry) => Effect.sync(() => entries.push(entry))))
    if (Exit.isSuccess(exit)) return { entries, error: undefined }
    const error = Cause.findErrorOption(exit.cause)
    return error._tag === "Some" ? { entries, error: error.value } : yield* Effect.die(Cause.squash(exit.cause))
  })

/** The bytes of a text, or the bytes. */
export const bytesOf = (content: string | Uint8Array): Uint8Array =>
  typeof content === "string" ? new TextEncoder().encode(content) : content

/** Bytes cut into pieces of these lengths, again and again until nothing is left. */
export const cut = (bytes: Uint8Array, lengths: ReadonlyArray<number>): ReadonlyArray<Uint8Array> => {
  const pieces: Array<Uint8Array> = []
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const length = Math.max(1, lengths[turn % lengths.length] ?? bytes.length)
    pieces.push(bytes.slice(at, at + length))
    at += length
  }
  return pieces
}

/** Reads a content as the file of this name, cut into pieces. */
export const read = (
  content: string | Uint8Array,
  options: InputOptions = {},
  { file = "invoices.csv", lengths = [] as ReadonlyArray<number> } = {}
): Effect.Effect<Read> => drain(InputFile.fromBytes(Stream.fromIterable(cut(bytesOf(content), lengths)), file, options))

export const readNdjson = (content: string | Uint8Array, options: InputOptions = {}, lengths: ReadonlyArray<number> = []) =>
  read(content, options, { file: "invoices.ndjson", lengths })

/** One line per entry, short enough for a table of expectations. */
export const short = (entry: InputEntry): string => {
  switch (entry._tag) {
    case "Blank":
      return `${entry.line} blank`
    case "Refusal":
      return `${entry.line === entry.endLine ? entry.line : `${entry.line}-${entry.endLine}`} refused ${entry.column ?? "row"}${
        entry.columnIndex === null ? "" : `#${entry.columnIndex}`
      } ${entry.code}`
    case "Row": {
      const { amountMinor, billingPeriod, currency, customerId, item } = entry.request
      return `${entry.line} ${customerId} ${billingPeriod} ${amountMinor} ${currency} ${item ?? "-"}`
    }
  }
}

export const shorts = ({ entries, error }: Read): ReadonlyArray<string> =>
  error === undefined ? entries.map(short) : [...entries.map(short), `error ${error.reason._tag}`]

export const rowsOf = ({ entries }: Read): ReadonlyArray<InputRow> => entries.filter((entry) => entry._tag === "Row")
export const refusalsOf = ({ entries }: Read): ReadonlyArray<InputRefusal> => entries.filter((entry) => entry._tag === "Refusal")

export const header = "customer_id,billing_period,amount,currency,stripe_customer_id,payment_method,item"
export const goodRow = "acme,2026-07,12.50,USD,cus_T001,pm_T001,base"

/** A platform that has nothing but this standard input. */
export const stdinOnly = (content: string): Layer.Layer<FileSystem.FileSystem | Stdio.Stdio> =>
  Layer.mergeAll(FileSystem.layerNoop({}), Stdio.layerTest({ stdin: Stream.make(bytesOf(content)) }))
