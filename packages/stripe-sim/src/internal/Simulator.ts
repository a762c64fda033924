/**
 * One simulated Stripe without sockets: account, keys, faults, journal and books together.
 *
 * Everything here is synchronous; time passes only between its methods. `server.ts` decides when they are called.
 */
import type Stripe from "stripe"
import type { RateLimits } from "../RateLimits.ts"
import type { RestrictedKey } from "../RestrictedKey.ts"
import type { BookEntry } from "../Books.ts"
import type { RequestEntry } from "../Journal.ts"
import type { WebhookEndpoint } from "../Webhook.ts"
import { Account, type AccountSettings } from "./Account.ts"
import { type Answer, lockTimeout, serverError } from "./answer.ts"
import { bookEntries } from "./bookkeeping.ts"
import * as endpoints from "./endpoints.ts"
import type { EventRecord } from "./EventLog.ts"
import { isOfType } from "./events.ts"
import { FaultBook, type Plan } from "./faults.ts"
import { settle } from "./attempt.ts"
import { settleCharge } from "./charges.ts"
import { closeDispute, disputeNamed } from "./disputes.ts"
import { settleRefund, shape } from "./refunds.ts"
import * as render from "./render.ts"
import type { DisputeRecord, EndpointRecord } from "./records.ts"
import type { Call } from "./route.ts"
import { Timeline } from "./Timeline.ts"
import { addEndpoint } from "./webhookEndpoints.ts"
import { Webhooks } from "./Webhooks.ts"

/** An entry that its request still fills in. */
export type OpenEntry = { -readonly [K in keyof RequestEntry]: RequestEntry[K] }

/** What a simulator is made with. */
export interface SimulatorSettings extends Omit<AccountSettings, "timeline" | "nextId" | "onEvent" | "platformId" | "idempotency"> {
  /** Real time in milliseconds. */
  readonly realNowMs: () => number
  /** A few characters that no other run of the simulator has, so that ids of two runs never meet. */
  readonly stamp: string
  /** How many requests the journal remembers. */
  readonly journalLimit: number
}

/** What a settled object looks like. */
export type Settled = Stripe.PaymentIntent | Stripe.Charge | Stripe.Refund

const defaultLaterMs = 60_000

const locking = ["/v1/payment_intents/", "/v1/invoices/", "/v1/charges/", "/v1/refunds/"]

const heldObject = (call: Call): string | undefined =>
  call.method === "POST" && locking.some((start) => call.path.startsWith(start)) ? call.path.split("/")[3] : undefined

const execute = (account: Account, call: Call, entry: OpenEntry): Answer => {
  account.moved = []
  account.request = call
  const answer = endpoints.execute(account, call)
  account.request = null
  for (const moved of account.moved) {
    entry.paymentsMoved++
    entry.movedMinor += moved.amountMinor
  }
  account.moved = []
  return answer
}

/** The simulator's state and what can be done to it. */
export class Simulator {
  readonly timeline: Timeline
  readonly account: Account
  readonly webhooks: Webhooks
  /** Idempotency keys are one space for each account; this switches them all. */
  readonly idempotency = { enabled: true }
  readonly restrictedKeys = new Map<string, RestrictedKey>()
  /** The rates to enforce; undefined for none. */
  limits: RateLimits | undefined
  readonly faults = new FaultBook()
  /** What a delay keeps waiting; each goes on when it is called. */
  readonly waiting = new Set<() => void>()
  /** Ends the delays that run inside the program, without going on. */
  readonly timers = new Set<() => void>()
  private entries: Array<OpenEntry> = []
  private arrived = 0
  private readonly journalLimit: number
  private readonly settings: AccountSettings
  private readonly connected = new Map<string, Account>()

  constructor(settings: SimulatorSettings) {
    this.timeline = new Timeline(settings.realNowMs)
    this.webhooks = new Webhooks(this.timeline)
    let ids = 0
    this.settings = {
      ...settings,
      platformId: `acct_1${settings.stamp}`,
      idempotency: this.idempotency,
      timeline: this.timeline,
      onEvent: (account, event) => this.dispatch(account, event),
      nextId: (prefix) => `${prefix}${settings.stamp}${(++ids).toString(36).toUpperCase().padStart(8, "0")}`
    }
    this.account = new Account(this.settings)
    this.journalLimit = settings.journalLimit
  }

  /** The accounts, the owner of the keys first. */
  accounts(): ReadonlyArray<Account> {
    return [this.account, ...this.connected.values()]
  }

  /** Opens a connected account. */
  connect(id: string): Account {
    const known = this.connected.get(id)
    if (known !== undefined) return known
    const made = new Account(this.settings, id)
    this.connected.set(id, made)
    return made
  }

  /** The account that a Stripe-Account header names, if the key has access to it. */
  accountOf(connectedId: string | undefined): Account | undefined {
    if (connectedId === undefined || connectedId === this.account.id) return this.account
    const known = this.connected.get(connectedId)
    if (known !== undefined || this.settings.strict) return known
    return /^acct_\w+$/.test(connectedId) && !connectedId.includes("NONE") ? this.connect(connectedId) : undefined
  }

