/** A run that sends to workers elsewhere does not start in the form of workers that keep no ledger of it. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import { transportOf } from "../../src/handlers/runTransport.ts"

const built = (workers: number, form?: string) =>
  Effect.scoped(Layer.build(transportOf({ transport: "req-rep", endpoint: undefined, workers }))).pipe(
    Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(form === undefined ? {} : { PURSER_CLIENT_FORM: form }))),
    Effect.result
  )

describe("the transport of a run", () => {
  it.effect("is refused in the plain form where the workers are elsewhere", () =>
    Effect.gen(function*() {
      const refused = yield* built(0, "plain")
      assert.strictEqual(refused._tag, "Failure")
      if (refused._tag === "Success" || refused.failure._tag !== "CommandFailed") return assert.fail("it was refused by something else")
      assert.strictEqual(refused.failure.status, 1)
      assert.include(refused.failure.text, "PURSER_CLIENT_FORM=plain")
      assert.deepStrictEqual([(yield* built(0))._tag, (yield* built(0, "joined"))._tag, (yield* built(1, "plain"))._tag], ["Success", "Success", "Success"])
    }))
})
