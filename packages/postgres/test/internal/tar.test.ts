import { assert, describe, it } from "@effect/vitest"
import { Buffer } from "node:buffer"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { readTar, writeTar } from "../../src/internal/pglite/tar.ts"

const entries = [
  { path: "base/", data: undefined },
  { path: "base/empty", data: Buffer.alloc(0) },
  { path: "base/one block", data: Buffer.alloc(512, 7) },
  { path: "base/PG_VERSION", data: Buffer.from("18\n") }
]

describe("archives", () => {
  it("are read as they were written", () => {
    assert.deepStrictEqual(readTar(writeTar(entries)).map(({ data, path }) => ({ path, data: data === undefined ? undefined : Buffer.from(data) })), entries)
  })

  it("are plain tar to others", () => {
    const folder = Fs.mkdtempSync(Path.join(Os.tmpdir(), "purser-tar-"))
    const file = Path.join(folder, "a.tar")
    Fs.writeFileSync(file, writeTar(entries))
    execFileSync("tar", ["-xf", file, "-C", folder])
    assert.strictEqual(Fs.readFileSync(Path.join(folder, "base/PG_VERSION"), "utf8"), "18\n")
    assert.deepStrictEqual(Fs.readFileSync(Path.join(folder, "base/one block")), Buffer.alloc(512, 7))
    Fs.rmSync(folder, { recursive: true })
  })

  it("that are cut off, or leave their folder, are refused", () => {
    assert.throws(() => readTar(writeTar(entries).subarray(0, 3 * 512 + 100)), /damaged/)
    assert.throws(() => readTar(writeTar([{ path: "../outside", data: Buffer.from("x") }])), /damaged/)
    assert.throws(() => writeTar([{ path: "x".repeat(101), data: undefined }]), /too long/)
  })
})
