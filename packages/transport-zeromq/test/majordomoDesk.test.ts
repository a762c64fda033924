import { assert, describe, it } from "@effect/vitest"
import { type Cause, Effect, Queue } from "effect"
import type { Frames } from "@purser/transport-zeromq"
import { majordomoDesk } from "../src/internal/majordomoDesk.ts"

/** The desk's way back for one job, whose answers are sent one turn after the other, and what was sent. */
const oneJob = (turns: number) =>
  Effect.gen(function*() {
    const sent: Array<readonly [final: boolean, text: unknown]> = []
    const desk = majordomoDesk({
      incoming: yield* Queue.unbounded<Frames, Cause.Done>(),
      flush: Effect.void,
      drain: () => Effect.succeed(true),
      handBack: Effect.void,
      job: () => ({
        token: "t",
        body: [],
        answer: (final, body) =>
          Effect.andThen(Effect.replicateEffect(Effect.yieldNow, turns, { discard: true }), Effect.sync(() => void sent.push([final, body[0]])))
      })
    })
    const arrival = yield* desk.open([])
    return arrival._tag === "Arrival" ? { back: arrival.back, sent } : yield* Effect.die("no arrival")
  })

const settled = Effect.replicateEffect(Effect.yieldNow, 500, { discard: true })

describe("answers of a worker", () => {
  it.effect("end with the final one, however slowly those before it leave", () =>
    Effect.gen(function*() {
      for (const turns of [0, 1, 5, 20]) {
        const { back, sent } = yield* oneJob(turns)
        for (const text of ["a", "b", "c"]) {
          yield* back.send(text)
          yield* Effect.replicateEffect(Effect.yieldNow, 6, { discard: true })
        }
        yield* back.send("d")
        yield* back.ended!
        yield* settled
        assert.deepStrictEqual(sent.map(([final]) => final), sent.map((_, index) => index === sent.length - 1))
        assert.deepStrictEqual(sent.map(([, text]) => text).filter((text) => text !== ""), ["a", "b", "c", "d"])
      }
    }))

  it.effect("of one message that is whole leave as the final one alone", () =>
    Effect.gen(function*() {
      const { back, sent } = yield* oneJob(0)
      yield* back.send("all")
      yield* back.ended!
      yield* settled
      assert.deepStrictEqual(sent, [[true, "all"]])
    }))
})
