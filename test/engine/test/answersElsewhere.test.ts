/** Workers that answer from another ledger than the run's, or that keep none, and workers that let nobody in. Who was charged how often is in the processor's books. */
import { CardDeclined, ChargeClient, ChargeGateway, ChargeKey, type ChargeOutcome, type ChargeRequest, Declined, Ledger, RunLedger, type SubmitError, Succeeded, TransportError, Unauthorized } from "@purser/core"
import { BillingRun, CommandRun, DispatchError, noProgress, RunDefinitions, type RunProgress } from "@purser/engine"
import { MockGateway, TestPipeline } from "@purser/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Effect, Fiber, Layer, Ref, Stream } from "effect"
import { paid, plain, report, requests, rowsOf, start, until, view, wish, world } from "../src/RunWorld.ts"

/** Workers out of the run's world, and what they have done. */
class Workers extends Context.Service<Workers, {
  readonly asked: Effect.Effect<ReadonlyArray<string>>
  /** By the books of the processor that they charge at. */
  readonly payments: (charges: ReadonlyArray<ChargeRequest>) => Effect.Effect<ReadonlyArray<number>>
}>()("@purser/test-engine/Workers") {}

type Submit = (request: ChargeRequest, asking: number) => Effect.Effect<ChargeOutcome, SubmitError>

/** The run's world with other workers than its own. They have a world of their own: a ledger, and a processor. */
const withWorkers = (make: (own: Context.Context<ChargeClient | ChargeGateway>, ours: Submit) => Submit, settings: Readonly<Record<string, string>> = {}) => {
  const workers = Layer.effectContext(Effect.gen(function*() {
    const own = yield* Layer.build(Layer.fresh(TestPipeline.layer))
    const asked: Array<string> = []
    const submit = make(own, (yield* ChargeClient).submit)
    return Context.make(ChargeClient, ChargeClient.of({
      submit: (request) => Effect.suspend(() => submit(request, asked.push(request.customerId)))
    })).pipe(Context.add(Workers, Workers.of({
      asked: Effect.sync(() => [...asked]),
      payments: (charges) => Effect.forEach(charges, ({ billingPeriod, customerId }) => Context.get(own, MockGateway).paymentsOf(customerId, billingPeriod))
    })))
  }))
  const runs = BillingRun.layer.pipe(Layer.provide(workers))
  return Layer.merge(CommandRun.layer, workers).pipe(Layer.provideMerge(world(RunDefinitions.layer(plain), undefined, RunLedger.layerMemory, settings, undefined, runs)))
}

const ownLedger = (own: Context.Context<ChargeClient>): Submit => Context.get(own, ChargeClient).submit

/** Keeps no ledger, and makes its key of the clock and a counter. */
const naive = (own: Context.Context<ChargeGateway>): Submit => (request, asking) =>
  Effect.gen(function*() {
    const gateway = Context.get(own, ChargeGateway)
    const chargeKey = ChargeKey.make(`${yield* Clock.currentTimeMillis}${asking}`.padStart(32, "0"))
    const order = { chargeKey, request, generation: 1, attempt: 1 }
    const { id } = yield* gateway.create(order, "")
    const payment = yield* gateway.confirm(order, { id, attempt: 1, paymentMethod: "pm_card", keySuffix: "" })
    return new Succeeded({ chargeKey: request.chargeKey, alreadySettled: false, paymentIntentId: payment.id, chargeId: payment.chargeId, amountReceivedMinor: payment.amountReceivedMinor })
  })

/** One naive worker in a fleet of the run's own. */
const mixed = (own: Context.Context<ChargeGateway>, ours: Submit): Submit => (request, asking) =>
  (request.customerId === "c8" || request.customerId === "c9" ? naive(own) : ours)(request, asking)

const declining = (): Submit => ({ chargeKey }) =>
  Effect.succeed(new Declined({ chargeKey, alreadySettled: false, paymentIntentId: null, code: "card_declined", declineCode: null, detail: "no" }))
const refusing = (): Submit => ({ chargeKey }) =>
  Effect.fail(new TransportError({ reason: new Unauthorized({ detail: "no server lets this key in" }), chargeKey }))

const planned = (runId: string, charges: ReadonlyArray<ChargeRequest>) =>
  Effect.flatMap(BillingRun, (runs) => runs.plan({
    runId, source: runId, rows: Stream.make(rowsOf(charges)),
    decide: ({ totals }) => Effect.succeed(totals.map(({ total }) => ({ scope: total, expected: { expectedMinor: total.amountMinor, headroomPercent: 110 } })))
  }))
const dispatched = (runId: string, concurrency = 4) => Effect.gen(function*() {
  const progress = yield* Ref.make<RunProgress>(noProgress)
  const error = yield* Effect.flip((yield* BillingRun).dispatch({ runId, concurrency, progress }))
  assert.instanceOf(error, DispatchError)
  return { error, progress: yield* Ref.get(progress), rows: (yield* (yield* RunLedger).summary(runId)).map(({ rows, state }) => [state, rows]) }
})

