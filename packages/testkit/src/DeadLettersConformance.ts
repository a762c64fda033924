/** What every store of dead letters keeps to. */
import { type DeadLetter, DeadLetters } from "@purser/core"
import { assert, type Vitest } from "@effect/vitest"
import { Effect, Schedule } from "effect"

const letter = (body: string, transport = "push-pull"): DeadLetter => ({
  transport,
  principal: "alice",
  reason: "MalformedMessage",
  detail: "not JSON",
  body: Buffer.from(body)
})

/** A letter is kept soon: asks until it is. */
const listed = (count: number) =>
  Effect.flatMap(DeadLetters, (letters) => letters.list(100)).pipe(
    Effect.repeat({ until: (all) => all.reduce((sum, { times }) => sum + times, 0) >= count, schedule: Schedule.spaced("10 millis") })
  )

/** Adds the cases to a suite whose store is empty. */
export const deadLettersCases = (it: Vitest.MethodsNonLive<DeadLetters>): void => {
  it.effect("keeps bytes and reason, counts what is equal, and forgets what is discarded", () =>
    Effect.gen(function*() {
      const letters = yield* DeadLetters
      const bytes = Buffer.from([0, 255, 10, 34, 39])
      yield* letters.bury({ ...letter(""), body: bytes, principal: null, detail: "a NUL \0 inside" })
      yield* Effect.forEach([1, 2, 3], () => letters.bury(letter("nonsense")))
      yield* letters.bury(letter("nonsense", "req-rep"))
      const kept = yield* listed(5)
      assert.strictEqual(kept.length, 3)
      const binary = kept.find(({ sizeBytes }) => sizeBytes === bytes.length)!
      assert.deepStrictEqual([...binary.body], [...bytes])
      assert.isNull(binary.principal)
      const repeated = kept.find(({ times }) => times === 3)!
      assert.deepStrictEqual(
        [Buffer.from(repeated.body).toString(), repeated.transport, repeated.principal, repeated.reason, repeated.detail],
        ["nonsense", "push-pull", "alice", "MalformedMessage", "not JSON"]
      )
      assert.isAtLeast(repeated.lastAtMs, repeated.firstAtMs)
      assert.strictEqual(yield* letters.discard([repeated.digest, "of no letter"]), 1)
      assert.notInclude((yield* letters.list(100)).map(({ digest }) => digest), repeated.digest)
      assert.strictEqual((yield* letters.list(1)).length, 1)
    }), 60_000)

  it.effect("cuts a long body and says how long it was", () =>
    Effect.gen(function*() {
      const letters = yield* DeadLetters
      yield* letters.bury(letter("x".repeat(100_000), "long"))
      const kept = yield* Effect.repeat(letters.list(100), { until: (all) => all.some(({ transport }) => transport === "long"), schedule: Schedule.spaced("10 millis") })
      const long = kept.find(({ transport }) => transport === "long")!
      assert.deepStrictEqual([long.sizeBytes, long.body.length], [100_000, 65_536])
    }), 60_000)
}
