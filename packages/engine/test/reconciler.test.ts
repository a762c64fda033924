/** What a reconciliation asks for, tells and does, over a ledger and an account that a test writes. */
import { assert, describe, it } from "@effect/vitest"
import { type AccountCharge, type AccountPayment, ChargeError, type ChargeRecord, LedgerUnavailable, LeaseLost, RateLimited } from "@purser/core"
import { Effect } from "effect"
import { retryPolicy } from "../src/PipelineOptions.ts"
import type { ReconcileOptions } from "../src/Reconciler.ts"
import { chargeOf, hourMs, identity, nowMs, object, other, reconciled, row, skewMs, type World } from "./support/reconciled.ts"
import { charge as claimed, chargeKey, ledgerError, payment, requestWith, succeeded } from "./support/scripted.ts"

const paidTwice = [object(), object({ id: "pi_2" })]

describe("a reconciliation", () => {
  it.effect("lists the account into a book, page by page, goes through the rows, and forgets the book", () => Effect.gen(function*() {
    const { asked, differences, report } = yield* reconciled({ rows: [row("succeeded"), row("planned", { chargeKey: other.chargeKey, request: other, paymentIntentId: null })], payments: [object(), object({ id: "pi_foreign", identity: null })] })
    const range = `${hourMs - skewMs} ${nowMs + skewMs}`
    assert.deepStrictEqual(asked, [
      "begin true", "namespaces 2026-07", `payments ${range}`, `payments ${range} first`, `charges ${range}`, "page 2026-07 1000", "discard"
    ])
    assert.deepStrictEqual(report, {
      billingPeriod: "2026-07", sinceMs: hourMs, untilMs: nowMs + skewMs, dryRun: false, accounts: [null], listed: 2, ours: 1, foreign: 1, rows: 2, open: 1, repaired: 0, remaining: 0, found: {}
    })
    assert.deepStrictEqual(differences, [])
    const until = yield* reconciled({}, { untilMs: 7 * hourMs, dryRun: true })
    assert.deepStrictEqual([until.report.untilMs, until.report.dryRun, until.asked[2]], [7 * hourMs, true, `payments ${hourMs - skewMs} ${7 * hourMs}`])
  }))

  it.effect("counts rows that are still to be charged", () => Effect.gen(function*() {
    for (const state of ["planned", "claimed", "attached"] as const) assert.strictEqual((yield* reconciled({ rows: [row(state, { paymentIntentId: null })] })).report.open, 1, state)
    for (const state of ["processing", "declined", "rejected", "requires_action", "canceled"] as const) assert.strictEqual((yield* reconciled({ rows: [row(state)] })).report.open, 0, state)
  }))

  it.effect("goes on after a full page of rows, and not after one that is not full", () => Effect.gen(function*() {
    const full = Array.from({ length: 1000 }, (_, index) => row("planned", { chargeKey: `${index}`.padStart(32, "0") as typeof chargeKey, paymentIntentId: null }))
    const pages = (length: number) => Effect.map(reconciled({ rows: full.slice(0, length) }), ({ asked, report }) => [report.rows, asked.filter((line) => line.startsWith("page"))])
    assert.deepStrictEqual(yield* pages(999), [999, ["page 2026-07 1000"]])
    assert.deepStrictEqual(yield* pages(1000), [1000, ["page 2026-07 1000", "page 2026-07 0999 1000"]])
  }))

  it.effect("looks at one namespace where it is told to, in the account that it names", () => Effect.gen(function*() {
    const apart = requestWith({ namespace: "apart", paymentMethod: "pm_1" })
    const world: World = {
      rows: [row("succeeded"), row("planned", { request: apart, chargeKey: apart.chargeKey, paymentIntentId: null })], payments: [object()], accountOf: (namespace) => namespace === "apart" ? "acct_2" : null,
      elsewhere: { acct_2: [object({ identity: { ...identity, chargeKey: apart.chargeKey, namespace: "apart" } })] }
    }
    const one = yield* reconciled(world, { namespace: "apart", dryRun: true })
    assert.deepStrictEqual([one.report.rows, one.report.accounts, one.report.listed, one.report.ours, one.asked.includes("namespaces 2026-07")], [1, ["acct_2"], 1, 1, false])
    assert.deepStrictEqual(one.told, [["missing_here", "the row is planned and names no object", "adopted"]])
    const both = yield* reconciled({ ...world, ledger: { namespaces: () => Effect.succeed(["zmq-billing", "apart", "apart"]) } }, { dryRun: true })
    assert.deepStrictEqual([both.report.rows, both.report.accounts, both.report.listed], [2, [null, "acct_2"], 2])
    assert.strictEqual((yield* reconciled({ payments: [object()] }, { namespace: "apart" })).report.ours, 0)
    const none = yield* reconciled({ payments: [object({ identity: { ...identity, billingPeriod: "2026-08" } })] })
    assert.deepStrictEqual([none.report.listed, none.report.ours, none.report.foreign, none.told], [1, 0, 0, []])
  }))

  it.effect("tells of money in an account that its namespace does not name, and keeps nothing of it", () => Effect.gen(function*() {
    const lost = (status: AccountPayment["status"], more: Partial<AccountPayment> = {}) => Effect.map(
      reconciled({ payments: [object({ status, ...more })], accountOf: () => "acct_2" }), ({ report, told }) => [report.ours, ...told]
    )
    const said = ["not_attached", "pi_1 is in the key's own account, which its namespace zmq-billing does not name", null]
    assert.deepStrictEqual([yield* lost("succeeded"), yield* lost("processing")], [[0, said], [0, said]])
    assert.deepStrictEqual([yield* lost("unconfirmed"), yield* lost("succeeded", { identity: { ...identity, namespace: null } })].map(([ours, ...told]) => [ours, told.length]), [[0, 0], [1, 1]])
    const there = yield* reconciled({ elsewhere: { acct_2: [object()] }, accountOf: (namespace) => namespace === "x" ? "acct_2" : null, ledger: { namespaces: () => Effect.succeed(["x"]) } })
    assert.deepStrictEqual(there.told, [["not_attached", "pi_1 is in acct_2, which its namespace zmq-billing does not name", null]])
  }))

  it.effect("forgets the book also when it fails", () => Effect.gen(function*() {
    const away = ledgerError(new LedgerUnavailable({ operation: "page", detail: "stopped" }))
    const asked: Array<string> = []
    assert.strictEqual(yield* Effect.flip(reconciled({ ledger: { page: () => Effect.fail(away) }, asked })), away)
    assert.deepStrictEqual([asked[0], asked.at(-1)], ["begin true", "discard"])
  }))

  it.effect("sees invoices where they are how charges are made, and does not take their payments for another program's", () => Effect.gen(function*() {
    const invoice = object({ id: "in_1" })
    const world: World = { rows: [row("succeeded", { paymentIntentId: "in_1", outcome: succeeded() })], invoices: [invoice], payments: [object({ id: "pi_of_invoice", identity: null })] }
    const { asked, report } = yield* reconciled({ ...world, gateway: { name: "invoices" } })
    assert.deepStrictEqual([report.listed, report.ours, report.foreign, asked.filter((line) => line.startsWith("invoices")).length], [2, 1, 0, 1])
    const plain = yield* reconciled(world)
    assert.deepStrictEqual([plain.report.listed, plain.report.foreign, plain.asked.filter((line) => line.startsWith("invoices"))], [1, 1, []])
    const more: World = { gateway: { name: "invoices" }, invoices: [object({ id: "in_1", status: "draft" })], payments: [object({ id: "pi_other", identity: null })] }
    assert.strictEqual((yield* reconciled(more, { dryRun: true })).report.foreign, 1, "a draft has brought no payment")
    const foreignInvoice: World = { gateway: { name: "invoices" }, invoices: [object({ id: "in_1", identity: null })] }
    assert.strictEqual((yield* reconciled(foreignInvoice)).report.foreign, 1)
    assert.strictEqual((yield* reconciled({ ...world, payments: [], gateway: { name: "invoices" } })).report.foreign, 0)
  }))
})

