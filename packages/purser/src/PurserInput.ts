/**
 * What plain programs give, and how it is read. Whoever writes plain JavaScript has no compiler, so a field of another name is
 * refused by name: left out, it may move money. Every refusal here is `InvalidInput`, and comes before anything is stored.
 */
import {
  AmountMinor, type BillingPeriod, type ChargeKey, chargeKeyOf, ChargeRequest, Currency, defaultNamespace, idProblem, parsePeriod, type RefundReason
} from "@purser/core"
import { Effect, Schema } from "effect"
import { InvalidInput } from "./PurserError.ts"
import type { RunInput } from "./PurserRun.ts"

/** One charge; amounts in minor units, any accepted spelling of the period. */
export interface ChargeInput {
  readonly customerId: string
  readonly billingPeriod: string
  readonly amountMinor: number
  readonly currency: string
  readonly stripeCustomerId: string
  readonly paymentMethod?: string
  readonly item?: string
  readonly namespace?: string
}

/** Which charge is meant; `revision` for one that was billed anew. */
export interface ChargeName {
  readonly customerId: string
  readonly billingPeriod: string
  readonly item?: string
  readonly namespace?: string
  readonly revision?: number
}

/** Why, and who, for the record. */
export interface ActInput {
  readonly reason: string
  readonly actor?: string
}

/** A refund. Without `amountMinor` all that is left goes back; without `refundId` it is refund `1` of the charge. */
export interface RefundInput extends ChargeName, ActInput {
  readonly amountMinor?: number
  readonly refundId?: string
  /** What the processor is told. */
  readonly cause?: RefundReason
  /** Asks once more for a refund that the processor refused. */
  readonly again?: boolean
}

/** A billing anew; amounts in minor units of the charge's currency. */
export interface RebillRequest extends Omit<ChargeName, "revision">, ActInput {
  readonly amountMinor: number
  readonly stripeCustomerId?: string
  readonly paymentMethod?: string
  readonly unrefunded?: boolean
}

/** Another attempt of a charge that ended unpaid. */
export interface RetryInput extends ChargeName, ActInput {
  /** Instead of the method before, from now on. */
  readonly paymentMethod?: string
}

/** A charge whose dunning is meant. */
export interface DunningInput extends ChargeName, ActInput {}

/** A customer has a new card. Without a method the customer's default one is meant, for charges that name none. */
export interface NewCardInput extends ActInput {
  readonly stripeCustomerId: string
  readonly paymentMethod?: string
}

/** What a period's charges should add up to; amounts in minor units. */
export interface CapInput {
  readonly billingPeriod: string
  readonly currency: string
  readonly expectedMinor: number | bigint
  /** Hundredths; 110 unless given. */
  readonly headroomPercent?: number
  readonly namespace?: string
}

type Fields<A> = Readonly<Record<keyof Required<A>, true>>
const charge: Fields<Omit<ChargeInput, keyof ChargeName>> = { amountMinor: true, currency: true, stripeCustomerId: true, paymentMethod: true }
const plainName: Fields<Omit<ChargeName, "revision">> = { customerId: true, billingPeriod: true, item: true, namespace: true }
const name: Fields<ChargeName> = { ...plainName, revision: true }
const act: Fields<ActInput> = { reason: true, actor: true }

const invalid = (detail: string) => new InvalidInput({ detail })
const onlyFields = <A extends object>(fields: Fields<A>) => {
  const struct = Schema.Struct(Object.fromEntries(Object.keys(fields).map((field) => [field, Schema.optionalKey(Schema.Unknown)])))
  const decode = Schema.decodeUnknownEffect(struct, { onExcessProperty: "error" })
  return (input: A): Effect.Effect<void, InvalidInput> => Effect.asVoid(decode(input)).pipe(Effect.mapError(({ message }) => invalid(message)))
}

/** Refuses fields of other names. */
export const onlyFieldsOf = {
  charge: onlyFields<ChargeInput>({ ...plainName, ...charge }),
  cap: onlyFields<CapInput>({ billingPeriod: true, currency: true, expectedMinor: true, headroomPercent: true, namespace: true }),
  refund: onlyFields<RefundInput>({ ...name, ...act, amountMinor: true, refundId: true, cause: true, again: true }),
  rebill: onlyFields<RebillRequest>({ ...plainName, ...act, amountMinor: true, stripeCustomerId: true, paymentMethod: true, unrefunded: true }),
  retry: onlyFields<RetryInput>({ ...name, ...act, paymentMethod: true }),
  dunning: onlyFields<DunningInput>({ ...name, ...act }),
  newCard: onlyFields<NewCardInput>({ ...act, stripeCustomerId: true, paymentMethod: true }),
  act: onlyFields<ActInput>(act),
  run: onlyFields<RunInput>({
    name: true, rows: true, expected: true, allowPeriods: true, overCap: true, concurrency: true, closePeriod: true, actor: true
  })
}

