/**
 * Clients that charge, repeat, confirm and cancel at random through two proxies over one store, while Stripe resets,
 * cuts, stalls and lies. One seed is one order of faults and of actions for each client.
 */
import { ProxyServer, VaultAdmin, VaultStore } from "@purser/spend-cap-proxy"
import { type FaultAction, StripeSim } from "@purser/stripe-sim"
import { Context, Effect, Layer } from "effect"
import { makeVault, paid, proxyLayer, raw, type RawAnswer, settled } from "./world.ts"

/** How a soak is run. */
export interface SoakOptions {
  readonly seed: number
  readonly clients: number
  readonly actions: number
  readonly expectedMinor: number
}

/** What was left of it. Amounts in minor units. */
export interface SoakReport {
  readonly capMinor: number
  readonly paidMinor: number
  readonly heldMinor: number
  /** By the simulator's books. */
  readonly movedMinor: number
  readonly payments: number
  readonly refusedOverCap: number
  readonly broken: number
  readonly faults: number
}

/** Numbers from 0 to below 1, the same for the same seed. */
const generator = (seed: number) => {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

const faults: ReadonlyArray<FaultAction> = [
  { kind: "reset", at: "before" }, { kind: "reset", at: "after" }, { kind: "truncate" }, { kind: "rateLimited" }, { kind: "lockTimeout" }, { kind: "keyInUse" },
  { kind: "serverError", effect: "none", stored: false }, { kind: "serverError", effect: "done", stored: false }, { kind: "serverError", effect: "done", stored: true },
  { kind: "serverError", effect: "later", stored: true }, { kind: "badGateway", effect: "done" }, { kind: "badGateway", effect: "none" },
  { kind: "foreignJson", status: 403, effect: "none" }, { kind: "foreignJson", status: 200, effect: "done" },
  { kind: "delay", at: "during", delayMs: 5 }, { kind: "delay", at: "after", delayMs: 5 }
]
const paths = ["/v1/charges", "/v1/payment_intents", "/v1/payment_intents/*/confirm", "/v1/payment_intents/*/cancel"]

/** Runs one soak in a world with one proxy; a second one is started beside it. */
export const soak = Effect.fnUntraced(function*({ actions, clients, expectedMinor, seed }: SoakOptions) {
  const sim = yield* StripeSim
  const admin = yield* VaultAdmin
  const first = yield* ProxyServer
  // A process of its own in all but name: the two meet in the database alone.
  const beside = yield* Layer.build(Layer.fresh(Layer.provideMerge(proxyLayer(), VaultStore.layer)))
  const second = Context.get(beside, ProxyServer)
  const { id, key: vaultKey } = yield* makeVault({ expectedMinor })
  let broken = 0
  let refusedOverCap = 0
  // Which fault meets whom is a matter of time: this one meets somebody.
  let ordered = 1
  yield* sim.faults.add({ match: { method: "POST", path: "/v1/charges" }, action: { kind: "reset", at: "after" } })
  const forms = new Map<string, { readonly path: string; readonly body: string }>()

  const client = (n: number) =>
    Effect.gen(function*() {
      const random = generator(seed * 1000 + n)
      const pick = <A>(from: ReadonlyArray<A>): A => from[Math.floor(random() * from.length)]!
      const own: Array<string> = []
      const send = (key: string, path: string, body: string) =>
        Effect.gen(function*() {
          forms.set(key, { path, body })
          own.push(key)
          const got = yield* Effect.result(raw(random() < 0.5 ? first : second, path, { vaultKey, key, body }))
          if (got._tag === "Failure") {
            broken += 1
            return undefined
          }
          if (got.success.json?.error?.code === "spend_cap_exceeded") refusedOverCap += 1
          return got.success
        })
      for (let at = 0; at < actions; at++) {
        if (random() < 0.4) {
          ordered += 1
          yield* sim.faults.add({ match: { method: "POST", path: pick(paths) }, action: pick(faults) })
        }
        const amount = 50 + Math.floor(random() * 450)
        const terms = `amount=${amount}&currency=usd&customer=cus_${n}&metadata[customer_id]=c${n}-${at}&metadata[billing_period]=2026-07`
        const source = random() < 0.2 ? "pm_card_visa_chargeDeclined" : "pm_card_visa"
        const act = random()
        if (act < 0.35) yield* send(`${seed}-${n}-${at}`, "/v1/charges", `${terms}&source=${source}`)
        else if (act < 0.55 && own.length > 0) {
          const key = pick(own)
          const { body, path } = forms.get(key)!
          yield* send(key, path, body)
        } else {
          const made: RawAnswer | undefined = yield* send(`${seed}-${n}-${at}`, "/v1/payment_intents", `${terms}&payment_method=${source}&allowed_payment_method_types[0]=card`)
          const intent = made?.json?.id as string | undefined
          if (intent?.startsWith("pi_") === true) {
            if (random() < 0.2) yield* send(`${seed}-${n}-${at}-x`, `/v1/payment_intents/${intent}/cancel`, "")
            else yield* send(`${seed}-${n}-${at}-c`, `/v1/payment_intents/${intent}/confirm`, "off_session=true")
          }
        }
      }
    })
  yield* Effect.forEach(Array.from({ length: clients }, (_, n) => n), client, { concurrency: "unbounded" })
  yield* sim.faults.clear
  yield* sim.rollForward
  // Every key once more, in fair weather: what can be known is known then.
  for (const [key, { body, path }] of forms) yield* Effect.ignore(raw(first, path, { vaultKey, key, body }))
  yield* Effect.andThen(settled, Effect.provide(settled, beside))
  const { capMinor, heldMinor, paidMinor } = yield* admin.show(id)
  const moved = yield* paid
  const report: SoakReport = { capMinor, heldMinor, paidMinor, movedMinor: moved.amountMinor, payments: moved.payments, refusedOverCap, broken, faults: ordered }
  return report
}, Effect.scoped)

/** What must hold after a soak, each with what was found; empty when all is well. */
export const violations = ({ capMinor, heldMinor, movedMinor, paidMinor }: SoakReport): ReadonlyArray<string> => [
  ...(movedMinor > capMinor ? [`${movedMinor} moved, the cap is ${capMinor}`] : []),
  ...(paidMinor + heldMinor > capMinor ? [`${paidMinor} + ${heldMinor} taken, the cap is ${capMinor}`] : []),
  ...(movedMinor > paidMinor + heldMinor ? [`${movedMinor} moved, only ${paidMinor} + ${heldMinor} is counted`] : []),
  ...(paidMinor > movedMinor ? [`${paidMinor} is called paid, only ${movedMinor} moved`] : [])
]
