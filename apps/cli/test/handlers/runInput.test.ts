/** A file's periods held against the day on which it is read. */
import { NodeServices } from "@effect/platform-node"
import { assert, describe, layer } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { TestClock } from "effect/testing"
import { noNotes, outOfTimeTexts, runRows } from "../../src/handlers/runInput.ts"

const path = `${import.meta.dirname}/../input/fixtures/H1-future.csv`
const notOver = "2026-11 is not over yet: allow it by name with --allow-period, or with --yes"
const longOver = "2025-10 is over for more than a year: allow it by name with --allow-period, or with --yes"

/** Reads the file on 30 November 2026. */
const read = (options: { readonly skipInvalid: boolean; readonly allow: ReadonlyArray<string> }) =>
  Effect.gen(function*() {
    yield* TestClock.setTime(Date.UTC(2026, 10, 30, 12))
    const notes = noNotes()
    const rows = yield* Effect.result(Stream.runCollect(runRows(path, { skipInvalid: options.skipInvalid, allowPeriods: new Set(options.allow) }, notes)))
    return { notes, rows }
  })

describe("H1: a file with a period to come, one under way and one long past", () => {
  layer(NodeServices.layer)((it) => {
    it.effect("is refused with all three at once", () =>
      Effect.gen(function*() {
        const { rows } = yield* read({ skipInvalid: false, allow: [] })
        if (rows._tag === "Success") return assert.fail("the file was taken")
        assert.deepStrictEqual(rows.failure.message.split("\n"), [
          `${path}: line 2, column billing_period: "2027-10" has not begun; --allow-period 2027-10 bills it all the same`,
          "1 row is refused; nothing was charged. Mend the file, or leave the bad rows out with --skip-invalid.",
          notOver,
          longOver
        ])
      }))

    it.effect("names the two that a person can still allow when the first is left out", () =>
      Effect.gen(function*() {
        const { notes, rows } = yield* read({ skipInvalid: true, allow: [] })
        assert.strictEqual(rows._tag, "Success")
        assert.deepStrictEqual(outOfTimeTexts(notes), [notOver, longOver])
      }))

    it.effect("names none of those that were allowed by name", () =>
      Effect.gen(function*() {
        const { notes, rows } = yield* read({ skipInvalid: false, allow: ["2027-10", "2026-11", "2025-10"] })
        assert.strictEqual(rows._tag, "Success")
        assert.deepStrictEqual(outOfTimeTexts(notes), [])
        assert.deepStrictEqual([...notes.allowed].sort(), ["2025-10", "2026-11", "2027-10"])
      }))
  })
})
