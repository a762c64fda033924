/**
 * All states within bounds, of real pipelines on a processor without idempotency keys. The counts are exact: an order that is
 * not taken any more, or a new one, shows here first.
 */
import { assert, describe, it } from "vitest"
import { Effect } from "effect"
import { explore } from "../src/explore.ts"
import type { Bounds, MachineBug } from "../src/Machine.ts"

const timeout = 600_000
/** Three workers that crash have half a minute of states, which `pnpm test:long` goes through: in a quick run they do not crash. */
const isLong = process.env["PURSER_TEST_LONG"] !== undefined
const none: Bounds = { workers: 1, crashes: 0, losses: 0, leases: 0, restarts: 0 }

describe("no state breaks the promise", () => {
  for (const bounds of [
    { ...none, crashes: 1, losses: 2, leases: 1, restarts: 2 },
    { ...none, workers: 2, crashes: 1, leases: 1 },
    { ...none, workers: 2, losses: 1, leases: 1 },
    { ...none, workers: 3, crashes: isLong ? 1 : 0, leases: 1 }
  ] satisfies ReadonlyArray<Bounds>) {
    it(JSON.stringify(bounds), { timeout }, () => {
      const { broken, ends, states } = explore(bounds)
      assert.isUndefined(broken)
      assert.isAbove(states, 100)
      assert.isAbove(ends, 5)
    })
  }
})

describe("a planted bug has a state", () => {
  const found = (bug: MachineBug, problem: RegExp) => () =>
    assert.match(explore({ ...none, workers: 2, crashes: 1, leases: 1 }, bug).broken?.problem ?? "none", problem)

  it("attach without compare-and-set", { timeout }, found({
    ledger: (ledger) => ({
      ...ledger,
      attach: (input) => Effect.as(ledger.attach(input), { _tag: "Attached" as const }),
      // Else the lease is asked for before the confirm, and found to be another's.
      extend: (lease) => Effect.as(ledger.extend(lease), true)
    })
  }, /^paid twice$/))

  it("confirm with a new object each time", { timeout }, found({
    gateway: (gateway) => ({
      ...gateway,
      confirm: (order, input) =>
        Effect.flatMap(gateway.create(order, ""), ({ id }) => Effect.map(gateway.confirm(order, { ...input, id }), (payment) => ({ ...payment, id: input.id })))
    })
  }, /^paid twice$/))

  it("confirm before the id is stored", { timeout }, found({
    gateway: (gateway) => ({
      ...gateway,
      create: (order, suffix) => Effect.tap(gateway.create(order, suffix), ({ id }) => gateway.confirm(order, { id, attempt: 1, paymentMethod: "pm_card_visa", keySuffix: "" }))
    })
  }, /^paid twice$/))

  it("rows that nobody takes up", { timeout }, found({ ledger: (ledger) => ({ ...ledger, takeExpired: () => Effect.succeed([]) }) }, /^an undisturbed sweep leaves it/))

  it("a release of the lease that forgets the object", { timeout }, found({
    ledger: (ledger) => ({ ...ledger, settle: () => Effect.succeed({ _tag: "LeaseLost" as const }) })
  }, /^an undisturbed sweep leaves it/))
})
