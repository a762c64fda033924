/** What a batch of first claims sends, and how its row becomes answers. */
import type { ChargeKey, ChargeRequest, ClaimAnswer, ClaimedCharge, Lease } from "@purser/core"
import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql"
import { decodeRows } from "./chargeRow.ts"
import { hasKey } from "./eventPages.ts"
import { isTaken, isWithoutRoom, retryRolledBack, type StoreFailure } from "./failures.ts"
import * as First from "./firstClaims.ts"
import { claimColumns, type ClaimInput, inOrder, isAmong, Keys } from "./ledgerBatches.ts"
import { bigint, bigints, boolean, double, id, ids, text, texts } from "./params.ts"
import type { WrittenPages } from "./WrittenPages.ts"

const decodeBegun = decodeRows(Schema.Struct({ begun: Keys, roomy: Keys, page: Schema.NullOr(Schema.BigInt), now_ms: Schema.Finite }))

class FirstLease implements Lease {
  readonly chargeKey: ChargeKey
  readonly worker: string
  readonly epoch = 1

  constructor(chargeKey: ChargeKey, worker: string) {
    this.chargeKey = chargeKey
    this.worker = worker
  }
}

/** Whether the claim names an object that is not found by its name, so that it has to be noted whose it is. */
const notesObject = ({ chargeKey, extras }: ClaimInput) => extras?.object !== undefined && !hasKey(extras.object.id, chargeKey)

/** A charge at its first claim: all that is in its row is what the request says. */
class FirstClaim implements ClaimedCharge {
  readonly lease: Lease
  readonly leaseLeftMs: number
  readonly request: ChargeRequest
  readonly state: "claimed" | "attached"
  readonly resumed = false
  readonly generation = 1
  readonly attempt = 1
  readonly paymentIntentId: string | null
  readonly paymentMethod: string | null
  readonly chosenMethod: string | null
  readonly declinedChargeId = null
  readonly sinceFirstClaimMs = 0
  readonly firstClaimedAtMs: number

  constructor({ chargeKey, extras, request, worker }: ClaimInput, leaseMs: number, nowMs: number) {
    const object = extras?.object
    this.lease = new FirstLease(chargeKey, worker)
    this.leaseLeftMs = leaseMs
    this.request = request
    this.state = object === undefined ? "claimed" : "attached"
    this.paymentIntentId = object?.id ?? null
    this.chosenMethod = request.paymentMethod ?? null
    this.paymentMethod = object?.paymentMethod ?? this.chosenMethod
    this.firstClaimedAtMs = nowMs
  }
}

/** The answer to a first claim. */
class Begun {
  readonly _tag = "Claimed"
  readonly hasRoom: boolean
  readonly charge: ClaimedCharge

  constructor(charge: ClaimedCharge, hasRoom: boolean) {
    this.hasRoom = hasRoom
    this.charge = charge
  }
}

const begun = (input: ClaimInput, leaseMs: number, nowMs: number, hasRoom: boolean): ClaimAnswer => new Begun(new FirstClaim(input, leaseMs, nowMs), hasRoom)

/** Null in all rows, as an empty array. */
const unlessNone = (values: ReadonlyArray<string | null>) => values.every((value) => value === null) ? [] : values

/** Whether the claims of a batch differ in nothing but what `beginNew` takes for each, and objects need no note. */
const areAlike = (inputs: ReadonlyArray<ClaimInput>): boolean => {
  const [{ extras, principal, request, worker }] = inputs as readonly [ClaimInput]
  return inputs.every((input) =>
    input.request.namespace === request.namespace && input.request.billingPeriod === request.billingPeriod && input.request.currency === request.currency &&
    (input.request.allowFuture === true) === (request.allowFuture === true) && input.worker === worker && input.principal === principal &&
    (input.extras?.object === undefined) === (extras?.object === undefined) && !notesObject(input)
  )
}

const alikeColumns = (inputs: ReadonlyArray<ClaimInput>, leaseMs: number) => {
  const [{ principal, request, worker }] = inputs as readonly [ClaimInput]
  return [
    ids(inputs.map((input) => input.chargeKey)),
    id(request.namespace),
    id(request.billingPeriod),
    id(request.currency),
    bigints(inputs.map((input) => input.request.amountMinor)),
    ids(inputs.map((input) => input.request.stripeCustomerId)),
    ids(unlessNone(inputs.map((input) => input.request.paymentMethod ?? null))),
    text(worker),
    double(leaseMs),
    text(principal),
    texts(unlessNone(inputs.map(({ extras }) => extras?.object?.id ?? null))),
    texts(unlessNone(inputs.map(({ extras }) => extras?.object?.paymentMethod ?? null)))
  ]
}

const oneColumns = ({ chargeKey, extras, principal, request, worker }: ClaimInput, leaseMs: number) => [
  id(chargeKey),
  id(request.namespace),
  id(request.billingPeriod),
  id(request.currency),
  bigint(request.amountMinor),
  id(request.stripeCustomerId),
  id(request.paymentMethod ?? null),
  text(worker),
  double(leaseMs),
  text(principal),
  text(extras?.object?.id ?? null),
  text(extras?.object?.paymentMethod ?? null),
  id(request.customerId),
  id(request.item ?? null),
  boolean(request.allowFuture === true)
]

/** What a new row has beside, and a planned one says already. */
const newColumns = (inputs: ReadonlyArray<ClaimInput>) => [
  ids(inputs.map(({ request }) => request.customerId)),
  ids(unlessNone(inputs.map(({ request }) => request.item ?? null))),
  boolean(inputs[0]?.request.allowFuture === true)
]

