/**
 * Webhooks in a world: the simulated Stripe posts its events to offices that keep and deal with them, and somebody else posts
 * what Stripe never said. What is answered with 200 has to be kept, what is kept has to be dealt with, and only the account decides.
 */
import { type ChargeRecord, WebhookInbox } from "@purser/core"
import { Refunds, Webhooks } from "@purser/engine"
import { StripeWebhooks } from "@purser/stripe"
import type { WebhookRequest } from "@purser/stripe-sim"
import { createHmac } from "node:crypto"
import { Cause, Context, Effect, Exit, Layer, Option, Redacted } from "effect"
import type { Beside } from "./Beside.ts"
import type { HooksPlan } from "./BesidePlan.ts"
import { Office, type OfficeShared } from "./Office.ts"
import { type Rng, rngOf } from "./Rng.ts"

const url = "https://purser.test/webhooks/stripe"
const secret = "whsec_of_the_simulated_endpoint"

/** Where the simulated Stripe sends its events. */
export const endpoint = { url, secret }

/** How long Stripe waits for an answer. */
const patienceMs = 20_000

const signed = (body: string, nowMs: number, by: string): string => {
  const timestampS = Math.floor(nowMs / 1000)
  return `t=${timestampS},v1=${createHmac("sha256", by).update(`${timestampS}.${body}`).digest("hex")}`
}

/** When it was signed, by its own word: it is good for five minutes from then on, also where Stripe's clock was wrong. */
const signedAtMs = ({ headers }: WebhookRequest): number => 1000 * Number(/t=(\d+)/.exec(headers["stripe-signature"] ?? "")?.[1] ?? 0)

const forgedPrefix = "evt_forged"

/** An event that claims money for a row's object. */
const forged = ({ paymentIntentId, request }: ChargeRecord, number: number, nowMs: number): string => {
  const id = paymentIntentId?.startsWith("charges:") === true ? "ch_forged" : paymentIntentId ?? "pi_forged"
  const type = id.startsWith("ch_") ? "charge.succeeded" : id.startsWith("in_") ? "invoice.paid" : "payment_intent.succeeded"
  return JSON.stringify({
    object: "event", id: `${forgedPrefix}_${number}`, type, created: Math.floor(nowMs / 1000), livemode: false,
    data: { object: { id, status: "succeeded", amount: request.amountMinor, amount_received: request.amountMinor, customer: request.stripeCustomerId } }
  })
}

/** Takes what is posted, by whichever office is up. */
class Mailroom {
  private readonly shared: OfficeShared
  private readonly offices: ReadonlyArray<Office<Webhooks>>
  private readonly rng: Rng
  /** The first event that Stripe sent, for somebody who keeps it. */
  kept: { readonly request: WebhookRequest; readonly atMs: number } | undefined

  constructor(shared: OfficeShared, offices: ReadonlyArray<Office<Webhooks>>) {
    this.shared = shared
    this.offices = offices
    this.rng = rngOf(shared.scenario.seed).branch("mailroom")
  }

  /** Answers with a status, as an HTTP server before the offices would. */
  post({ body, headers }: WebhookRequest): Effect.Effect<number> {
    return Effect.suspend(() => {
      const up = this.offices.filter(({ process }) => !process.dead)
      if (up.length === 0) return Effect.succeed(503)
      return this.rng.pick(up).ask((services) => Context.get(services, Webhooks).receive(Buffer.from(body), headers["stripe-signature"])).pipe(
        Effect.timeoutOption(patienceMs),
        Effect.map((answer) => {
          const exit = Option.getOrUndefined(answer)
          if (exit === undefined) return 504
          if (Exit.isSuccess(exit)) return 200
          const refused = exit.cause.reasons.find(Cause.isFailReason)?.error
          return refused?._tag === "WebhookRefused" ? 400 : 503
        })
      )
    }).pipe(Effect.delay(this.rng.between(5, 80)))
  }

  /** A call of Stripe's. */
  readonly receive = (request: WebhookRequest): Effect.Effect<number> =>
    Effect.suspend(() => {
      this.kept ??= { request, atMs: signedAtMs(request) }
      return Effect.tap(this.post(request), (status) =>
        Effect.sync(() => this.shared.storm.tell("stripe", `posts ${/"type": "([^"]*)"/.exec(request.body)?.[1]}`, status)))
    })
}

