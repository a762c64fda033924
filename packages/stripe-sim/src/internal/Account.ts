/**
 * The account's memory: every object, the virtual clock and the ids.
 *
 * Defines which ids exist (all that are asked for, or in strict mode only what was created) and the order of
 * creation. Refuses to move money: that is `attempt.ts` and `charges.ts`.
 */
import * as TestCards from "../TestCards.ts"
import type { Problem } from "./answer.ts"
import type { ChargeRecord, CustomerRecord, IntentRecord, PaymentMethodRecord } from "./records.ts"

/** What an account is made with. */
export interface AccountSettings {
  /** Real time in milliseconds. */
  readonly realNowMs: () => number
  /** A few characters that no other run of the simulator has, so that ids of two runs never meet. */
  readonly stamp: string
  readonly strict: boolean
  readonly maximumMinor: number
  readonly keyInUseType: Problem["type"]
}

/** Objects in order of creation, found by id. `seq` of the n-th is n. */
export class Collection<A extends { readonly id: string; readonly customer: string | null }> {
  private readonly byId = new Map<string, A>()
  private readonly order: Array<string> = []
  private readonly byCustomer = new Map<string, Array<string>>()

  get nextSeq(): number {
    return this.order.length
  }
  get(id: string): A | undefined {
    return this.byId.get(id)
  }
  /** Adds a new object or replaces the version that is there. */
  put(item: A): A {
    const before = this.byId.get(item.id)
    this.byId.set(item.id, item)
    if (before === undefined) this.order.push(item.id)
    // An update may name the customer for the first time.
    if (item.customer !== null && before?.customer !== item.customer) {
      const ids = this.byCustomer.get(item.customer)
      if (ids === undefined) this.byCustomer.set(item.customer, [item.id])
      else ids.push(item.id)
    }
    return item
  }
  /** Newest first, of one customer or of all; of all, only those older than `belowSeq`. */
  *newestFirst(customer?: string, belowSeq = Infinity): Generator<A> {
    const ids = customer === undefined ? this.order : this.byCustomer.get(customer) ?? []
    for (let at = (customer === undefined ? Math.min(ids.length, belowSeq) : ids.length) - 1; at >= 0; at--) {
      const item = this.byId.get(ids[at] ?? "")
      if (item !== undefined && (customer === undefined || item.customer === customer)) yield item
    }
  }
  values(): Iterable<A> {
    return this.byId.values()
  }
}

/** A payment that succeeded while a request was being answered. */
export interface Movement {
  readonly payment: string
  readonly amountMinor: number
  readonly currency: string
}

/** The state of one simulated Stripe account. */
export class Account {
  readonly settings: AccountSettings
  readonly customers = new Map<string, CustomerRecord>()
  readonly methods = new Map<string, PaymentMethodRecord>()
  readonly intents = new Collection<IntentRecord>()
  readonly charges = new Collection<ChargeRecord>()
  /** Objects that a running request holds. */
  readonly locked = new Set<string>()
  /** Payments made since the journal last looked. */
  moved: Array<Movement> = []
  private advancedMs = 0
  private latestMs = 0
  private ids = 0

  private readonly openedS: number

  constructor(settings: AccountSettings) {
    this.settings = settings
    this.openedS = this.nowS
  }

  /** The virtual time in milliseconds: real time plus what was advanced. It never runs backwards. */
  get nowMs(): number {
    this.latestMs = Math.max(this.latestMs, this.settings.realNowMs() + this.advancedMs)
    return this.latestMs
  }
  /** The virtual time in whole seconds, as Stripe stamps objects. */
  get nowS(): number {
    return Math.floor(this.nowMs / 1000)
  }
  /** Moves the virtual clock forward. */
  advance(ms: number): void {
    this.advancedMs += ms
  }
  /** A new id with Stripe's prefix. */
  nextId(prefix: string): string {
    return `${prefix}${this.settings.stamp}${(++this.ids).toString(36).toUpperCase().padStart(8, "0")}`
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
      defaultPaymentMethod: `${defaultPrefix}${id.slice(4)}`
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
