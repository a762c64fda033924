/** What every `Sightings` must do, driver or memory. */
import { type Movement, Sightings, type UnknownObject } from "@purser/core"
import { assert, layer as testLayer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { chargeFor } from "./chargeFor.ts"
import { StoreClock } from "./StoreClock.ts"

const object = (id: string, fields: Partial<UnknownObject> = {}): UnknownObject => ({
  id, reason: "foreign", chargeKey: null, amountMinor: 1200, currency: "usd", stripeCustomerId: "cus_1", status: "succeeded", detail: null, ...fields
})

/** Runs the suite; the layer is built once. */
export const suite = <E>(name: string, layer: Layer.Layer<Sightings | StoreClock, E>): void =>
  testLayer(layer, { timeout: 120_000 })(`Sightings: ${name}`, (it) => {
    it.effect("shows the movements of a charge in order, each as it stands now", () =>
      Effect.gen(function*() {
        const sightings = yield* Sightings
        const { chargeKey } = chargeFor("moved", "2026-07")
        const dispute: Movement = {
          id: "dp_1", kind: "dispute", chargeKey, paymentIntentId: "pi_1", chargeId: "ch_1", amountMinor: 1000, currency: "usd", status: "needs_response",
          reason: "fraudulent", createdMs: 1_785_600_002_000
        }
        const refund: Movement = { ...dispute, id: "re_1", kind: "refund", amountMinor: 300, status: "pending", reason: null, createdMs: 1_785_600_001_000 }
        yield* sightings.note(dispute)
        yield* sightings.note(refund)
        yield* sightings.note({ ...dispute, status: "lost" })
        yield* sightings.note({ ...refund, id: "re_elsewhere", chargeKey: chargeFor("other", "2026-07").chargeKey })
        assert.deepStrictEqual(yield* sightings.movements(chargeKey), [refund, { ...dispute, status: "lost" }])
        assert.deepStrictEqual(yield* sightings.movements(chargeFor("quiet", "2026-07").chargeKey), [])
      }))

    it.effect("lists an object once, with the later word about it", () =>
      Effect.gen(function*() {
        const sightings = yield* Sightings
        yield* sightings.list(object("pi_list_b"))
        yield* StoreClock.advance(5000)
        yield* sightings.list(object("pi_list_b", { status: "canceled", reason: "missing_here", chargeKey: "k" }))
        yield* sightings.list(object("pi_list_a", { amountMinor: null, currency: null, stripeCustomerId: null, status: null }))
        const listed = (yield* sightings.unknown("", 10_000)).filter(({ id }) => id.startsWith("pi_list_"))
        assert.deepStrictEqual(listed.map(({ amountMinor, chargeKey, id, reason, status }) => [id, reason, chargeKey, amountMinor, status]), [
          ["pi_list_a", "foreign", null, null, null],
          ["pi_list_b", "missing_here", "k", 1200, "canceled"]
        ])
        assert.strictEqual(Math.round((listed[1]!.lastSeenMs - listed[1]!.firstSeenMs) / 1000), 5)
      }))

    it.effect("pages the list, takes objects off it, and puts back what is seen again", () =>
      Effect.gen(function*() {
        const sightings = yield* Sightings
        for (const id of ["zz_1", "zz_2", "zz_3"]) yield* sightings.list(object(id))
        assert.deepStrictEqual((yield* sightings.unknown("zz_1", 1)).map(({ id }) => id), ["zz_2"])
        assert.isTrue(yield* sightings.unlist("zz_2", "another program's"))
        assert.isFalse(yield* sightings.unlist("zz_2", "again"))
        assert.isFalse(yield* sightings.unlist("zz_none", "never there"))
        assert.deepStrictEqual((yield* sightings.unknown("zz_", 10)).map(({ id }) => id), ["zz_1", "zz_3"])
        yield* sightings.list(object("zz_2"))
        assert.deepStrictEqual((yield* sightings.unknown("zz_", 10)).map(({ id }) => id), ["zz_1", "zz_2", "zz_3"])
      }))
  })