describe("a difference", () => {
  it.effect("is told with the row, the objects and what was done", () => Effect.gen(function*() {
    const item = requestWith({ paymentMethod: "pm_1", item: "seats" })
    const record = row("succeeded", { request: item, chargeKey: item.chargeKey })
    const { differences, report } = yield* reconciled({ rows: [record], payments: [object({ amountMinor: 1, amountReceivedMinor: 1, identity: { ...identity, chargeKey: item.chargeKey, item: "seats" } })] })
    assert.deepStrictEqual(differences, [{
      kind: "amount_differs", chargeKey: item.chargeKey, customerId: "acme", item: "seats", revision: 0,
      ledger: { state: "succeeded", amountMinor: 1999, currency: "usd", paymentIntentId: "pi_1" },
      objects: [{ id: "pi_1", status: "succeeded", amountMinor: 1, currency: "usd", createdMs: 0 }], detail: differences[0]!.detail, repaired: null
    }])
    assert.deepStrictEqual([report.found, report.repaired, report.remaining], [{ amount_differs: 1 }, 0, 1])
    const anew = requestWith({ paymentMethod: "pm_1", revision: 2 })
    const again = yield* reconciled({ rows: [row("succeeded", { request: anew, chargeKey: anew.chargeKey })], payments: [object({ amountMinor: 1, identity: { ...identity, chargeKey: anew.chargeKey } })] })
    assert.deepStrictEqual(again.differences.map(({ revision }) => revision), [2])
    const unowned = yield* reconciled({ payments: [object({ identity: { ...identity, chargeKey: anew.chargeKey, revision: 2 } })] })
    assert.deepStrictEqual(unowned.differences.map(({ revision }) => revision), [2])
    const without = yield* reconciled({ payments: [object({ identity: { ...identity, item: "x", revision: null } })] })
    assert.deepStrictEqual(without.differences.map(({ chargeKey: key, customerId, item: of, ledger, revision }) => [key, customerId, of, ledger, revision]), [[chargeKey, "acme", "x", null, null]])
  }))

  it.effect("of two payments is told, and left to a person", () => Effect.gen(function*() {
    const { acts, report, told } = yield* reconciled({ rows: [row("succeeded")], payments: paidTwice })
    assert.deepStrictEqual([told, report.found, acts], [[["paid_twice", "2 payments bear this charge key", null]], { paid_twice: 1 }, []])
  }))

  it.effect("of a paid object and a row that waits is settled by the ledger's own steps", () => Effect.gen(function*() {
    const world: World = { rows: [row("processing")], payments: [object()] }
    const done = yield* reconciled(world)
    const words = done.told[0]![1]
    assert.deepStrictEqual([done.told, done.acts, done.report.repaired, done.report.remaining], [[["state_differs", words, "settled"]], ["retrieve pi_1 1 1", "resume"], 1, 0])
    const dry = yield* reconciled(world, { dryRun: true })
    assert.deepStrictEqual([dry.told, dry.acts, dry.report.repaired, dry.report.remaining], [[["state_differs", words, "settled"]], [], 0, 1])
    const aside = yield* reconciled({ ...world, rows: [row("processing", { quarantine: "looked at" })] })
    assert.deepStrictEqual([aside.told, aside.report.remaining], [[["state_differs", words, null]], 1])
    const since = yield* reconciled({ ...world, ledger: { find: () => Effect.succeed(row("succeeded")) } })
    assert.deepStrictEqual([since.told, since.acts], [[["state_differs", words, "settled"]], []])
    const busy = yield* reconciled({ ...world, resume: () => Effect.fail(ledgerError(new LeaseLost({ operation: "settle" }))) })
    assert.deepStrictEqual(busy.told, [["state_differs", `${words}; left alone: the lease was lost before settle`, null]])
  }))

  it.effect("of a paid row without a listed object is looked at where the object is", () => Effect.gen(function*() {
    const looked = (seen: AccountPayment | undefined, payments: ReadonlyArray<AccountPayment> = []) =>
      Effect.map(reconciled({ rows: [row("succeeded", { paymentIntentId: "pi_old", outcome: succeeded() })], payments, account: { payment: () => Effect.succeed(seen) } }), ({ told }) => told)
    const old = object({ id: "pi_old" })
    assert.deepStrictEqual(yield* looked(undefined), [["missing_there", "pi_old does not exist at the processor", null]])
    assert.deepStrictEqual(yield* looked({ ...old, status: "canceled" }), [["state_differs", "pi_old is canceled", null]])
    assert.deepStrictEqual(yield* looked(old), [])
    const named = yield* reconciled({ rows: [row("succeeded", { paymentIntentId: "charges:x:1", generation: 3, attempt: 2 })], gateway: { retrieve: () => Effect.succeed(payment({ status: "unconfirmed" })) } })
    assert.deepStrictEqual(named.told, [["state_differs", "charges:x:1 is unconfirmed", null]])
    assert.deepStrictEqual((yield* reconciled({ rows: [row("succeeded", { paymentIntentId: "charges:x:1", generation: 3, attempt: 2 })] })).acts, ["retrieve charges:x:1 3 2"])
    assert.deepStrictEqual((yield* reconciled({ rows: [row("succeeded", { paymentIntentId: "pi_old" })], accountOf: () => "acct_2" })).acts.filter((line) => line.includes("payment ")), ["acct_2 payment pi_old"])
    const twice = yield* looked(old, [object({ id: "pi_new" })])
    assert.deepStrictEqual(twice, [["paid_twice", "pi_old is paid as well", null]])
  }))

  it.effect("of a payment and a row that names none is taken into it, unless it is held or cannot be named", () => Effect.gen(function*() {
    const world: World = { rows: [row("planned", { paymentIntentId: null })], payments: [object({ chargeId: "ch_1" })] }
    const words = "the row is planned and names no object"
    const done = yield* reconciled(world)
    assert.deepStrictEqual([done.told, done.acts], [[["missing_here", words, "adopted"]], ["adopt acme pi_1 pm_1 pm_1 w/reconcile", "resume"]])
    const dry = yield* reconciled(world, { dryRun: true })
    assert.deepStrictEqual([dry.told, dry.acts, dry.report.remaining], [[["missing_here", words, "adopted"]], [], 1])
    const held = yield* reconciled({ ...world, ledger: { adopt: () => Effect.succeed(undefined) } })
    assert.deepStrictEqual(held.told, [["missing_here", `${words}; not taken in: somebody else holds the row`, null]])
    const nameless = yield* reconciled({ ...world, payments: [object({ id: "ch_1", chargeId: "ch_1" })] })
    assert.deepStrictEqual([nameless.told, nameless.acts], [[["missing_here", `${words}; not taken in: a charge (ch_…) is taken in by a gateway that can name it (charges) alone`, null]], []])
  }))

  it.effect("of an unpaid object that no row names is given up when it is old enough, and nobody came to use it", () => Effect.gen(function*() {
    const stray = object({ id: "pi_stray", status: "unconfirmed", createdMs: nowMs - hourMs })
    const world: World = { rows: [row("declined", { generation: 2, attempt: 3 })], payments: [stray] }
    const words = "pi_stray is unconfirmed, and no row names it"
    const done = yield* reconciled(world)
    assert.deepStrictEqual([done.told, done.acts], [[["orphan", words, "canceled"]], ["cancel pi_stray 2 3"]])
    const dry = yield* reconciled(world, { dryRun: true })
    assert.deepStrictEqual([dry.told, dry.acts], [[["orphan", words, "canceled"]], []])
    const young = { ...stray, createdMs: nowMs - hourMs + 1 }
    assert.deepStrictEqual((yield* reconciled({ ...world, payments: [young] })).told, [])
    assert.deepStrictEqual((yield* reconciled({ ...world, payments: [young] }, { orphanAgeMs: 1000 })).told, [["orphan", words, "canceled"]])
    const paidNow = yield* reconciled({ ...world, gateway: { cancel: () => Effect.succeed(payment({ status: "succeeded" })) } })
    assert.deepStrictEqual(paidNow.told, [["orphan", words, null]])
  }))
})

