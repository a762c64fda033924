/** Files that are put in their place when they are whole, and what stands there before. */
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, type Scope } from "effect"
import { execFileSync } from "node:child_process"
import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { Notes } from "../../src/ui/Notes.ts"
import { openLines } from "../../src/ui/LinesFile.ts"
import { checkWhole } from "../../src/ui/WholeFile.ts"

const live = (title: string, test: (at: (name: string) => string) => Effect.Effect<void, unknown, FileSystem.FileSystem | Scope.Scope>) =>
  it.live(title, () =>
    Effect.gen(function*() {
      const folder = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped()
      yield* test((name) => join(folder, name))
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)))

/** Writes one line, and finishes. */
const written = (path: string, line = "new") =>
  Effect.scoped(Effect.gen(function*() {
    yield* checkWhole("report", path)
    const file = yield* openLines("report", path)
    yield* file.write(line)
    yield* file.finish
  }))

const textOf = (path: string) => readFileSync(path, "utf8")

describe("WholeFile", () => {
  live("files that are named like its own unfinished one are somebody else's", (at) =>
    Effect.gen(function*() {
      writeFileSync(at("july.csv.partial"), "bills")
      writeFileSync(at("july.csv.partial2"), "more bills")
      yield* written(at("july.csv"))
      assert.deepStrictEqual(readdirSync(at("")).toSorted(), ["july.csv", "july.csv.partial", "july.csv.partial2"])
      assert.deepStrictEqual(["july.csv", "july.csv.partial", "july.csv.partial2"].map((name) => textOf(at(name))), ["new\n", "bills", "more bills"])
    }))

  live("nothing is left of one that is broken off, and what it was to replace stands", (at) =>
    Effect.gen(function*() {
      writeFileSync(at("report.csv"), "old")
      yield* Effect.scoped(Effect.andThen(openLines("report", at("report.csv")), (file) => {
        assert.strictEqual(readdirSync(at("")).length, 2)
        return file.write("half")
      }))
      assert.deepStrictEqual([readdirSync(at("")), textOf(at("report.csv"))], [["report.csv"], "old"])
    }))

  live("a link stays, and what it leads to is replaced, with who may read it", (at) =>
    Effect.gen(function*() {
      mkdirSync(at("kept"))
      writeFileSync(at("kept/report.csv"), "old")
      chmodSync(at("kept/report.csv"), 0o600)
      symlinkSync("kept/report.csv", at("first"))
      symlinkSync(at("first"), at("second"))
      yield* written(at("second"))
      assert.isTrue(lstatSync(at("second")).isSymbolicLink() && lstatSync(at("first")).isSymbolicLink())
      assert.deepStrictEqual([textOf(at("kept/report.csv")), statSync(at("kept/report.csv")).mode & 0o777], ["new\n", 0o600])
      assert.deepStrictEqual(readdirSync(at("kept")), ["report.csv"])
    }))

  live("a link to nothing yet makes what it names", (at) =>
    Effect.gen(function*() {
      mkdirSync(at("kept"))
      symlinkSync("kept", at("folder"))
      symlinkSync("../report.csv", at("kept/link"))
      yield* written(at("folder/link"))
      assert.deepStrictEqual([textOf(at("report.csv")), lstatSync(at("kept/link")).isSymbolicLink()], ["new\n", true])
    }))

  live("a device is written to as it stands", (at) =>
    Effect.gen(function*() {
      writeFileSync(at("device"), "before\n")
      const { ino } = statSync(at("device"))
      const fs = yield* FileSystem.FileSystem
      const stat: typeof fs.stat = (path) => Effect.map(fs.stat(path), (info) => path.endsWith("/device") ? { ...info, type: "CharacterDevice" } : info)
      yield* Effect.provideService(written(at("device")), FileSystem.FileSystem, { ...fs, stat })
      assert.deepStrictEqual([statSync(at("device")).ino, textOf(at("device")), readdirSync(at(""))], [ino, "before\nnew\n", ["device"]])
    }))

  live("a pipe is waited for until somebody reads it, who gets all of it", (at) =>
    Effect.gen(function*() {
      execFileSync("mkfifo", [at("pipe")])
      const long = "x".repeat(300_000)
      let reading: Promise<string> | undefined
      // Nobody reads until it is said that somebody is waited for.
      const onNote = (text: string) => Effect.sync(() => {
        assert.include(text, "waiting until somebody reads")
        reading = readFile(at("pipe"), "utf8")
      })
      yield* Effect.provideService(written(at("pipe"), long), Notes, onNote)
      assert.isTrue(`${long}\n` === (yield* Effect.promise(() => reading!)))
      assert.deepStrictEqual([readdirSync(at("")), lstatSync(at("pipe")).isFIFO()], [["pipe"], true])
    }))

  live("folders, circles of links and folders that are not there are refused by the flag's name", (at) =>
    Effect.gen(function*() {
      symlinkSync("two", at("one"))
      symlinkSync("one", at("two"))
      for (const [name, why] of [[".", "is a folder"], ["one", "lead in a circle"], ["absent/report.csv", "cannot be written"]] as const) {
        for (const open of [checkWhole("report", at(name)), Effect.scoped(openLines("report", at(name)))]) {
          const error = yield* Effect.flip(open as Effect.Effect<unknown, Error, FileSystem.FileSystem>)
          assert.include(error.message, `--report ${at(name)} `)
          assert.include(error.message, why)
        }
      }
    }))

  if (process.platform === "linux") {
    live("a disk that is full ends no work that is written of, and is told at the end", () =>
      Effect.gen(function*() {
        const file = yield* openLines("report", "/dev/full")
        yield* file.write("first")
        yield* file.write("second")
        const error = yield* Effect.flip(file.finish)
        assert.deepStrictEqual(error.status, 2)
        assert.match(error.message, /^--report \/dev\/full could not be written to its end: /)
      }))
  }
})