/** What the posted events came to, when the world has come to rest. */
const inboxProblems = (statusOf: ReadonlyMap<string, number>, waiting: ReadonlyArray<string>, known: ReadonlySet<string>): ReadonlyArray<string> => [
  ...[...statusOf].filter(([id, status]) => status === 200 && !known.has(id)).map(([id]) => `the event ${id} was answered for, and is not kept`),
  ...[...known].filter((id) => id.startsWith(forgedPrefix)).map((id) => `the forged event ${id} was kept`),
  ...waiting.map((id) => `the event ${id} waits long after the last fault`)
]

/** Offices that take webhooks, and those who post to them. */
export const makeHooks = Effect.fnUntraced(function*(shared: OfficeShared, { forgeries, offices: count }: HooksPlan) {
  const { books, kernel, ledger, mutant, sim, storm, tools, violations } = shared
  const services = Layer.effect(Webhooks, Effect.map(Webhooks, (webhooks) => mutant?.hooks?.(webhooks, tools) ?? webhooks)).pipe(
    Layer.provide(Webhooks.layerNoDeps),
    Layer.provide(Refunds.layer),
    Layer.provide(StripeWebhooks.layer({ secrets: [Redacted.make(secret)] }))
  )
  const offices = Array.from({ length: count }, (_, index) => new Office(`hooks-${index}`, shared, { layer: services, run: (built) => Context.get(built, Webhooks).run }))
  const mailroom = new Mailroom(shared, offices)
  const inbox = Context.get(books, WebhookInbox)

  /** Stripe's own events, kept for longer than a signature is good for, or events that somebody has made up. */
  const forge = Effect.fnUntraced(function*(how: HooksPlan["forgeries"][number]["how"], number: number) {
    const { kept } = mailroom
    const { nowMs } = kernel
    if (how === "kept") {
      if (kept === undefined || nowMs - kept.atMs < 301_000) return
      const status = yield* mailroom.post(kept.request)
      if (status === 200) violations.push("an event that was posted again after more than five minutes was taken")
      return
    }
    const rows = yield* Effect.orDie(ledger.page(shared.requests[0]!.billingPeriod, "", 100))
    const row = rows.find(({ paymentIntentId, state }) => paymentIntentId !== null && state !== "succeeded") ?? rows[0]
    if (row === undefined) return
    const body = forged(row, number, nowMs)
    const headers: Record<string, string> = how === "unsigned" ? {} : { "stripe-signature": signed(body, nowMs, "whsec_of_somebody_else") }
    if ((yield* mailroom.post({ url, headers, body })) === 200) violations.push(`a forged event was taken: ${body}`)
  })

  const start = Effect.gen(function*() {
    yield* Effect.forEach(offices, (office) => office.prepare())
    shared.mail.receive = mailroom.receive
    yield* sim.webhooks.addFaults(...storm.of("webhook").map(({ fault }) => fault))
    offices.forEach((office) => office.start())
    // What is due at Stripe by the clock alone happens, and is told, when somebody asks; here somebody does.
    yield* Effect.forkChild(Effect.forever(Effect.andThen(Effect.sleep(60_000), sim.advanceClock(0))))
    yield* Effect.forEach(forgeries, ({ atMs, how }, number) => Effect.forkChild(Effect.delay(forge(how, number), atMs)))
  })

  return {
    offices,
    start,
    calm: Effect.andThen(sim.webhooks.clearFaults, sim.webhooks.release),
    isAtRest: Effect.map(Effect.orDie(inbox.totals), (totals) => totals.every(({ verdict }) => verdict !== null)),
    judge: Effect.gen(function*() {
      const records = yield* Effect.orDie(inbox.recent(10_000))
      const deliveries = yield* sim.webhooks.deliveries
      return inboxProblems(
        new Map(deliveries.flatMap(({ eventId, status }) => status === 200 ? [[eventId, status]] : [])),
        // What has come just now, on its second or third try, is being dealt with.
        records.filter(({ receivedMs, verdict }) => verdict === null && receivedMs < kernel.nowMs - 600_000).map(({ event }) => event.id),
        new Set(records.map(({ event }) => event.id))
      )
    })
  } satisfies Beside
})