describe("an object that is to be given up while the processor refuses for the rate of calls", () => {
  const stray = object({ id: "pi_stray", status: "unconfirmed", createdMs: 0 })
  const limited = new ChargeError({ reason: new RateLimited({ retryAfterMs: null, limitReason: null }), chargeKey, requestId: null })
  const settings = { retry: retryPolicy({ attemptsMax: 3, backoffMs: 0, backoffMaxMs: 0 }) }
  /** Refused at first; the row is as `rows` say, one look after the other. */
  const refusedOnce = (rows: ReadonlyArray<ChargeRecord>) => {
    let looks = 0
    let calls = 0
    return reconciled({
      rows: [rows[0]!],
      payments: [stray],
      settings,
      ledger: { find: () => Effect.sync(() => rows[Math.min(looks++, rows.length - 1)]) },
      gateway: { cancel: () => Effect.suspend(() => calls++ === 0 ? Effect.fail(limited) : Effect.succeed(payment({ status: "canceled" }))) }
    })
  }

  it.effect("is tried again, and the run goes on", () => Effect.gen(function*() {
    const declined = row("declined")
    assert.deepStrictEqual((yield* refusedOnce([declined, declined])).told, [["orphan", "pi_stray is unconfirmed, and no row names it", "canceled"]])
  }))

  it.effect("is left when the row has come to name it meanwhile", () => Effect.gen(function*() {
    const { told } = yield* refusedOnce([row("declined"), row("attached", { paymentIntentId: "pi_stray" })])
    assert.deepStrictEqual(told, [["orphan", "pi_stray is unconfirmed, and no row names it", null]])
  }))
})

