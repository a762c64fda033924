import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Tty } from "../../src/ui/Tty.ts"

it.effect("a terminal that does not know its size is one of the usual size, and one that is made smaller is smaller at once", () =>
  Effect.gen(function*() {
    const tty = yield* Tty
    const says = (columns: number | undefined, rows: number | undefined) =>
      Object.entries({ columns, rows }).forEach(([name, value]) => Object.defineProperty(process.stderr, name, { value, configurable: true, writable: true }))
    const before = [process.stderr.columns, process.stderr.rows] as const
    yield* Effect.addFinalizer(() => Effect.sync(() => says(...before)))
    for (const [columns, rows, seen] of [[0, 0, [80, 24]], [undefined, undefined, [80, 24]], [132, 50, [132, 50]], [40, 10, [40, 10]]] as const) {
      says(columns, rows)
      assert.deepStrictEqual<ReadonlyArray<number>>([tty.columns, tty.rows], seen)
    }
  }).pipe(Effect.scoped))
