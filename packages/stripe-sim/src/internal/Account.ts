/**
 * The account's memory: every object, its events and the ids.
 *
 * Defines which ids exist (all that are asked for, or in strict mode only what was created) and the order of
 * creation. Refuses to move money: that is `attempt.ts`, `charges.ts` and `refunds.ts`.
 */
import type Stripe from "stripe"
import * as TestCards from "../TestCards.ts"
import type { Problem } from "./answer.ts"
import { Collection } from "./Collection.ts"
import { EventLog, type EventRecord, type ObjectOf } from "./EventLog.ts"
import { IdempotencyKeys } from "./idempotency.ts"
import { RateLimiter } from "./RateLimiter.ts"
import type {
  ChargeRecord,
  CustomerRecord,
  DisputeRecord,
  EndpointRecord,
  IntentRecord,
  InvoiceItemRecord,
  InvoiceRecord,
  PaymentMethodRecord,
  RefundRecord,
  TestClockRecord
} from "./records.ts"
import type { Call } from "./route.ts"
import { SearchIndex } from "./SearchIndex.ts"
import type { Timeline } from "./Timeline.ts"

/** What an account is made with. */
export interface AccountSettings {
  readonly timeline: Timeline
  /** A new id with this prefix, unlike any other of all runs. */
  readonly nextId: (prefix: string) => string
  /** The id of the account that owns the keys. */
  readonly platformId: string
  /** The switch of all idempotency keys. */
  readonly idempotency: { readonly enabled: boolean }
  readonly strict: boolean
  readonly maximumMinor: number
  readonly keyInUseType: Problem["type"]
  /** How long a bank debit takes to settle on the virtual clock. */
  readonly bankSettlesMs: number
  /** How long a change stays invisible to searches, on the virtual clock. */
  readonly searchDelayMs: number
  /** How many events an account remembers. */
  readonly eventsLimit: number
  /** Told of each event. */
  readonly onEvent: (account: Account, event: EventRecord) => void
}

/** The group of the items that wait for the customer's next invoice. */
export const pendingOf = (customerId: string): string => `pending ${customerId}`

/** A payment that succeeded while a request was being answered. */
export interface Movement {
  readonly payment: string
  readonly amountMinor: number
  readonly currency: string
}

/** What is due on a test clock. */
interface ClockDue {
  readonly clock: string
  readonly dueS: number
  readonly run: () => void
}

/** The state of one simulated Stripe account. */
export class Account {
  readonly settings: AccountSettings
  readonly id: string
  /** `acct_…` of a connected account, null for the account that owns the keys. */
  readonly connectedId: string | null
  readonly customers = new Map<string, CustomerRecord>()
  readonly methods = new Map<string, PaymentMethodRecord>()
  readonly intents = new Collection<IntentRecord>((intent) => intent.customer)
  readonly charges = new Collection<ChargeRecord>((charge) => charge.customer)
  readonly refunds = new Collection<RefundRecord>((refund) => refund.charge)
  readonly invoices = new Collection<InvoiceRecord>((invoice) => invoice.customer)
  /** By invoice, those that wait for one by `pendingOf` their customer. */
  readonly invoiceItems = new Collection<InvoiceItemRecord>((item) => item.invoice ?? pendingOf(item.customer))
  readonly disputes = new Collection<DisputeRecord>((dispute) => dispute.charge)
  readonly searchableIntents: SearchIndex<IntentRecord>
  readonly searchableCharges: SearchIndex<ChargeRecord>
  readonly searchableInvoices: SearchIndex<InvoiceRecord>
  readonly clocks = new Collection<TestClockRecord>(() => null)
  readonly endpoints = new Collection<EndpointRecord>(() => null)
  readonly events: EventLog
  /** The request that is being answered; events name it. */
  request: Pick<Call, "requestId" | "key"> | null = null
  readonly keys: IdempotencyKeys
  readonly limiter = new RateLimiter()
  /** Objects that a running request holds. */
  readonly locked = new Set<string>()
  /** Payments made since the journal last looked. */
  moved: Array<Movement> = []

  private agenda: Array<ClockDue> = []
  /** When the account was made. */
  readonly openedS: number

  constructor(settings: AccountSettings, connectedId: string | null = null) {
    this.settings = settings
    this.connectedId = connectedId
    this.id = connectedId ?? settings.platformId
    this.openedS = this.nowS
    const nowMs = () => this.nowMs
    this.searchableIntents = new SearchIndex(this.intents, nowMs, settings.searchDelayMs)
    this.searchableCharges = new SearchIndex(this.charges, nowMs, settings.searchDelayMs)
    this.searchableInvoices = new SearchIndex(this.invoices, nowMs, settings.searchDelayMs)
    this.keys = new IdempotencyKeys(settings.idempotency)
    this.events = new EventLog(settings.eventsLimit, () => this.nowS)
  }

