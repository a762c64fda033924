/** Plain tar archives of folders and files with short names, as PGlite takes them. No other kind of entry. */
import { Buffer } from "node:buffer"

/** One entry; `data` is absent for a folder. */
export interface TarEntry {
  readonly path: string
  readonly data: Buffer | undefined
}

const block = 512
const text = (header: Buffer, from: number, to: number): string => {
  const end = header.indexOf(0, from)
  return header.toString("utf8", from, end === -1 || end > to ? to : end)
}

/** The entries of an archive, with relative paths. Throws on one that is cut off, or that would leave its folder. */
export const readTar = (archive: Buffer): ReadonlyArray<TarEntry> => {
  const entries: Array<TarEntry> = []
  let at = 0
  while (at + block <= archive.length && archive[at] !== 0) {
    const header = archive.subarray(at, at + block)
    const size = Number.parseInt(text(header, 124, 136).trim(), 8)
    const prefix = text(header, 345, 500)
    const path = `${prefix === "" ? "" : `${prefix}/`}${text(header, 0, 100)}`.replace(/^\/+/, "")
    const data = archive.subarray(at + block, at + block + size)
    if (!Number.isInteger(size) || data.length !== size || path.split("/").includes("..")) throw new Error(`the archive is damaged at "${path}"`)
    if (path !== "") entries.push({ path, data: text(header, 156, 157) === "5" ? undefined : data })
    at += block + Math.ceil(size / block) * block
  }
  return entries
}

const octal = (value: number, length: number): string => `${value.toString(8).padStart(length - 1, "0")}\0`

const headerOf = ({ data, path }: TarEntry): Buffer => {
  const header = Buffer.alloc(block)
  if (Buffer.byteLength(path) > 100) throw new Error(`the name "${path}" is too long for the archive`)
  header.write(path, 0)
  header.write(octal(data === undefined ? 0o700 : 0o600, 8), 100)
  header.write(octal(0, 8), 108)
  header.write(octal(0, 8), 116)
  header.write(octal(data?.length ?? 0, 12), 124)
  header.write(octal(0, 12), 136)
  header.write(" ".repeat(8), 148)
  header.write(data === undefined ? "5" : "0", 156)
  header.write("ustar\x0000", 257)
  header.write(`${octal(header.reduce((sum, byte) => sum + byte, 0), 7)} `, 148)
  return header
}

/** An archive of these entries; the same entries give the same bytes. Throws on a name of more than 100 bytes. */
export const writeTar = (entries: ReadonlyArray<TarEntry>): Buffer =>
  Buffer.concat([
    ...entries.flatMap((entry) => {
      const data = entry.data ?? Buffer.alloc(0)
      return [headerOf(entry), data, Buffer.alloc((block - data.length % block) % block)]
    }),
    Buffer.alloc(2 * block)
  ])
