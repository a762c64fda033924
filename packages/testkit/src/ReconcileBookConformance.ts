/** What every `ReconcileBook` must do, driver or memory, over the ledger of the same store. */
import { type AccountPayment, Ledger, ReconcileBook } from "@purser/core"
import { assert, layer as testLayer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { chargeFor } from "./chargeFor.ts"
import type { StoreClock } from "./StoreClock.ts"

const objectOf = (id: string, customer: string, fields: Partial<AccountPayment> = {}): AccountPayment => {
  const request = chargeFor(customer, "2026-07", { item: "\"quoted\" 'item' \u{1F4B0}" })
  return {
    id, status: "succeeded", amountMinor: request.amountMinor, amountReceivedMinor: request.amountMinor, currency: request.currency,
    stripeCustomerId: request.stripeCustomerId, createdMs: 1_785_600_000_000, chargeId: null, paymentMethod: "pm_1",
    identity: {
      chargeKey: request.chargeKey, customerId: customer, billingPeriod: request.billingPeriod, namespace: request.namespace, item: request.item ?? null,
      revision: 2, generation: 1
    },
    ...fields
  }
}
const keyOf = (object: AccountPayment) => object.identity!.chargeKey

/** Runs the suite; the layer is built once. */
export const suite = <E>(name: string, layer: Layer.Layer<ReconcileBook | Ledger | StoreClock, E>): void =>
  testLayer(layer, { timeout: 120_000 })(`ReconcileBook: ${name}`, (it) => {
    it.effect("gives objects back whole, by charge key, each once with the later word about it", () =>
      Effect.gen(function*() {
        const book = yield* ReconcileBook
        yield* book.begin("whole")
        const [a, b] = [objectOf("pi_a", "book-1"), objectOf("pi_b", "book-1", { status: "canceled", stripeCustomerId: null, chargeId: "ch_1", paymentMethod: null })]
        const other = objectOf("pi_c", "book-2")
        yield* book.add("whole", [a, { ...b, status: "unconfirmed" }, other, objectOf("pi_none", "book-3", { identity: null })])
        yield* book.add("whole", [b])
        assert.deepStrictEqual(yield* book.objects("whole", [keyOf(a)]), [a, b])
        assert.deepStrictEqual(yield* book.objects("whole", [keyOf(other), "f".repeat(32)]), [other])
        assert.deepStrictEqual(yield* book.objects("another", [keyOf(a)]), [])
        assert.deepStrictEqual(yield* book.objects("whole", []), [])
      }))

    it.effect("finds the objects whose row is not there, page by page", () =>
      Effect.gen(function*() {
        const book = yield* ReconcileBook
        const ledger = yield* Ledger
        yield* book.begin("rows")
        const objects = Array.from({ length: 7 }, (_, index) => objectOf(`pi_row_${index}`, `row-${index}`))
        yield* book.add("rows", [...objects, objectOf("pi_row_7", "row-7", { identity: { ...objects[0]!.identity!, chargeKey: "no key at all" } })])
        for (const index of [1, 4]) yield* ledger.claim(chargeFor(`row-${index}`, "2026-07", { item: "\"quoted\" 'item' \u{1F4B0}" }), "w")
        const found: Array<string> = []
        let after = ""
        let pages = 0
        for (;;) {
          const { next, objects } = yield* book.withoutRow("rows", after, 3)
          found.push(...objects.map(({ id }) => id))
          pages += 1
          if (next === undefined) break
          after = next
        }
        assert.deepStrictEqual([found, pages], [["pi_row_0", "pi_row_2", "pi_row_3", "pi_row_5", "pi_row_6", "pi_row_7"], 3])
      }))

    it.effect("forgets what is discarded, and only that", () =>
      Effect.gen(function*() {
        const book = yield* ReconcileBook
        const object = objectOf("pi_kept", "kept")
        for (const id of ["gone", "kept"]) {
          yield* book.begin(id)
          yield* book.add(id, [object])
        }
        yield* book.discard("gone")
        assert.deepStrictEqual([yield* book.objects("gone", [keyOf(object)]), yield* book.objects("kept", [keyOf(object)])], [[], [object]])
      }))
  })