describe("what the ledger does not know", () => {
  it.effect("is taken in where its metadata tell the whole identity, with its method or the default one", () => Effect.gen(function*() {
    const { acts, told } = yield* reconciled({ payments: [object()] })
    assert.deepStrictEqual([told, acts], [[["missing_here", "the ledger has no such row", "adopted"]], ["adopt acme pi_1 pm_1 pm_1 w/reconcile", "resume", "unlist pi_1 taken into the ledger by reconciliation"]])
    assert.deepStrictEqual((yield* reconciled({ payments: [object()] }, { methods: "default" })).acts[0], "adopt acme pi_1 pm_1 default w/reconcile")
    const dry = yield* reconciled({ payments: [object()] }, { dryRun: true })
    assert.deepStrictEqual([dry.told[0]![2], dry.acts], ["adopted", []])
  }))

  it.effect("is listed with the reason where it is not", () => Effect.gen(function*() {
    const left = (seen: AccountPayment, why: string, ledger: World["ledger"] = {}) => Effect.gen(function*() {
      const { acts, told } = yield* reconciled({ payments: [seen], ledger })
      const detail = `the ledger has no such row; not taken in: ${why}`
      assert.deepStrictEqual([told, acts.filter((line) => line.startsWith("list"))], [[["missing_here", detail, null]], [`list ${seen.id} missing_here ${detail}`]])
      assert.deepStrictEqual((yield* reconciled({ payments: [seen] }, { dryRun: true })).acts, [])
    })
    yield* left(object({ status: "processing" }), "it is processing")
    yield* left(object({ identity: { ...identity, customerId: null } }), "its metadata do not tell customer_id")
    yield* left(object({ identity: { ...identity, chargeKey: "no key" } }), "its charge_key is not that of the identity and terms in its metadata")
    yield* left(object({ id: "ch_1", chargeId: "ch_1" }), "a charge (ch_…) is taken in by a gateway that can name it (charges) alone")
    const held = yield* reconciled({ payments: [object()], ledger: { adopt: () => Effect.succeed(undefined) } })
    assert.deepStrictEqual(held.told[0]![1], "the ledger has no such row; not taken in: somebody else holds the row")
    const anew = requestWith({ paymentMethod: "pm_1", revision: 1 })
    const revision = yield* reconciled({ payments: [object({ identity: { ...identity, chargeKey: anew.chargeKey, revision: 1 } })], ledger: { adopt: () => Effect.succeed(undefined) } })
    assert.deepStrictEqual(revision.told[0]![1], "the ledger has no such row; not taken in: the charge that it bills anew is not in the ledger as paid, or somebody else holds the row")
  }))

  it.effect("is taken in by revisions, each after what it bills anew", () => Effect.gen(function*() {
    const of = (revision: number) => object({ id: `pi_${9 - revision}`, identity: { ...identity, revision, chargeKey: revision === 0 ? chargeKey : requestWith({ paymentMethod: "pm_1", revision }).chargeKey } })
    const { acts } = yield* reconciled({ payments: [of(5)], charges: [] })
    assert.deepStrictEqual(acts.filter((line) => line.startsWith("adopt")).map((line) => line.split(" ")[2]), ["pi_4"])
    const both = yield* reconciled({ payments: [of(5), of(0)] })
    assert.deepStrictEqual(both.acts.filter((line) => line.startsWith("adopt")).map((line) => line.split(" ")[2]), ["pi_9", "pi_4"])
  }))

  it.effect("is told of as paid twice when another object of its key was taken in just now", () => Effect.gen(function*() {
    let taken = false
    const { told } = yield* reconciled({ payments: paidTwice, ledger: { find: () => Effect.sync(() => taken ? row("succeeded") : undefined), adopt: () => Effect.sync(() => (taken = true, claimed())) } })
    assert.deepStrictEqual(told, [["missing_here", "the ledger has no such row", "adopted"], ["paid_twice", "another payment bears this charge key", null]])
  }))

  it.effect("is left alone where somebody is at work on it", () => Effect.gen(function*() {
    const held = ledgerError(new LeaseLost({ operation: "settle" }))
    const taken = yield* reconciled({ payments: [object()], resume: () => Effect.fail(held) })
    assert.deepStrictEqual(taken.told, [["missing_here", `the ledger has no such row; left alone: ${held.message}`, null]])
    let looks = 0
    const stray = object({ status: "unconfirmed" })
    const given = yield* reconciled({ payments: [stray], settings: { retry: retryPolicy({ attemptsMax: 1, backoffMs: 0, backoffMaxMs: 0 }) }, ledger: { find: () => Effect.suspend(() => looks++ === 0 ? Effect.succeed(undefined) : Effect.fail(held)) } })
    assert.deepStrictEqual(given.told, [["orphan", `pi_1 is unconfirmed, and the ledger has no such row; left alone: ${held.message}`, null]])
  }))

  it.effect("is looked through page by page", () => Effect.gen(function*() {
    const pages = new Map([["", { objects: [object()], next: "pi_1" }], ["pi_1", { objects: [object({ id: "pi_2", identity: { ...identity, chargeKey: other.chargeKey, customerId: "other" } })], next: undefined }]])
    const { acts } = yield* reconciled({ book: { withoutRow: (_, after, limit) => limit === 1000 ? Effect.succeed(pages.get(after)!) : Effect.die("not asked") } })
    assert.deepStrictEqual(acts.filter((line) => line.startsWith("adopt")).map((line) => line.split(" ")[1]), ["acme", "other"])
  }))

  it.effect("and is unpaid is given up where nobody else could come to use it", () => Effect.gen(function*() {
    const stray = object({ status: "unconfirmed", createdMs: nowMs - hourMs, identity: { ...identity, generation: 2 } })
    const words = "pi_1 is unconfirmed, and the ledger has no such row"
    const done = yield* reconciled({ payments: [stray] })
    assert.deepStrictEqual([done.told, done.acts], [[["orphan", words, "canceled"]], ["cancel pi_1 2 1"]])
    const dry = yield* reconciled({ payments: [stray] }, { dryRun: true })
    assert.deepStrictEqual([dry.told, dry.acts, dry.report.remaining], [[["orphan", words, "canceled"]], [], 1])
    const left = (seen: AccountPayment, why: string, world: World = {}, options: Partial<ReconcileOptions> = {}) => Effect.gen(function*() {
      const { acts, told } = yield* reconciled({ payments: [seen], ...world }, options)
      assert.deepStrictEqual([told, acts.filter((line) => line.startsWith("cancel"))], [[["orphan", `${seen.id} is ${seen.status}, and the ledger has no such row; left alone: ${why}`, null]], []])
    })
    yield* left({ ...stray, id: "in_1" }, "it is no PaymentIntent")
    yield* left(stray, "the next run adopts it, since a restore point is set", { settings: { restorePointMs: 1 } })
    yield* left({ ...stray, identity: { ...identity, customerId: null } }, "its metadata do not tell customer_id")
    yield* left(stray, "the ledger bills nothing of this period in the namespace zmq-billing: it may be another ledger's", { ledger: { namespaces: () => Effect.succeed(["x"]) } })
    yield* left({ ...stray, createdMs: nowMs - hourMs + 1 }, "it is too young: somebody may be about to use it")
    yield* left({ ...stray, createdMs: nowMs - 999 }, "it is too young: somebody may be about to use it", {}, { orphanAgeMs: 1000 })
    yield* left({ ...stray, status: "declined" }, "it changed meanwhile", { gateway: { cancel: () => Effect.succeed(payment({ status: "succeeded" })) } })
    assert.deepStrictEqual((yield* reconciled({ payments: [{ ...stray, status: "canceled" }] })).told, [])
  }))
})

