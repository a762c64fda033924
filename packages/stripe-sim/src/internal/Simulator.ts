/**
 * One simulated Stripe without sockets: account, keys, faults, journal and books together.
 *
 * Everything here is synchronous; time passes only between its methods. `server.ts` decides when they are called.
 */
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
import { IdempotencyKeys } from "./idempotency.ts"
import { settle } from "./attempt.ts"
import type { EndpointRecord, IntentRecord } from "./records.ts"
import type { Call } from "./route.ts"
import { Timeline } from "./Timeline.ts"
import { addEndpoint } from "./webhookEndpoints.ts"
import { Webhooks } from "./Webhooks.ts"

/** An entry that its request still fills in. */
export type OpenEntry = { -readonly [K in keyof RequestEntry]: RequestEntry[K] }

/** What a simulator is made with. */
export interface SimulatorSettings extends Omit<AccountSettings, "timeline" | "nextId" | "onEvent"> {
  /** Real time in milliseconds. */
  readonly realNowMs: () => number
  /** A few characters that no other run of the simulator has, so that ids of two runs never meet. */
  readonly stamp: string
  /** How many requests the journal remembers. */
  readonly journalLimit: number
}

const defaultLaterMs = 60_000

const locking = ["/v1/payment_intents/", "/v1/invoices/", "/v1/charges/", "/v1/refunds/"]

const heldObject = (call: Call): string | undefined =>
  call.method === "POST" && locking.some((start) => call.path.startsWith(start)) ? call.path.split("/")[3] : undefined

/** The simulator's state and what can be done to it. */
export class Simulator {
  readonly timeline: Timeline
  readonly account: Account
  readonly webhooks: Webhooks
  readonly keys = new IdempotencyKeys()
  readonly faults = new FaultBook()
  /** What a delay keeps waiting; each goes on when it is called. */
  readonly waiting = new Set<() => void>()
  private entries: Array<OpenEntry> = []
  private arrived = 0
  private readonly journalLimit: number

  constructor(settings: SimulatorSettings) {
    this.timeline = new Timeline(settings.realNowMs)
    this.webhooks = new Webhooks(this.timeline)
    let ids = 0
    this.account = new Account({
      ...settings,
      timeline: this.timeline,
      onEvent: (account, event) => this.dispatch(account, event),
      nextId: (prefix) => `${prefix}${settings.stamp}${(++ids).toString(36).toUpperCase().padStart(8, "0")}`
    })
    this.journalLimit = settings.journalLimit
  }

  /** Writes the arrival of a request into the journal. */
  arrive(call: Call, plan: Plan): OpenEntry {
    const entry: OpenEntry = {
      seq: ++this.arrived,
      atMs: this.account.nowMs,
      requestId: call.requestId,
      method: call.method,
      path: call.path,
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
  hold(call: Call): Answer | undefined {
    const id = heldObject(call)
    if (id === undefined) return undefined
    if (this.account.locked.has(id)) return lockTimeout
    this.account.locked.add(id)
    return undefined
  }

  /** Runs the call as the plan says and gives its object back. */
  run(call: Call, plan: Plan, entry: OpenEntry): Answer {
    const answer = this.runWith(call, plan, entry)
    const id = heldObject(call)
    if (id !== undefined) this.account.locked.delete(id)
    return answer
  }

  private runWith(call: Call, plan: Plan, entry: OpenEntry): Answer {
    const fault = plan.verdict
    if (fault?.kind !== "serverError") return this.execute(call, entry)
    if (fault.effect === "done") this.execute(call, entry)
    if (fault.effect === "later") {
      this.timeline.after(fault.laterMs ?? defaultLaterMs, () => this.execute(call, entry), true)
    }
    return serverError(fault.stored)
  }

  private execute(call: Call, entry: OpenEntry): Answer {
    this.account.request = call
    const answer = endpoints.execute(this.account, call)
    this.account.request = null
    this.note(entry)
    return answer
  }

  private note(entry: OpenEntry): void {
    if (this.account.moved.length === 0) return
    for (const moved of this.account.moved) {
      entry.paymentsMoved++
      entry.movedMinor += moved.amountMinor
    }
    this.account.moved = []
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
    const event = this.account.events.get(eventId)
    if (event !== undefined) this.dispatch(this.account, event)
    return event !== undefined
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
    this.account.moved = []
  }

  /** Runs what is due on the virtual clock; with `all`, also what 500 answers left for later. */
  rollForward(all = false): void {
    this.timeline.runDue()
    if (all) this.timeline.rollAll()
    this.account.moved = []
  }

  /** Ends every delay that is running. */
  release(): void {
    // A copy: what goes on may meet its next delay, which is not running yet.
    const running = Array.from(this.waiting)
    for (const goOn of running) goOn()
  }

  /** Ends what waits outside the API; the money it moves belongs to no request. */
  settle(intentId: string, outcome: "succeeded" | "failed" | undefined): IntentRecord | undefined {
    const intent = settle(this.account, intentId, outcome)
    this.account.moved = []
    return intent
  }

  /** One entry per identity and currency; intents without a payment count 0. */
  books(): ReadonlyArray<BookEntry> {
    return bookEntries(this.account)
  }
}
