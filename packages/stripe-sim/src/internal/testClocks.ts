/**
 * `/v1/test_helpers/test_clocks`: create, retrieve, list, advance, delete.
 *
 * A customer made on a clock lives in its time: their invoices are dated by it, advance by themselves by it, and bank
 * debits settle by it. Refuses to go back. Advancing is done when the answer is sent, which still says `advancing`, as
 * at Stripe, where it takes a while: a reader has to ask again.
 */
import type Stripe from "stripe"
import type { Account } from "./Account.ts"
import { type Answer, invalid, missing, ok } from "./answer.ts"
import { page } from "./lists.ts"
import { integer, type Params, required, type Rule, text } from "./params.ts"
import type { TestClockRecord } from "./records.ts"
import type { Route } from "./route.ts"

const createRules = {
  customer: "unsimulated",
  expand: "unsimulated",
  frozen_time: "int",
  name: "string"
} as const satisfies Record<keyof Stripe.TestHelpers.TestClockCreateParams, Rule>

const listRules = {
  ending_before: "string",
  expand: "unsimulated",
  limit: "int",
  starting_after: "string"
} as const satisfies Record<keyof Stripe.TestHelpers.TestClockListParams, Rule>

const keptS = 30 * 24 * 60 * 60

const shape = (r: TestClockRecord, targetS?: number): Stripe.TestHelpers.TestClock => ({
  id: r.id,
  object: "test_helpers.test_clock",
  created: r.createdS,
  deletes_after: r.createdS + keptS,
  frozen_time: r.frozenS,
  livemode: false,
  name: r.name,
  status: targetS === undefined ? "ready" : "advancing",
  status_details: targetS === undefined ? {} : { advancing: { target_frozen_time: targetS } }
})

const create = (account: Account, params: Params): Answer => {
  const frozenS = integer(params, "frozen_time")
  if (frozenS === undefined) return required("frozen_time")
  const made: TestClockRecord = account.clocks.put({
    id: account.nextId("clock_1"),
    seq: account.clocks.nextSeq,
    createdS: account.nowS,
    frozenS,
    name: text(params, "name") ?? null
  })
  account.emit("test_helpers.test_clock.created", () => shape(made))
  return ok(() => shape(made))
}

const found = (account: Account, id: string, act: (clock: TestClockRecord) => Answer): Answer => {
  const clock = account.clocks.get(id)
  return clock === undefined ? missing("test clock", id, "id", true) : act(clock)
}

const retrieve = (account: Account, _params: Params, id: string): Answer => found(account, id, (clock) => ok(() => shape(clock)))

const advance = (account: Account, params: Params, id: string): Answer =>
  found(account, id, (clock) => {
    const targetS = integer(params, "frozen_time")
    if (targetS === undefined) return required("frozen_time")
    if (targetS <= clock.frozenS) {
      return invalid("The frozen time must be after the clock's current frozen time.", "frozen_time")
    }
    account.emit("test_helpers.test_clock.advancing", () => shape(clock, targetS))
    account.advanceClock(id, targetS)
    const ready = account.clocks.get(id)
    if (ready !== undefined) account.emit("test_helpers.test_clock.ready", () => shape(ready))
    return ok(() => shape(clock, targetS))
  })

const remove = (account: Account, _params: Params, id: string): Answer =>
  found(account, id, (clock) => {
    for (const customer of account.customers.values()) {
      if (customer.testClock === id) account.customers.set(customer.id, { ...customer, deleted: true, defaultPaymentMethod: null })
    }
    account.clocks.remove(id)
    account.emit("test_helpers.test_clock.deleted", () => shape(clock))
    return ok((): Stripe.TestHelpers.DeletedTestClock => ({ id, object: "test_helpers.test_clock", deleted: true }))
  })

const list = (account: Account, params: Params): Answer =>
  page(account.clocks, params, {
    url: "/v1/test_helpers/test_clocks",
    what: "test clock",
    group: undefined,
    show: (clock) => shape(clock)
  })

const path = "test_helpers/test_clocks"

/** The endpoints of this resource. */
export const routes: ReadonlyArray<Route> = [
  { method: "POST", path, rules: createRules, handler: create },
  { method: "GET", path, rules: listRules, handler: list },
  { method: "GET", path: `${path}/:id`, rules: { expand: "unsimulated" }, handler: retrieve },
  { method: "DELETE", path: `${path}/:id`, rules: {}, handler: remove },
  { method: "POST", path: `${path}/:id/advance`, rules: { expand: "unsimulated", frozen_time: "int" }, handler: advance }
]