describe("a charge in the account", () => {
  it.effect("that stands without an object is a payment of its own, unless it failed", () => Effect.gen(function*() {
    const named: World["gateway"] = { nameOf: () => "charges:x:1" }
    const { acts, report } = yield* reconciled({ charges: [chargeOf()], gateway: named })
    assert.deepStrictEqual([report.listed, report.ours, acts[0]], [1, 1, "adopt acme charges:x:1 pm_1 pm_1 w/reconcile"])
    for (const charge of [chargeOf({ status: "failed" }), chargeOf({ paymentIntentId: "pi_1" })]) {
      assert.deepStrictEqual((yield* reconciled({ charges: [charge], gateway: named })).report.listed, 0)
    }
  }))

  it.effect("that was refunded or disputed is noted, and in a dry run not", () => Effect.gen(function*() {
    const seen = (charge: AccountCharge, dryRun = false) => Effect.map(reconciled({ charges: [{ ...charge, paymentIntentId: "pi_1" }] }, { dryRun }), ({ acts }) => acts)
    const noted = `note re_1 ${chargeKey.slice(0, 4)}`
    assert.deepStrictEqual(yield* seen(chargeOf({ amountRefundedMinor: 5 })), ["refunds of ch_1", noted])
    assert.deepStrictEqual(yield* seen(chargeOf({ isDisputed: true })), ["disputes of ch_1"])
    assert.deepStrictEqual(yield* seen(chargeOf()), [])
    assert.deepStrictEqual(yield* seen(chargeOf({ amountRefundedMinor: 5, metadata: {} })), [])
    assert.deepStrictEqual(yield* seen(chargeOf({ amountRefundedMinor: 5 }), true), [])
  }))
})