  /** Writes the arrival of a request into the journal. */
  arrive(call: Call, plan: Plan): OpenEntry {
    const entry: OpenEntry = {
      seq: ++this.arrived,
      atMs: this.account.nowMs,
      requestId: call.requestId,
      method: call.method,
      path: call.path,
      ...(call.stripeAccount === undefined ? {} : { account: call.stripeAccount }),
      idempotencyKey: call.key ?? null,
      status: null,
      replayed: false,
      paymentsMoved: 0,
      movedMinor: 0,
      faults: plan.kinds
    }
    this.entries.push(entry)
    // Dropping in halves keeps the cost of the limit out of the ordinary request.
    if (this.entries.length >= this.journalLimit * 2) this.entries = this.entries.slice(-this.journalLimit)
    return entry
  }

  /** The journal, oldest first. */
  requests(): ReadonlyArray<RequestEntry> {
    return this.entries.slice(-this.journalLimit)
  }

  /** Takes the object that the call writes to; the answer of one that another request holds otherwise. */
  hold(account: Account, call: Call): Answer | undefined {
    const id = heldObject(call)
    if (id === undefined) return undefined
    if (account.locked.has(id)) return lockTimeout
    account.locked.add(id)
    return undefined
  }

  /** Runs the call as the plan says and gives its object back. */
  run(account: Account, call: Call, plan: Plan, entry: OpenEntry): Answer {
    const answer = this.runWith(account, call, plan, entry)
    const id = heldObject(call)
    if (id !== undefined) account.locked.delete(id)
    return answer
  }

  private runWith(account: Account, call: Call, plan: Plan, entry: OpenEntry): Answer {
    const fault = plan.verdict
    if (fault?.kind !== "serverError") return execute(account, call, entry)
    if (fault.effect === "done") execute(account, call, entry)
    if (fault.effect === "later") {
      this.timeline.after(fault.laterMs ?? defaultLaterMs, () => execute(account, call, entry), true)
    }
    return serverError(fault.stored)
  }

  /** Adds an endpoint of the account that owns the keys. */
  addEndpoint({ connect = false, events = ["*"], secret, url }: WebhookEndpoint): EndpointRecord {
    return addEndpoint(this.account, { url, events, connect, ...(secret === undefined ? {} : { secret }) })
  }

  /** Sends an event to the endpoints that want it. */
  private dispatch(account: Account, event: EventRecord): void {
    if (this.account.endpoints.size === 0 && account.endpoints.size === 0) return
    const wanting = (of: Account, connect: boolean): ReadonlyArray<EndpointRecord> =>
      Array.from(of.endpoints.values()).filter((endpoint) =>
        endpoint.connect === connect && !endpoint.disabled && endpoint.events.some((type) => isOfType(event.type, type))
      )
    const receivers = account === this.account
      ? wanting(account, false)
      : [...wanting(account, false), ...wanting(this.account, true)]
    event.pendingWebhooks = receivers.length
    this.deliver(account, event, receivers)
  }

  /** Sends an event once more, to all who want it now; false when there is no such event. */
  resend(eventId: string): boolean {
    for (const account of this.accounts()) {
      const event = account.events.get(eventId)
      if (event === undefined) continue
      this.dispatch(account, event)
      return true
    }
    return false
  }

  private deliver(account: Account, event: EventRecord, receivers: ReadonlyArray<EndpointRecord>): void {
    for (const receiver of receivers) {
      this.webhooks.deliver(receiver, event, () => {
        const twin: EventRecord = { ...event, id: account.nextId("evt_1"), seq: account.events.nextSeq, pendingWebhooks: 1 }
        account.events.put(twin)
        return twin
      })
    }
  }

  /** Moves the virtual clock forward; what is due by then happens. */
  advance(ms: number): void {
    this.timeline.advance(ms)
  }

  /** Runs what is due on the virtual clock; with `all`, also what 500 answers left for later. */
  rollForward(all = false): void {
    this.timeline.runDue()
    if (all) this.timeline.rollAll()
  }

  /** Ends every delay that is running. */
  release(): void {
    // A copy: what goes on may meet its next delay, which is not running yet.
    const running = Array.from(this.waiting)
    for (const goOn of running) goOn()
  }

  /** Ends what waits outside the API: a PaymentIntent, a charge of the one-call API, a refund. */
  settle(id: string, outcome: "succeeded" | "failed" | undefined): Settled | undefined {
    for (const account of this.accounts()) {
      const intent = settle(account, id, outcome)
      if (intent !== undefined) return render.paymentIntent(intent)
      const charge = settleCharge(account, id, outcome)
      if (charge !== undefined) return render.charge(charge)
      const refund = settleRefund(account, id, outcome ?? "succeeded")
      if (refund !== undefined) return shape(account, refund)
    }
    return undefined
  }

  /** Opens a dispute about a charge or a PaymentIntent's payment. */
  dispute(id: string, options: { readonly reason?: string | undefined; readonly inquiry?: boolean | undefined }): DisputeRecord | undefined {
    for (const account of this.accounts()) {
      const opened = disputeNamed(account, id, options)
      if (opened !== undefined) return opened
    }
    return undefined
  }

  /** Ends a dispute. */
  closeDispute(id: string, outcome: "won" | "lost"): DisputeRecord | undefined {
    for (const account of this.accounts()) {
      const closed = closeDispute(account, id, outcome)
      if (closed !== undefined) return closed
    }
    return undefined
  }

  /** One entry per account, identity and currency; intents without a payment count 0. */
  books(): ReadonlyArray<BookEntry> {
    return this.accounts().flatMap(bookEntries)
  }
}