/** Batches that are sent the longer way after the shorter one has failed: twice as many each time that it fails at once. */
class Doubt {
  #left = 0
  #span = 16
  #since = 0

  /** Whether the next batch is one of them. */
  next(): boolean {
    if (this.#left > 0) {
      this.#left--
      return true
    }
    if (this.#since++ > 0) this.#span = 16
    return false
  }

  raise(): void {
    this.#left = this.#span
    this.#span = Math.min(1024, this.#span * 2)
    this.#since = 0
  }
}

/** Lease pages of which nothing is left that wait for a batch to drop them. */
const donePages = 16
const isOne = (inputs: ReadonlyArray<ClaimInput>): inputs is readonly [ClaimInput] => inputs.length === 1

/** To a claim whose batch was carried out without it: it is for `any`. */
export const elsewhere = "elsewhere"
/** No answer to one that is no first claim, or whose row says something else. */
export type Answer = ClaimAnswer | typeof elsewhere | undefined
type Answers = Effect.Effect<ReadonlyArray<Answer>, StoreFailure>

/** First claims of distinct keys. A failure has left nothing written, so that the batch may be halved. */
export const makeFirstClaims = (sql: SqlClient.SqlClient, leaseMs: number, pages: WrittenPages) => {
  const ask = (statement: string, inputs: ReadonlyArray<ClaimInput>, params: ReadonlyArray<unknown>) =>
    retryRolledBack(Effect.flatMap(sql.unsafe(statement, params), decodeBegun)).pipe(Effect.map(([row]) => {
      if (row === undefined) return inputs.map(() => undefined)
      const { now_ms: nowMs, page } = row
      const keys = inputs.map((input) => input.chargeKey)
      const claimed = isAmong(row.begun, keys)
      const roomy = isAmong(row.roomy, keys)
      // The keys as they are known here: looked up with less work than equal ones that came from the database.
      if (page !== null) pages.add(page, keys.filter((_, index) => claimed[index]))
      return inputs.map((input, index) => claimed[index] === true ? begun(input, leaseMs, nowMs, roomy[index] === true) : undefined)
    }))

  const send = (statement: string, inputs: ReadonlyArray<ClaimInput>, room: boolean, columns: ReadonlyArray<unknown>, more: ReadonlyArray<unknown> = []) => {
    const done = pages.takeDone()
    return ask(statement, inputs, [...columns, boolean(room), bigints(done.ids), ids(done.keys), ...more])
  }

  // Caps that are closed or full, or not there: their charges ask for room by themselves.
  const room = new Doubt()
  const orWithout = <A>(wanted: boolean, claims: (room: boolean) => Effect.Effect<A, StoreFailure>) =>
    wanted
      ? Effect.catchIf(claims(true), isWithoutRoom, () => {
        room.raise()
        return claims(false)
      })
      : claims(false)
  // Identities that are there already: those of a planned run, or requests that come again.
  const known = new Doubt()
  let ofPlanned = true

  const beginNew = (inputs: ReadonlyArray<ClaimInput>, wanted: boolean) => {
    const sent = inOrder(inputs, (input) => input.chargeKey)
    const columns = alikeColumns(sent, leaseMs)
    const more = newColumns(sent)
    return orWithout(wanted, (room) => send(First.beginNew, inputs, room, columns, more))
  }
  const beginOne = (inputs: readonly [ClaimInput]) =>
    Effect.catchIf(ask(First.beginOne, inputs, oneColumns(inputs[0], leaseMs)), isWithoutRoom, () => {
      room.raise()
      return beginNew(inputs, false)
    })
  const isWanted = (inputs: ReadonlyArray<ClaimInput>) => inputs.every(({ extras }) => extras?.room === true)
  const any = (inputs: ReadonlyArray<ClaimInput>) => {
    const claims = (room: boolean) =>
      send(First.begin, inputs, room, [
        ...claimColumns(inputs, leaseMs),
        texts(inputs.map(({ extras }) => extras?.object?.id ?? null)),
        texts(inputs.map(({ extras }) => extras?.object?.paymentMethod ?? null))
      ])
    // The room of a charge that nobody has had may be held already.
    return isWanted(inputs) ? Effect.catchIf(claims(true), isTaken, () => claims(false)) : claims(false)
  }
  const beginPlanned = (inputs: ReadonlyArray<ClaimInput>, wanted: boolean): Answers => {
    const columns = alikeColumns(inOrder(inputs, (input) => input.chargeKey), leaseMs)
    return Effect.map(orWithout(wanted, (room) => send(First.beginPlanned, inputs, room, columns)), (answers) => {
      const begun = answers.filter((answer) => answer !== undefined)
      ofPlanned = begun.length * 2 >= inputs.length
      return begun.length === inputs.length ? answers : answers.map((answer) => answer ?? elsewhere)
    })
  }

  const begin = (inputs: ReadonlyArray<ClaimInput>): Answers => {
    if (!areAlike(inputs)) return any(inputs)
    const hopeful = isWanted(inputs) && !room.next()
    if (known.next()) return ofPlanned ? beginPlanned(inputs, hopeful) : any(inputs)
    return Effect.catchIf(hopeful && isOne(inputs) && pages.done < donePages ? beginOne(inputs) : beginNew(inputs, hopeful), isTaken, (): Answers => {
      known.raise()
      return beginPlanned(inputs, hopeful)
    })
  }
  return { any, begin }
}
