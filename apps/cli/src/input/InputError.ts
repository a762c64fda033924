/**
 * What ends the reading of a billing file: it cannot be opened, it is not the text that it should be, or what follows
 * can no longer be told apart into rows. Nothing is charged from a file that ends so.
 */
import { Schema } from "effect"
import { quoted } from "./quoted.ts"

const id = <const Name extends string>(name: Name) => `@purser/cli/input/InputError/${name}` as const

/** There is no such file. */
export class FileNotFound extends Schema.TaggedError<FileNotFound>(id("FileNotFound"))("FileNotFound", {}) {
  override get message() {
    return "no such file"
  }
}

/** The path is a directory. */
export class NotAFile extends Schema.TaggedError<NotAFile>(id("NotAFile"))("NotAFile", {}) {
  override get message() {
    return "is a directory, expected a CSV or NDJSON file"
  }
}

/** The file may not be read by this user. */
export class NoPermission extends Schema.TaggedError<NoPermission>(id("NoPermission"))("NoPermission", {}) {
  override get message() {
    return "no permission to read this file"
  }
}

/** The operating system gave up while the file was read. */
export class ReadFailed extends Schema.TaggedError<ReadFailed>(id("ReadFailed"))("ReadFailed", {
  detail: Schema.String
}) {
  override get message() {
    return `could not be read: ${this.detail}`
  }
}

/** The bytes are not UTF-8 text. `line` is the physical line of the first byte that is not. */
export class NotText extends Schema.TaggedError<NotText>(id("NotText"))("NotText", {
  kind: Schema.Literals(["Utf16", "Spreadsheet", "Compressed", "InvalidUtf8", "Nul"]),
  line: Schema.Int
}) {
  override get message() {
    switch (this.kind) {
      case "Utf16":
        return "is UTF-16 text; save it as \"CSV UTF-8\""
      case "Spreadsheet":
        return "is a spreadsheet or zip file, not text; export it as \"CSV UTF-8\""
      case "Compressed":
        return "is a gzip file; unpack it first, for example: gzip -dc FILE | purser run -"
      case "InvalidUtf8":
        return `line ${this.line}: not UTF-8; save the file as "CSV UTF-8" (it may be Latin-1 or Windows-1252)`
      case "Nul":
        return `line ${this.line}: holds a NUL byte; the file is damaged or is UTF-16`
    }
  }
}

/** The header, or the mapping of column names, cannot be used. `columns` are the names in question. */
export class HeaderRefused extends Schema.TaggedError<HeaderRefused>(id("HeaderRefused"))("HeaderRefused", {
  line: Schema.Int,
  problem: Schema.Literals([
    "WrongDelimiter", "MissingColumns", "DuplicateColumns", "BothAmounts", "MisspeltColumns", "UnknownMapping"
  ]),
  columns: Schema.Array(Schema.String),
  hint: Schema.String
}) {
  override get message() {
    return `line ${this.line}: ${this.hint}`
  }
}

/** A quote where none may stand, or one that is never closed. `line` is where it stands. */
export class BrokenQuotes extends Schema.TaggedError<BrokenQuotes>(id("BrokenQuotes"))("BrokenQuotes", {
  problem: Schema.Literals(["Stray", "Unclosed"]),
  line: Schema.Int,
  columnIndex: Schema.Int
}) {
  override get message() {
    return `line ${this.line}, column ${this.columnIndex}: ${
      this.problem === "Stray"
        ? "a quote inside a cell; quote the whole cell and double the quotes in it (\"a \"\"b\"\"\")"
        : "this quote is never closed"
    }`
  }
}

/** One row is longer than any real one. */
export class RowTooLarge extends Schema.TaggedError<RowTooLarge>(id("RowTooLarge"))("RowTooLarge", {
  line: Schema.Int,
  limit: Schema.Int
}) {
  override get message() {
    return `line ${this.line}: the row that begins here is longer than ${this.limit} characters; is a quote in it never closed?`
  }
}

/** The file holds no row. An empty run is not a success. */
export class NothingToCharge extends Schema.TaggedError<NothingToCharge>(id("NothingToCharge"))("NothingToCharge", {
  blankRows: Schema.Int
}) {
  override get message() {
    return `nothing to charge: the file has no rows${this.blankRows > 0 ? ` (${this.blankRows} blank ones)` : ""}`
  }
}

export const InputErrorReason = Schema.Union([
  FileNotFound, NotAFile, NoPermission, ReadFailed, NotText, HeaderRefused, BrokenQuotes, RowTooLarge, NothingToCharge
])
export type InputErrorReason = typeof InputErrorReason.Type

/** Reading ended for `reason`. `file` is the path as it was given, `-` for standard input. */
export class InputError extends Schema.TaggedError<InputError>("@purser/cli/input/InputError")("InputError", {
  file: Schema.String,
  reason: InputErrorReason
}) {
  override get message() {
    return `${this.file === "-" ? "standard input" : quotedPath(this.file)}: ${this.reason.message}`
  }
  get isRetryable() {
    return false
  }
}

const quotedPath = (path: string) => /^[\w./\\:@+~ -]+$/.test(path) ? path : quoted(path)
