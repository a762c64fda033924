/** Inputs for property tests. Texts are made of the pieces that have broken such code before, not only of letters. */
import { Arbitrary, Result, Schema } from "effect"
import { ChargeRequest, currencies, currencyRule, idProblem, OpaqueId, parsePeriod } from "../src/index.ts"

const piece = Schema.Literals(["a", "B", "0", ":", "%", "%3A", "%25", "::", "é", "e\u0301", "😀", "|", "/", "-", ".", " x", "zmq-billing"])

/** Ids that every rule allows, rich in what an encoding could mix up. */
export const id = Arbitrary.map(
  Arbitrary.array(Arbitrary.schema(piece), { minLength: 1, maxLength: 5 }),
  (pieces) => pieces.join("").trimStart()
).pipe(Arbitrary.filter((text) => idProblem(text) === undefined))

/** Any text at all, lone surrogates and control characters included. */
export const anyText = Schema.Union([Schema.String, Schema.Literals(["", " ", "\ud800", "a\u0000", "\ufeffa", "a\u0085", "é".repeat(128), "x".repeat(255)])])

const digits = (value: number, length: number) => String(value).padStart(length, "0")
const between = (minimum: number, maximum: number) => Schema.Int.pipe(Schema.check(Schema.isBetween({ minimum, maximum })))

/** Canonical periods of every kind. */
export const period = Arbitrary.map(
  Arbitrary.all([
    Arbitrary.schema(between(1, 9998)),
    Arbitrary.schema(between(1, 12)),
    Arbitrary.schema(between(1, 28)),
    Arbitrary.schema(between(1, 52)),
    Arbitrary.schema(between(0, 5))
  ]),
  ([year, month, day, week, kind]) => {
    const y = digits(year, 4)
    const date = `${y}-${digits(month, 2)}-${digits(day, 2)}`
    const text = [`${y}-${digits(month, 2)}`, `Q${1 + month % 4}-${y}`, y, `${y}-W${digits(week, 2)}`, date, `${date}/${digits(year + 1, 4)}-01-31`][kind]!
    return Result.getOrThrow(parsePeriod(text))
  }
)

export const identity = Arbitrary.map(
  Arbitrary.all([id, period, id, id, Arbitrary.schema(Schema.Boolean)]),
  ([customerId, billingPeriod, namespace, item, hasItem]) => ({ customerId, billingPeriod, namespace, ...(hasItem ? { item } : {}) })
)

/** Requests that Stripe's rules for their currency allow. */
export const request = Arbitrary.map(
  Arbitrary.all([
    identity, id, id, Arbitrary.schema(Schema.Literals(currencies)), Arbitrary.schema(between(1, 1_000_000)),
    Arbitrary.schema(Schema.Boolean), Arbitrary.schema(Schema.UndefinedOr(Schema.Literals(["their-key", ""]))), Arbitrary.schema(Schema.Boolean),
    Arbitrary.schema(Schema.UndefinedOr(between(1, 1000)))
  ]),
  ([who, stripeCustomerId, paymentMethod, currency, steps, hasMethod, senderKey, allowFuture, revision]) => {
    const { minimumMinor, stepMinor } = currencyRule(currency)
    return Schema.decodeUnknownSync(ChargeRequest)({
      ...who, stripeCustomerId, currency, amountMinor: (Math.ceil(minimumMinor / stepMinor) + steps) * stepMinor,
      ...(hasMethod ? { paymentMethod } : {}), ...(senderKey === undefined ? {} : { senderKey }), ...(allowFuture ? { allowFuture } : {}), ...(revision === undefined ? {} : { revision })
    })
  }
)

export const isOpaqueId = Schema.is(OpaqueId)

/** One of these values, each as likely as the others. */
export const oneOf = <A>(...values: ReadonlyArray<A>) => Arbitrary.map(Arbitrary.schema(between(0, values.length - 1)), (index) => values[index]!)

/** What may stand where a number is expected. */
export const oddNumber = oneOf<unknown>(1, 49, 50, 1900, 1_000_000, 0, -1, 1.5, 2 ** 53 - 1, 2 ** 53, 1e21, "50", null, true, undefined)

/** What may stand where an id is expected. */
export const oddText = oneOf<unknown>("acme", " acme", "", "a\u0000", "\ud800", "x".repeat(255), "é".repeat(200), 7, null, {}, undefined)

/** Mostly what is usual. */
export const usualOr = <A>(usual: Arbitrary.Arbitrary<A>, odd: Arbitrary.Arbitrary<unknown>) =>
  Arbitrary.map(Arbitrary.all([usual, odd, oneOf(true, true, true, true, true, false)]), ([good, bad, isUsual]) => isUsual ? good : bad)