  /** The virtual time in milliseconds. */
  get nowMs(): number {
    return this.settings.timeline.nowMs
  }
  /** The virtual time in whole seconds, as Stripe stamps objects. */
  get nowS(): number {
    return Math.floor(this.nowMs / 1000)
  }
  /** The time in whole seconds for what belongs to this customer. */
  nowSFor(customerId: string | null): number {
    return this.clocks.get(this.testClockOf(customerId) ?? "")?.frozenS ?? this.nowS
  }
  /** The test clock that this customer lives on. */
  testClockOf(customerId: string | null): string | null {
    return this.clocks.size === 0 ? null : this.customers.get(customerId ?? "")?.testClock ?? null
  }
  /** Plans something on the clock of this customer. */
  laterFor(customerId: string | null, delayMs: number, run: () => void): void {
    const clock = this.clocks.get(this.testClockOf(customerId) ?? "")
    if (clock === undefined) this.later(delayMs, run)
    else this.agenda.push({ clock: clock.id, dueS: clock.frozenS + Math.ceil(delayMs / 1000), run })
  }
  /** Moves a test clock forward and stops at each thing that is due on the way. */
  advanceClock(id: string, targetS: number): void {
    const setTo = (frozenS: number): void => {
      const clock = this.clocks.get(id)
      if (clock !== undefined) this.clocks.put({ ...clock, frozenS: Math.max(clock.frozenS, frozenS) })
    }
    while (true) {
      const next = this.agenda
        .filter(({ clock, dueS }) => clock === id && dueS <= targetS)
        .reduce<ClockDue | undefined>((first, item) => first === undefined || item.dueS < first.dueS ? item : first, undefined)
      if (next === undefined) break
      this.agenda = this.agenda.filter((item) => item !== next)
      setTo(next.dueS)
      next.run()
    }
    setTo(targetS)
  }
  /** A new id with Stripe's prefix. */
  nextId(prefix: string): string {
    return this.settings.nextId(prefix)
  }
  /** Plans something on the virtual clock. */
  later(delayMs: number, run: () => void): void {
    this.settings.timeline.after(delayMs, run)
  }
  /** Tells that an object changed; `show` writes out the version of now, whenever it is asked. */
  emit<T extends Stripe.Event.Type>(type: T, show: () => ObjectOf<T>): EventRecord {
    const event: EventRecord = {
      id: this.nextId("evt_1"),
      seq: this.events.nextSeq,
      createdS: this.nowS,
      type,
      show,
      requestId: this.request?.requestId ?? null,
      idempotencyKey: this.request?.key ?? null,
      account: this.connectedId,
      pendingWebhooks: 0
    }
    this.events.put(event)
    this.settings.onEvent(this, event)
    return event
  }

  /**
   * The customer with this id; a deleted one is found and says so. One that nobody created or changed is the same
   * each time it is asked for, so it takes no memory: a million rows name a million of them.
   */
  customer(id: string): CustomerRecord | undefined {
    const known = this.customers.get(id)
    if (known !== undefined || this.settings.strict || !isOrdinary(id, "cus_")) return known
    return {
      id,
      createdS: this.openedS,
      deleted: id.includes("DELETED"),
      email: null,
      name: null,
      description: null,
      phone: null,
      metadata: {},
      defaultPaymentMethod: `${defaultPrefix}${id.slice(4)}`,
      balanceMinor: 0,
      testClock: null
    }
  }

  /** The payment method with this id; a public test id gives a new method each time, as at Stripe. */
  paymentMethod(id: string): PaymentMethodRecord | undefined {
    const known = this.methods.get(id)
    if (known !== undefined) return known
    if (TestCards.isTestId(id)) {
      const behaviour = TestCards.ofTestId(id)
      return behaviour === undefined ? undefined : this.addMethod(this.nextId("pm_1"), behaviour, null)
    }
    if (this.settings.strict || !isOrdinary(id, "pm_") || id.includes("DELETED")) return undefined
    const owner = id.startsWith(defaultPrefix) ? `cus_${id.slice(defaultPrefix.length)}` : null
    return { id, createdS: this.openedS, customer: owner, metadata: {}, behaviour: TestCards.ofAnyId(id) }
  }

  /** Stores a new payment method. */
  addMethod(id: string, behaviour: TestCards.Behaviour, customer: string | null): PaymentMethodRecord {
    const made: PaymentMethodRecord = { id, createdS: this.nowS, customer, metadata: {}, behaviour }
    this.methods.set(id, made)
    return made
  }

  /** Notes that money moved. */
  move(payment: string, amountMinor: number, currency: string): void {
    this.moved.push({ payment, amountMinor, currency })
  }
}

const defaultPrefix = "pm_default_"

const isOrdinary = (id: string, prefix: string): boolean =>
  id.length > prefix.length && id.length <= 255 && id.startsWith(prefix) && !id.includes("NONE")
