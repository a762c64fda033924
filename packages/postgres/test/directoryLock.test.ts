import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { acquireDirectoryLock } from "../src/internal/directoryLock.ts"
import { temporaryFolder } from "./support/folder.ts"
import { startProgram } from "./support/program.ts"

it.live("lets exactly one of 20 processes in, and the next one after kill -9", () =>
  Effect.gen(function*() {
    const folder = yield* temporaryFolder
    const starters = yield* Effect.forEach(Array.from({ length: 20 }), () => startProgram("takeLock.ts", folder), { concurrency: "unbounded" })
    yield* Effect.forEach(starters, (starter) => starter.line, { concurrency: "unbounded" })
    yield* Effect.forEach(starters, (starter) => starter.send("go"), { concurrency: "unbounded" })
    const answers = yield* Effect.forEach(starters, (starter) => starter.line, { concurrency: "unbounded" })
    const winners = starters.filter((_, index) => answers[index]!.startsWith("won"))
    assert.strictEqual(winners.length, 1, answers.join(", "))

    const held = yield* Effect.flip(Effect.scoped(acquireDirectoryLock(folder, "db")))
    assert.strictEqual(held._tag, "LockHeld")
    yield* winners[0]!.kill
    yield* Effect.scoped(acquireDirectoryLock(folder, "db"))
  }), 60_000)

it.live("excludes this process from itself, and is free again with the scope", () =>
  Effect.gen(function*() {
    const folder = yield* temporaryFolder
    const second = Effect.scoped(acquireDirectoryLock(folder, "db"))
    yield* Effect.scoped(Effect.gen(function*() {
      yield* acquireDirectoryLock(folder, "db")
      const error = yield* Effect.flip(second)
      assert.strictEqual(error._tag === "LockHeld" ? error.owner?.pid : undefined, process.pid)
      // A refused attempt must not have dropped the lock of this process.
      const other = yield* startProgram("takeLock.ts", folder)
      yield* other.line
      yield* other.send("go")
      assert.strictEqual(yield* other.line, `lost ${process.pid}`)
    }))
    yield* second
  }), 60_000)

it.live("says why a folder cannot be locked", () =>
  Effect.gen(function*() {
    for (const folder of ["/dev/null/no-folder", ...process.platform === "linux" ? ["/proc/no-folder", "/proc/no-folder/within"] : []]) {
      const error = yield* Effect.flip(Effect.scoped(acquireDirectoryLock(folder, "db")))
      assert.strictEqual(error._tag, "LockFailed", folder)
    }
  }))
