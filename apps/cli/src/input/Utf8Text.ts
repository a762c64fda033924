/**
 * Bytes to text, piece by piece, in the one encoding that is accepted: UTF-8 with or without a byte-order mark.
 *
 * It never replaces a bad byte: text ends before it and the piece says so. Where the bytes are cut makes no difference:
 * a character that is cut waits for its rest, and a carriage return waits for the line feed that may follow.
 */
import { isUtf8 } from "node:buffer"
import type { NotText } from "./InputError.ts"

/** Text, and what stopped it. */
export interface TextPiece {
  readonly text: string
  readonly flaw: NotText["kind"] | undefined
}

/** A decoder for one file. */
export interface Utf8Text {
  readonly push: (bytes: Uint8Array) => TextPiece
  readonly end: () => TextPiece
}

const signatures: ReadonlyArray<readonly [ReadonlyArray<number>, NotText["kind"]]> = [
  [[0xff, 0xfe], "Utf16"],
  [[0xfe, 0xff], "Utf16"],
  [[0x50, 0x4b, 0x03, 0x04], "Spreadsheet"],
  [[0xd0, 0xcf, 0x11, 0xe0], "Spreadsheet"],
  [[0x1f, 0x8b], "Compressed"]
]
const longestSignature = 4
const nothing = Buffer.alloc(0)

/** How many bytes at the end begin a character that is not complete. */
const openTail = (bytes: Uint8Array): number => {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back]!
    if ((byte & 0xc0) === 0x80) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return length > back ? back : 0
  }
  return 0
}

const complete = (bytes: Buffer): Buffer => bytes.subarray(0, bytes.length - openTail(bytes))

/** The longest valid beginning, found by halving: `isUtf8` reads gigabytes a second and tells no position. */
const validPrefix = (bytes: Buffer): Buffer => {
  let good = 0
  let bad = bytes.length
  while (bad - good > 1) {
    const middle = (good + bad) >>> 1
    if (isUtf8(complete(bytes.subarray(0, middle)))) good = middle
    else bad = middle
  }
  return complete(bytes.subarray(0, good))
}

/** A decoder in its first state. */
export const makeUtf8Text = (): Utf8Text => {
  let carry: Buffer = nothing
  let heldReturn = ""
  let begun = false

  const piece = (bytes: Buffer, final: boolean): TextPiece => {
    const whole = final ? bytes : complete(bytes)
    const valid = isUtf8(whole)
    carry = whole.length === bytes.length ? nothing : Buffer.from(bytes.subarray(whole.length))
    let text = heldReturn + (valid ? whole : validPrefix(whole)).toString("utf8")
    heldReturn = ""
    const nul = text.indexOf("\0")
    if (nul >= 0) return { text: text.slice(0, nul), flaw: "Nul" }
    if (!valid) return { text, flaw: "InvalidUtf8" }
    if (!final && text.endsWith("\r")) {
      heldReturn = "\r"
      text = text.slice(0, -1)
    }
    return { text, flaw: undefined }
  }

  const read = (bytes: Buffer, final: boolean): TextPiece => {
    if (begun) return piece(bytes, final)
    if (bytes.length < longestSignature && !final) {
      carry = Buffer.from(bytes)
      return { text: "", flaw: undefined }
    }
    begun = true
    for (const [signature, flaw] of signatures) {
      if (signature.every((byte, index) => bytes[index] === byte)) return { text: "", flaw }
    }
    const marked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
    return piece(marked ? bytes.subarray(3) : bytes, final)
  }

  return {
    push: (bytes) => {
      const next = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      return read(carry.length === 0 ? next : Buffer.concat([carry, next]), false)
    },
    end: () => read(carry, true)
  }
}
