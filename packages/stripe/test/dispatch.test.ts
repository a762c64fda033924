/** One gateway out of several: what is new goes the chosen way, and every question about an object goes to the gateway that made it. */
import { assert, describe, it } from "@effect/vitest"
import type { ChargeGateway, GatewayPayment } from "@purser/core"
import { Effect } from "effect"
import { dispatch } from "../src/internal/dispatch.ts"
import { orderFor } from "./support.ts"

const order = orderFor()

/** A gateway that answers with its name, and writes down what it was asked. */
const named = (name: string, asked: Array<string>, more: Partial<ChargeGateway["Service"]> = {}): ChargeGateway["Service"] => {
  const answer = (what: string) =>
    Effect.sync((): GatewayPayment => {
      asked.push(`${name}.${what}`)
      return {
        id: `${name}_1`, status: "unconfirmed", amountMinor: 1234, amountReceivedMinor: 0, currency: "usd", stripeCustomerId: "cus_1", chargeKey: order.chargeKey,
        generation: 1, chargeId: null, decline: null
      }
    })
  return {
    name,
    create: (_, suffix) => answer(`create${suffix}`),
    find: (_, sinceMs) => answer(`find ${sinceMs}`),
    retrieve: (_, id) => answer(`retrieve ${id}`),
    confirm: (_, { attempt, id, keySuffix, paymentMethod }) => answer(`confirm ${id} ${paymentMethod} ${attempt}${keySuffix}`),
    cancel: (_, id) => answer(`cancel ${id}`),
    defaultPaymentMethod: () => Effect.as(answer("method"), `pm_of_${name}`),
    ...more
  }
}

const among = (chosen: "two" | "one" | "drafts") => {
  const asked: Array<string> = []
  const gateways: Record<"two" | "one" | "drafts", ChargeGateway["Service"]> = {
    two: named("two", asked),
    one: named("one", asked, {
      isOneCall: (id) => id.startsWith("one"),
      nameOf: (_, { id }) => id.startsWith("ch_") ? `one_of_${id}` : undefined,
      unsent: () => undefined,
      probe: Effect.sync(() => void asked.push("one.probe"))
    }),
    drafts: named("drafts", asked, {
      prepare: (given, id, suffix) => gateways.drafts.retrieve(given, `${id}, prepared${suffix}`)
    })
  }
  const branches = (["two", "one", "drafts"] as const).map((name) => ({ gateway: gateways[name], owns: (id: string) => id.startsWith(`${name}_`) }))
  return { asked, gateways, gateway: dispatch(gateways[chosen], branches) }
}

describe("a gateway among others", () => {
  it.effect("makes and looks for what is new, and only that", () =>
    Effect.gen(function*() {
      for (const chosen of ["two", "one", "drafts"] as const) {
        const { asked, gateway } = among(chosen)
        assert.strictEqual(gateway.name, chosen)
        yield* gateway.create(order, ":r1")
        yield* gateway.find(order, 7)
        assert.strictEqual(yield* gateway.defaultPaymentMethod(order), `pm_of_${chosen}`)
        assert.deepStrictEqual(asked, [`${chosen}.create:r1`, `${chosen}.find 7`, `${chosen}.method`])
      }
    }))

  it("makes no call to name an object, and asks whether the processor answers, as the chosen one does", () => {
    const { gateway, gateways } = among("one")
    assert.deepStrictEqual([gateway.unsent, gateway.probe], [gateways.one.unsent, gateways.one.probe])
    for (const other of ["two", "drafts"] as const) assert.notInclude(Object.keys(among(other).gateway), "unsent")
    for (const other of ["two", "drafts"] as const) assert.notInclude(Object.keys(among(other).gateway), "probe")
  })

  for (const chosen of ["two", "one", "drafts"] as const) {
    it.effect(`goes on with every object in its maker's way, with ${chosen} chosen`, () =>
      Effect.gen(function*() {
        const { asked, gateway } = among(chosen)
        for (const owner of ["two", "one", "drafts"] as const) {
          const id = `${owner}_9`
          yield* gateway.retrieve(order, id)
          yield* gateway.confirm(order, { id, attempt: 2, paymentMethod: "pm_1", keySuffix: ":r1" })
          yield* gateway.cancel(order, id)
          assert.deepStrictEqual(asked.splice(0), [`${owner}.retrieve ${id}`, `${owner}.confirm ${id} pm_1 2:r1`, `${owner}.cancel ${id}`])
        }
      }))

    it(`says of every object whether its key alone makes it paid once, with ${chosen} chosen`, () => {
      const { gateway } = among(chosen)
      assert.deepStrictEqual(["one_9", "two_9", "drafts_9"].map((id) => gateway.isOneCall?.(id)), [true, false, false])
    })

    it.effect(`prepares drafts of the one that makes them, and reads what needs no preparing, with ${chosen} chosen`, () =>
      Effect.gen(function*() {
        const { asked, gateway } = among(chosen)
        yield* gateway.prepare!(order, "drafts_9", ":r1")
        yield* gateway.prepare!(order, "two_9", ":r1")
        assert.deepStrictEqual(asked, ["drafts.retrieve drafts_9, prepared:r1", "two.retrieve two_9"])
      }))

    it(`names what stands without an object, with ${chosen} chosen`, () => {
      const { gateway } = among(chosen)
      assert.deepStrictEqual(["ch_9", "two_9"].map((id) => gateway.nameOf?.(order.chargeKey, { id, createdMs: 0 })), ["one_of_ch_9", undefined])
    })
  }

  it.effect("leaves an object that nobody knows to the chosen one", () =>
    Effect.gen(function*() {
      const { asked, gateway } = among("one")
      yield* gateway.retrieve(order, "else_9")
      assert.deepStrictEqual(asked, ["one.retrieve else_9"])
      assert.strictEqual(gateway.isOneCall?.("else_9"), false)
    }))
})
