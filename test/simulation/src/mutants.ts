/**
 * The planted bugs: each one is a mistake that real billing programs make, put at a seam of the engine. A judge that lets
 * one of them pass is no judge.
 */
import {
  AuthenticationRequired, CardDeclined, ChargeError, ChargeRequest, type GatewayOrder, type Ledger, type SpendCap, Succeeded
} from "@purser/core"
import { ChargePipeline } from "@purser/engine"
import { Clock, Context, Effect } from "effect"
import { besideMutants } from "./besideMutants.ts"
import { isTight, sameScope } from "./Caps.ts"
import { capMutants } from "./capMutants.ts"
import type { Mutant } from "./Mutant.ts"
import { runMutants } from "./runMutants.ts"
import { isRetried, type Scenario } from "./Scenario.ts"

const isOf = (gateway: Scenario["gateway"]) => (scenario: Scenario) => scenario.gateway === gateway
const has = (kind: Scenario["faults"][number]["kind"]) => ({ faults }: Scenario) => faults.some((fault) => fault.kind === kind)
const all = (...tests: ReadonlyArray<(scenario: Scenario) => boolean>) => (scenario: Scenario) => tests.every((test) => test(scenario))

/** The same order under another identity at Stripe: every key of the gateway changes with it. */
const under = (order: GatewayOrder, suffix: string): GatewayOrder => ({ ...order, chargeKey: `${order.chargeKey.slice(0, -suffix.length)}${suffix}` as GatewayOrder["chargeKey"] })

const declinedAs = (order: GatewayOrder, detail: string) =>
  new ChargeError({
    reason: new CardDeclined({ code: "card_declined", declineCode: null, adviceCode: null, declinedChargeId: null, detail }),
    chargeKey: order.chargeKey,
    requestId: null
  })

const withLedger = (change: (ledger: Ledger["Service"], cap: SpendCap["Service"]) => Partial<Ledger["Service"]>): Mutant["ledger"] => ({ cap, ledger }) => ({
  ...ledger,
  ...change(ledger, cap)
})