const isText = (value: unknown): value is string => typeof value === "string" && value !== ""

/** Refuses what must be a text and is none; a field that may be left out is `optional`. */
export const readTexts = (required: Readonly<Record<string, unknown>>, optional: Readonly<Record<string, unknown>> = {}): Effect.Effect<void, InvalidInput> => {
  const isWrong = ([, value]: readonly [string, unknown]) => !isText(value)
  const wrong = Object.entries(required).find(isWrong) ?? Object.entries(optional).filter(([, value]) => value !== undefined).find(isWrong)
  return wrong === undefined ? Effect.void : Effect.fail(invalid(`${wrong[0]} must be a text that is not empty`))
}

/** Why, and who. */
export const readAct = ({ actor, reason }: ActInput): Effect.Effect<void, InvalidInput> => readTexts({ reason }, { actor })

/** An array, or what may be left out. */
export const readList = <A>(list: ReadonlyArray<A> | undefined, field: string): Effect.Effect<ReadonlyArray<A>, InvalidInput> =>
  list === undefined || Array.isArray(list) ? Effect.succeed(list ?? []) : Effect.fail(invalid(`${field} must be an array`))

/** Decodes by a schema; what does not fit is `InvalidInput` in the schema's words. */
export const decoding = <A, I>(schema: Schema.Codec<A, I>) => {
  const decode = Schema.decodeUnknownEffect(schema)
  return (input: unknown): Effect.Effect<A, InvalidInput> => Effect.mapError(decode(input), ({ message }) => invalid(message))
}

/** What periods are. */
export type PeriodLabels = "calendar" | "opaque"

/** A canonical period. */
export const readPeriod = (text: string, labels: PeriodLabels): Effect.Effect<BillingPeriod, InvalidInput> =>
  typeof text === "string"
    ? Effect.mapError(Effect.fromResult(parsePeriod(text, { labels })), ({ message }) => invalid(message))
    : Effect.fail(invalid("billingPeriod is not a text"))

const currency = decoding(Currency)
/** A currency in any case. */
export const readCurrency = (text: string) => currency(typeof text === "string" ? text.toLowerCase() : text)
/** A total in minor units. */
export const readTotal = (minor: number | bigint): Effect.Effect<bigint, InvalidInput> =>
  typeof minor === "bigint" || Number.isSafeInteger(minor)
    ? Effect.succeed(BigInt(minor))
    : Effect.fail(invalid(`expectedMinor ${String(minor)} is no whole number of minor units`))
/** An amount in minor units. */
export const readAmount = decoding(AmountMinor)

const request = decoding(ChargeRequest)
/** The request of a charge. */
export const readCharge = Effect.fnUntraced(function*(input: ChargeInput, labels: PeriodLabels): Effect.fn.Return<ChargeRequest, InvalidInput> {
  yield* onlyFieldsOf.charge(input)
  return yield* request({
    ...input,
    namespace: input.namespace ?? defaultNamespace,
    billingPeriod: yield* readPeriod(input.billingPeriod, labels),
    currency: yield* readCurrency(input.currency)
  })
})

/** The key of the charge that is meant. */
export const readName = Effect.fnUntraced(function*(input: ChargeName, labels: PeriodLabels): Effect.fn.Return<ChargeKey, InvalidInput> {
  if (typeof input !== "object" || input === null) return yield* invalid("a charge is named by an object of customerId, billingPeriod and, where it has one, item")
  const { customerId, item, namespace = defaultNamespace, revision } = input
  for (const [field, id] of [["customerId", customerId], ["item", item], ["namespace", namespace]] as const) {
    const problem = id === undefined && field === "item" ? undefined : typeof id === "string" ? idProblem(id) : "is not a text"
    if (problem !== undefined) return yield* invalid(`${field} ${JSON.stringify(id)} ${problem}`)
  }
  return chargeKeyOf({ customerId, item, namespace, revision, billingPeriod: yield* readPeriod(input.billingPeriod, labels) })
})
