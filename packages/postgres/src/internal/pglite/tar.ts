/** Reads the plain tar archives that PGlite dumps: folders and files with short names. It reads no other kind of entry. */
import type { Buffer } from "node:buffer"

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