/** All of them. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "key with a counter",
    story: "each delivery of a request gets a key of its own, from a counter of the worker",
    within: 60,
    shows: /paid \d+ times/,
    fits: ({ run }) => run === undefined,
    handler: (handler) => {
      let count = 0
      return (request) => {
        const spoiled = new ChargeRequest({ ...request })
        count += 1
        Object.defineProperty(spoiled, "chargeKey", { value: `${request.chargeKey.slice(0, 24)}${String(count).padStart(8, "0")}` })
        return handler(spoiled)
      }
    }
  },
  {
    name: "attach without compare-and-set",
    // One that asks for its lease before it confirms learns there what it did not learn from the row.
    story: "who made an object goes on with it, whatever the row says, and whosever the lease is",
    within: 1500,
    shows: /paid 2 times/,
    ledger: withLedger((ledger) => ({
      attach: (input) => Effect.map(ledger.attach(input), () => ({ _tag: "Attached" as const })),
      extend: (lease) => Effect.as(ledger.extend(lease), true)
    })),
    fits: ({ gateway, idempotency }) => gateway === "payment_intents" && !idempotency
  },
  {
    name: "release on unknown",
    story: "room is given back when a confirm failed, whether or not money may have moved",
    within: 300,
    shows: /was paid under a cap of/,
    fits: isTight,
    gateway: (gateway, { cap }) => ({
      ...gateway,
      confirm: (order, input) =>
        Effect.tapError(gateway.confirm(order, input), (error) =>
          error.outcome === "unknown" ? Effect.ignore(cap.release(order.chargeKey, input.attempt)) : Effect.void)
    })
  },
  {
    name: "release while the bank decides",
    story: "a payment that settles later counts as none for the cap",
    within: 600,
    shows: /was paid under a cap of|paid, and recorded as/,
    ledger: withLedger((ledger, cap) => ({
      settle: (input) =>
        Effect.tap(ledger.settle(input), () => input.outcome._tag === "Processing" ? Effect.ignore(cap.release(input.lease.chargeKey, 1000)) : Effect.void)
    })),
    fits: all(isTight, ({ charges }) => charges.some(({ paymentMethod }) => paymentMethod?.startsWith("pm_usBank") === true))
  },
  {
    name: "settle on timeout",
    story: "no answer to a confirm is recorded as a decline",
    within: 60,
    shows: /paid, and recorded as declined/,
    gateway: (gateway) => ({
      ...gateway,
      confirm: (order, input) =>
        Effect.mapError(gateway.confirm(order, input), (error) => error.outcome === "unknown" ? declinedAs(order, "no answer") : error)
    })
  },
  {
    name: "success on timeout",
    story: "no answer to a confirm is believed to be a payment",
    within: 200,
    shows: /recorded as paid, and Stripe has no payment/,
    gateway: (gateway) => ({
      ...gateway,
      confirm: (order, input) =>
        Effect.catchIf(gateway.confirm(order, input), (error) => error.outcome === "unknown", () =>
          Effect.map(gateway.retrieve(order, input.id), (payment) => ({
            ...payment, status: "succeeded" as const, amountReceivedMinor: payment.amountMinor, chargeId: payment.chargeId ?? "ch_believed"
          })))
    })
  },
  {
    name: "sweep without lease",
    story: "a sweep takes what is in work",
    within: 60,
    shows: /sweep gave .* a charge that .* holds/,
    ledger: ({ ledger }) => {
      const seen = new Map<string, ChargeRequest>()
      return {
        ...ledger,
        claim: (request, worker) => Effect.tap(ledger.claim(request, worker), () => Effect.sync(() => seen.set(request.chargeKey, request))),
        takeExpired: (worker, limit) =>
          Effect.gen(function*() {
            const taken = yield* ledger.takeExpired(worker, limit)
            for (const request of seen.values()) {
              const found = yield* ledger.find(request.chargeKey)
              if (found?.state !== "attached" && found?.state !== "claimed") continue
              const waiting = yield* ledger.claim(request, worker)
              if (waiting._tag !== "InProgress") continue
              // Nothing in the ledger lets a row be taken from its holder; so the thief forges the holder's own lease.
              const events = yield* ledger.events(request.chargeKey)
              const epoch = events.filter(({ detail, to }) => detail === "taken over" || to === "claimed").length
              return [...taken, {
                lease: { chargeKey: request.chargeKey, worker, epoch },
                leaseLeftMs: 15_000,
                request,
                state: found.state,
                resumed: true,
                generation: found.generation,
                attempt: found.attempt,
                paymentIntentId: found.paymentIntentId,
                paymentMethod: request.paymentMethod ?? null,
                chosenMethod: request.paymentMethod ?? null,
                declinedChargeId: null,
                sinceFirstClaimMs: 0,
                firstClaimedAtMs: yield* Clock.currentTimeMillis
              }]
            }
            return taken
          })
      }
    }
  },
  {
    name: "cap check then record",
    story: "the sum is read, then compared, then written",
    within: 200,
    shows: /was paid under a cap of/,
    fits: isTight,
    cap: ({ cap }) => ({
      ...cap,
      reserve: (input) =>
        Effect.gen(function*() {
          const report = (yield* cap.report(input.billingPeriod)).find((one) => sameScope(one, input))
          if (report === undefined || report.reservedMinor + BigInt(input.amountMinor) > report.capMinor) return yield* cap.reserve(input)
          yield* Effect.sleep(40)
          yield* cap.reserveByForce(input)
        })
    })
  },
  {
    name: "a claim that takes no room and says it did",
    story: "the claim's statement writes the lease, and forgets to see whether the sum fitted",
    within: 60,
    shows: /was paid under a cap of/,
    fits: (scenario) => isTight(scenario) && scenario.oneStore,
    saysRoomAnyway: true
  },
  {
    name: "a cap that only warns",
    story: "what does not fit is counted, and charged all the same",
    within: 60,
    shows: /was paid under a cap of/,
    fits: isTight,
    cap: ({ cap }) => ({ ...cap, reserve: (input) => Effect.asVoid(cap.reserveByForce(input)) })
  },
  {
    name: "a late release gives back the next attempt's room",
    story: "room is given back for the charge, and not for the attempt that was declined",
    within: 300,
    shows: /was paid under a cap of|the cap holds/,
    fits: isRetried,
    cap: ({ cap }) => ({ ...cap, release: (chargeKey, attempt) => cap.release(chargeKey, attempt + 1) })
  },
  {
    name: "a retry of what has moved on",
    story: "who asks again moves the row from wherever it is, and not from the attempt that he has read",
    within: 200,
    shows: /was asked for by .*, who had seen attempt/,
    fits: isRetried,
    ledger: withLedger((ledger) => ({
      reopen: ({ actor, chargeKeys, from, paymentMethod, reason }) =>
        ledger.reopen({ actor, chargeKeys, from, reason, ...(paymentMethod === undefined ? {} : { paymentMethod }) })
    }))
  },
  {
    name: "room of a retry that came late is kept",
    story: "who takes room for another attempt, and finds that others were faster and declined, does not look back",
    within: 200,
    shows: /the cap holds/,
    fits: isRetried,
    people: (engine) => Context.add(engine, ChargePipeline, { ...Context.get(engine, ChargePipeline), releaseUnpaid: () => Effect.void })
  },
  {
    name: "undone taken for done",
    story: "the store's driver swallows a serialization failure when room is taken or given back",
    within: 300,
    shows: /was paid under a cap of|the cap holds/,
    fits: has("serialization"),
    takesUndoneForDone: true
  },
  {
    name: "room taken anew by each delivery",
    story: "a reservation is not tied to its charge",
    within: 60,
    shows: /rejected without reason/,
    fits: (scenario) => !isTight(scenario),
    cap: ({ cap }) => {
      let count = 0
      return {
        ...cap,
        reserve: (input) => Effect.andThen(cap.reserve({ ...input, chargeKey: `${input.chargeKey.slice(0, 24)}${String(++count).padStart(8, "0")}` as typeof input.chargeKey }), cap.reserve(input))
      }
    }
  },
  {
    name: "confirm with a new intent each time",
    story: "a repeat makes a new object and pays that",
    within: 60,
    shows: /paid 2 times/,
    fits: isOf("payment_intents"),
    gateway: (gateway, { rng }) => ({
      ...gateway,
      confirm: (order, input) =>
        Effect.flatMap(gateway.create(order, `:n${rng.between(0, 1e9)}`), ({ id }) => Effect.map(gateway.confirm(order, { ...input, id }), (payment) => ({ ...payment, id: input.id })))
    })
  },
  {
    name: "adopt without metadata check",
    story: "a lost object is taken to be the customer's latest one of that amount",
    within: 200,
    shows: /recorded as paid, and Stripe has no payment/,
    gateway: (gateway, { ledger }) => ({
      ...gateway,
      create: (order, keySuffix) =>
        Effect.gen(function*() {
          const rows = yield* ledger.page(order.request.billingPeriod, "", 100)
          for (const row of rows) {
            const alike = row.request.stripeCustomerId === order.request.stripeCustomerId && row.request.amountMinor === order.request.amountMinor
            if (!alike || row.paymentIntentId === null || row.chargeKey === order.chargeKey || row.generation !== order.generation) continue
            const found = yield* gateway.retrieve({ ...order, chargeKey: row.chargeKey, request: row.request }, row.paymentIntentId)
            return { ...found, chargeKey: order.chargeKey }
          }
          return yield* gateway.create(order, keySuffix)
        }).pipe(Effect.catchTag("LedgerError", () => gateway.create(order, keySuffix))),
      retrieve: (order, id) => Effect.map(gateway.retrieve(order, id), (payment) => ({ ...payment, chargeKey: order.chargeKey })),
      confirm: (order, input) => Effect.map(gateway.confirm(order, input), (payment) => ({ ...payment, chargeKey: order.chargeKey }))
    }),
    fits: isOf("payment_intents")
  },
  {
    name: "stored decline taken for new",
    story: "a later attempt asks under the key of the first, and believes the stored answer",
    within: 600,
    shows: /refusals are recorded, and Stripe knows of/,
    fits: all(isOf("payment_intents"), has("retryByPerson"), ({ idempotency }) => idempotency),
    gateway: (gateway) => ({
      ...gateway,
      confirm: (order, input) =>
        Effect.mapError(gateway.confirm(order, { ...input, attempt: 1 }), (error) =>
          error.reason._tag === "CardDeclined"
            ? new ChargeError({ ...error, reason: new CardDeclined({ ...error.reason, declinedChargeId: null }) })
            : error.reason._tag === "AuthenticationRequired"
            ? new ChargeError({ ...error, reason: new AuthenticationRequired({ ...error.reason, declinedChargeId: null }) })
            : error)
    })
  },
  {
    name: "retry after unknown with a new key",
    story: "each call of a one-call API has a key of its own",
    within: 600,
    shows: /paid \d+ times/,
    fits: isOf("charges"),
    gateway: (gateway, { rng }) => ({
      ...gateway,
      confirm: (order, input) =>
        Effect.map(gateway.confirm(under(order, rng.between(0, 0xffffff).toString(16).padStart(6, "0")), input), (payment) => ({ ...payment, chargeKey: order.chargeKey }))
    })
  },
  {
    name: "dead worker's rows are forgotten",
    story: "nobody takes up what a worker left in the middle",
    within: 300,
    shows: /still (claimed|attached) long after/,
    fits: has("kill"),
    ledger: withLedger(() => ({ takeExpired: () => Effect.succeed([]) }))
  },
  {
    name: "answer before the record",
    story: "a client is told that it is paid while nobody knows",
    within: 600,
    shows: /a client was told that it is paid, and it is not/,
    handler: (handler) => (request) =>
      Effect.catchIf(handler(request), (error) => error.outcome === "unknown" && error._tag === "ChargeError", () =>
        Effect.succeed(new Succeeded({ chargeKey: request.chargeKey, alreadySettled: false, paymentIntentId: "pi_soon", chargeId: null, amountReceivedMinor: request.amountMinor }))),
    fits: ({ charges }) => charges.some(({ paymentMethod }) => paymentMethod?.includes("Declined") === true || paymentMethod?.includes("authentication") === true)
  },
  {
    name: "refusal without the object's evidence",
    story: "a stored 500 is taken for a refusal",
    within: 200,
    shows: /paid, and recorded as declined/,
    gateway: (gateway) => ({
      ...gateway,
      confirm: (order, input) =>
        Effect.mapError(gateway.confirm(order, input), (error) =>
          error.reason._tag === "GatewayUnavailable" && error.reason.status !== null ? declinedAs(order, "500") : error)
    })
  },
  {
    name: "amount through a float",
    story: "19.99 times a hundred is 1998.9999999999998",
    within: 30,
    shows: /quarantined: .* amount is/,
    gateway: (gateway) => ({
      ...gateway,
      create: (order, keySuffix) => {
        const request = new ChargeRequest({ ...order.request })
        Object.defineProperty(request, "amountMinor", { value: Math.trunc(order.request.amountMinor / 100 * 100 - 1e-9) })
        return gateway.create({ ...order, request }, keySuffix)
      }
    }),
    fits: isOf("payment_intents")
  },
  {
    name: "the last one who asked gets the answer",
    story: "a server remembers one return address",
    within: 30,
    shows: /was sent to/,
    answersLastAsker: true
  },
  {
    name: "any answer is mine",
    story: "a client takes the next answer for its own, without looking at the id",
    within: 60,
    shows: /was given the answer to/,
    takesAnyReply: true
  },
  ...capMutants,
  ...runMutants,
  ...besideMutants
]