for (const [who, make] of [["with another ledger", ownLedger], ["that keep no ledger", naive]] as const) {
  describe(`workers ${who}`, () => {
    it.live("are asked once for each row, and a run of them ends at once with that", () =>
      Effect.gen(function*() {
        const all = requests(3)
        yield* planned("few", all)
        const { error, rows } = yield* dispatched("few")
        assert.deepStrictEqual([error.reason._tag, error.outcome, error.isRetryable, error.runId], ["AnsweredElsewhere", "unknown", false, "few"])
        assert.match(error.message, /^the workers answer from another ledger than this run's: [123] rows? w/)
        assert.deepStrictEqual(rows, [["planned", 3]])
        const { asked, payments } = yield* Workers
        const names = yield* asked
        assert.strictEqual(new Set(names).size, names.length)
        assert.deepStrictEqual((yield* payments(all)).filter((count) => count > 1), [])
        assert.strictEqual(yield* paid(all), 0)
      }).pipe(Effect.provide(withWorkers(make))))

    it.live("get no more of a long run than was on its way when the first answer came", () =>
      Effect.gen(function*() {
        const all = requests(200)
        yield* planned("long", all)
        const { error } = yield* dispatched("long", 4)
        const { asked, payments } = yield* Workers
        const { length } = yield* asked
        assert.isAtMost(length, 12)
        assert.strictEqual(error.reason._tag === "AnsweredElsewhere" && error.reason.rows, length)
        assert.deepStrictEqual((yield* payments(all)).filter((count) => count > 0).length, length)
        assert.isAtMost(Math.max(...(yield* payments(all))), 1)
      }).pipe(Effect.provide(withWorkers(make))))
  })
}

describe("answers that the run's ledger does not have", () => {
  it.live("end a command's run, which is told and not asked again", () =>
    Effect.gen(function*() {
      yield* planned("command", requests(3))
      const hand = yield* CommandRun
      const work = hand.dispatch({ runId: "command", concurrency: 4 }, () => Effect.void)
      const error = yield* Effect.flip(hand.registered({ runId: "command", source: "a", actor: "ada", worker: "w1" }, work, ({ _tag }) => _tag === "DispatchError"))
      assert.strictEqual(error._tag === "DispatchError" && error.reason._tag, "AnsweredElsewhere")
      assert.strictEqual((yield* view("command")).run.state, "finished")
    }).pipe(Effect.provide(withWorkers(naive))))

  it.live("end a workflow's run, whose report has them as open and says why", () =>
    Effect.gen(function*() {
      yield* start(wish("workflow", { count: 30, from: 0 }))
      const { notes, open, rows, state } = yield* report("workflow")
      assert.deepStrictEqual([state, rows, open, notes.length], ["finished", 30, 30, 1])
      assert.include(notes[0], "another ledger than this run's")
      assert.include((yield* view("workflow")).run.detail, "another ledger than this run's")
      const { payments } = yield* Workers
      assert.isAtMost(Math.max(...(yield* payments(requests(30)))), 1)
    }).pipe(Effect.provide(withWorkers(naive))))

  it.live("of one worker among the run's own are found at the end, and nobody was asked for twice", () =>
    Effect.gen(function*() {
      yield* start(wish("mixed", { count: 30, from: 0 }))
      const { notes, open, state } = yield* report("mixed")
      assert.deepStrictEqual([state, open], ["finished", 2])
      assert.include(notes[0], "2 rows were answered")
      assert.deepStrictEqual(yield* (yield* Workers).payments(requests(2, 8)), [1, 1])
      assert.strictEqual(yield* paid(requests(30)), 28)
    }).pipe(Effect.provide(withWorkers(mixed))))

  it.live("of charges that are unpaid end it when it sees them open for the second time, and are not asked for again", () =>
    Effect.gen(function*() {
      yield* planned("declined", requests(3))
      const { error, progress, rows } = yield* dispatched("declined")
      assert.strictEqual(error.reason._tag === "AnsweredElsewhere" && error.reason.rows, 3)
      assert.deepStrictEqual([rows, progress.outcomes.Declined, (yield* (yield* Workers).asked).length], [[["planned", 3]], 3, 3])
    }).pipe(Effect.provide(withWorkers(declining, { PURSER_RUN_PATIENCE: "1 hour" }))))

  it.live("are none where a declined charge was opened again meanwhile: the run leaves it to whoever opened it", () =>
    Effect.gen(function*() {
      const all = requests(2)
      const ledger = yield* Ledger
      // Another worker has the second row for longer than the run waits.
      yield* ledger.claim(all[1]!, "another")
      yield* planned("reopened", all)
      yield* MockGateway.fail({ step: "confirm", when: "before", reason: new CardDeclined({ code: "card_declined", declineCode: null, detail: "no" }) })
      const run = yield* Effect.forkScoped((yield* BillingRun).dispatch({ runId: "reopened", concurrency: 4 }))
      const { chargeKey } = all[0]!
      yield* until(ledger.find(chargeKey), (row) => row?.state === "declined")
      assert.strictEqual(yield* ledger.reopen({ chargeKeys: [chargeKey], from: ["declined"], actor: "ada", reason: "a new card" }), 1)
      const summary = yield* Fiber.join(run)
      assert.deepStrictEqual(new Set(summary.map(({ state }) => state)), new Set(["attached", "claimed"]))
      assert.strictEqual(yield* paid(all), 0)
    }).pipe(Effect.scoped, Effect.provide(world(RunDefinitions.layer(plain)))))
})

describe("a run that no worker lets in", () => {
  it.live("ends with that when every attempt was refused, and waits for nothing", () =>
    Effect.gen(function*() {
      yield* planned("refused", requests(3))
      const { error, progress, rows } = yield* dispatched("refused")
      assert.deepStrictEqual([error.reason._tag, error.outcome], ["ClientRefused", "not_charged"])
      assert.include(error.message, "no server lets this key in")
      assert.deepStrictEqual([rows, progress.submitted, progress.outcomes.error], [[["planned", 3]], 3, 3])
    }).pipe(Effect.provide(withWorkers(refusing, { PURSER_RUN_PATIENCE: "1 hour" }))))
})
