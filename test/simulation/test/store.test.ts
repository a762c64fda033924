/** The store's faults, one by one: what was carried out, what the caller is told, and how often a statement is sent again. */
import { assert, describe, it } from "@effect/vitest"
import { Ledger, SpendCap } from "@purser/core"
import { chargeFor } from "@purser/testkit"
import { Context, Effect, Layer, Result } from "effect"
import { Kernel } from "../src/Kernel.ts"
import { Process } from "../src/Process.ts"
import { rngOf } from "../src/Rng.ts"
import { type SimFault, scenarioOf } from "../src/Scenario.ts"
import { capOf, ledgerOf } from "../src/Store.ts"
import { Storm } from "../src/Storm.ts"

const request = (customer: number) => chargeFor(`cust_${customer}`, "2026-07")

/** Processes over one store in a world with these faults. */
const inWorld = (faults: ReadonlyArray<SimFault>, test: (store: {
  readonly ledger: Ledger["Service"]
  readonly cap: SpendCap["Service"]
  /** The ledger as a process of this name sees it. */
  readonly seenBy: (name: string) => Ledger["Service"]
  readonly capSeenBy: (name: string) => SpendCap["Service"]
}) => Effect.Effect<void, unknown>) =>
  Effect.promise(() => {
    const kernel = new Kernel(rngOf("store"), {})
    return kernel.run(Effect.scoped(Effect.gen(function*() {
      const storm = new Storm(kernel, { ...scenarioOf("1"), faults }, false)
      const stores = yield* Layer.build(Layer.mergeAll(Ledger.layerMemory, SpendCap.layerMemory))
      const ledger = Context.get(stores, Ledger)
      const cap = Context.get(stores, SpendCap)
      const processOf = (name: string) => new Process(name, rngOf(name))
      yield* Effect.orDie(test({
        ledger,
        cap,
        seenBy: (name) => ledgerOf(processOf(name), storm, ledger, undefined),
        capSeenBy: (name) => capOf(processOf(name), storm, cap, { isSameStore: false, takesUndoneForDone: false })
      }))
    })), 10_000)
  })

const says = <A, E>(call: Effect.Effect<A, E>) => Effect.map(Effect.result(call), (result) => Result.isSuccess(result) ? "done" : "away")

describe("a serialization failure", () => {
  it.effect("is not seen by the engine while the driver sends the statement again, which is eight times", () =>
    inWorld([{ kind: "serialization", nth: 1, times: 8 }], ({ ledger, seenBy }) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* says(seenBy("one").claim(request(1), "one")), "done")
        assert.strictEqual((yield* ledger.find(request(1).chargeKey))?.state, "claimed")
      })))

  it.effect("has written nothing when the driver gives up", () =>
    inWorld([{ kind: "serialization", nth: 1, times: 9 }, { kind: "serialization", nth: 3, times: 9 }], ({ cap, capSeenBy, ledger, seenBy }) =>
      Effect.gen(function*() {
        const one = seenBy("one")
        assert.strictEqual(yield* says(one.claim(request(1), "one")), "away")
        assert.isUndefined(yield* ledger.find(request(1).chargeKey))
        assert.strictEqual(yield* says(one.claim(request(1), "one")), "done")
        yield* cap.open({ ...request(1), expectedMinor: 1_000_000n, headroomPercent: 100 })
        const room = { ...request(1), chargeKey: request(1).chargeKey, attempt: 1 }
        assert.strictEqual(yield* says(capSeenBy("one").reserve(room)), "away")
        assert.deepStrictEqual((yield* cap.report()).map(({ reservedMinor }) => reservedMinor), [0n])
        assert.strictEqual(yield* says(capSeenBy("one").reserve(room)), "done")
      })))
})

describe("a failover", () => {
  const dies = { kind: "failover", atMs: 1000, forMs: 5000, underWay: 1 } as const

  it.effect("carries out what was under way without an answer, and nothing until the standby has taken over", () =>
    inWorld([dies], ({ ledger, seenBy }) =>
      Effect.gen(function*() {
        const one = seenBy("one")
        assert.strictEqual(yield* says(one.claim(request(1), "one")), "done")
        yield* Effect.sleep(1000)
        assert.deepStrictEqual([yield* says(one.claim(request(2), "one")), yield* says(one.claim(request(3), "one"))], ["away", "away"])
        assert.strictEqual((yield* ledger.find(request(2).chargeKey))?.state, "claimed")
        assert.isUndefined(yield* ledger.find(request(3).chargeKey))
        yield* Effect.sleep(5000)
        assert.strictEqual(yield* says(one.claim(request(3), "one")), "done")
      })))

  it.effect("leaves whoever stood still with one connection that leads nowhere, and nobody who came later", () =>
    inWorld([dies], ({ ledger, seenBy }) =>
      Effect.gen(function*() {
        const one = seenBy("one")
        yield* one.claim(request(1), "one")
        yield* Effect.sleep(7000)
        assert.strictEqual(yield* says(seenBy("two").claim(request(2), "two")), "done")
        assert.strictEqual(yield* says(one.claim(request(3), "one")), "away")
        assert.isUndefined(yield* ledger.find(request(3).chargeKey))
        assert.strictEqual(yield* says(one.claim(request(3), "one")), "done")
      })))
})
