/**
 * Stripe's account for readers: `ProcessorAccount` over the client, with GET calls alone.
 *
 * Lists are paged by cursor and never gathered here, save what went back of one charge. A call is repeated only as the
 * caller says.
 */
import {
  type AccountPage, type AccountRange, type AccountReader, type AccountReversal, ChargeError, type ChargeErrorReason, ProcessorAccount, UnexpectedAnswer
} from "@purser/core"
import { type Config, Effect, Layer, Result, Schema } from "effect"
import type { Stripe } from "stripe"
import {
  AnyCharge, AnyIntent, AnyInvoice, AnyPage, InvoicePayment, OriginEvent, Reversal, toAccountCharge, toAccountPayment, toOrigin, toReversal
} from "./internal/accountAnswers.ts"
import { idOf } from "./internal/answers.ts"
import { reasonOf as reasonOfFailure } from "./internal/ask.ts"
import { problemOf, reasonOf } from "./internal/refusal.ts"
import { accountOf } from "./ConnectAccount.ts"
import { StripeClient } from "./StripeClient.ts"
import { stripeConfig } from "./StripeConfig.ts"
import type { StripeConfigError } from "./StripeConfigError.ts"

const pageSize = 100
const reversalPagesMax = 20

/** `named` is the account that each call names; without it the client's own settings say whom a call is for. */
const makeReader = (client: StripeClient["Service"], account: string | null, named: string | undefined): AccountReader => {
  const fail = (reason: ChargeErrorReason, requestId: string | null) =>
    Effect.fail(new ChargeError({ reason, chargeKey: null, requestId }))

  const read = <A>(operation: string, schema: Schema.ConstraintDecoder<A>, input: unknown, requestId: string | null): Effect.Effect<A, ChargeError> => {
    const result = Schema.decodeUnknownResult(schema)(input)
    return Result.isSuccess(result)
      ? Effect.succeed(result.success)
      : fail(new UnexpectedAnswer({ operation, detail: client.scrub(result.failure.message) }), requestId)
  }

  const ask = (operation: string, use: (stripe: Stripe) => PromiseLike<unknown>) =>
    Effect.catchTag(client.call(operation, use, { account: named }), "StripeCallError", (error) => fail(reasonOfFailure(error), error.requestId))

  /** One object; a 404 in Stripe's own shape is an absence. */
  const one = Effect.fnUntraced(function*<A extends { readonly id: string }>(
    operation: string,
    id: string,
    schema: Schema.ConstraintDecoder<A>,
    use: (stripe: Stripe) => PromiseLike<unknown>
  ): Effect.fn.Return<A | undefined, ChargeError> {
    const answer = yield* ask(operation, use)
    if (answer.status === 404 && problemOf(answer)?.code === "resource_missing") return undefined
    if (answer.status !== 200) return yield* fail(reasonOf(operation, answer, client.scrub), answer.requestId)
    const object = yield* read(operation, schema, answer.json, answer.requestId)
    return object.id === id
      ? object
      : yield* fail(new UnexpectedAnswer({ operation, detail: "another object than asked for" }), answer.requestId)
  })

  const page = Effect.fnUntraced(function*<A extends { readonly id: string }>(
    operation: string,
    schema: Schema.ConstraintDecoder<A>,
    after: string | undefined,
    use: (stripe: Stripe, cursor: { readonly limit: number; readonly starting_after?: string }) => PromiseLike<unknown>
  ): Effect.fn.Return<AccountPage<A>, ChargeError> {
    const cursor = { limit: pageSize, ...(after === undefined ? {} : { starting_after: after }) }
    const answer = yield* ask(operation, (stripe) => use(stripe, cursor))
    if (answer.status !== 200) return yield* fail(reasonOf(operation, answer, client.scrub), answer.requestId)
    const { data, has_more } = yield* read(operation, AnyPage, answer.json, answer.requestId)
    const items = yield* Effect.forEach(data, (item) => read(operation, schema, item, answer.requestId))
    const next = has_more ? items.at(-1)?.id : undefined
    if (has_more && (next === undefined || next === after)) {
      return yield* fail(new UnexpectedAnswer({ operation, detail: "a page that leads nowhere" }), answer.requestId)
    }
    return { items, next }
  })

  const created = ({ fromMs, toMs }: AccountRange) => ({ gte: Math.max(0, Math.floor(fromMs / 1000)), lte: Math.max(0, Math.ceil(toMs / 1000)) })
  const map = <A, B>(list: Effect.Effect<AccountPage<A>, ChargeError>, show: (item: A) => B) =>
    Effect.map(list, ({ items, next }) => ({ items: items.map(show), next }))

  /** What went back of one charge; a list that does not end is an error and not a whole. */
  const all = Effect.fnUntraced(function*(
    operation: string,
    use: (stripe: Stripe, cursor: { readonly limit: number; readonly starting_after?: string }) => PromiseLike<unknown>
  ) {
    const found: Array<AccountReversal> = []
    let after: string | undefined
    for (let pages = 0; pages < reversalPagesMax; pages++) {
      const { items, next } = yield* page(operation, Reversal, after, use)
      found.push(...items.map(toReversal))
      if (next === undefined) return found
      after = next
    }
    return yield* fail(new UnexpectedAnswer({ operation, detail: `more than ${reversalPagesMax * pageSize} of one charge` }), null)
  })

  const invoice = (id: string) =>
    Effect.map(one("account.invoice", id, AnyInvoice, (stripe) => stripe.invoices.retrieve(id)), (found) => found && toAccountPayment(found))

  return {
    account,
    payment: (id) =>
      id.startsWith("in_")
        ? invoice(id)
        : Effect.map(one("account.payment", id, AnyIntent, (stripe) => stripe.paymentIntents.retrieve(id)), (found) => found && toAccountPayment(found)),
    invoiceOf: Effect.fnUntraced(function*(payment_intent) {
      const { items } = yield* page("account.invoice_payments", InvoicePayment, undefined, (stripe, cursor) =>
        stripe.invoicePayments.list({ payment: { type: "payment_intent", payment_intent }, ...cursor }))
      const id = idOf(items[0]?.invoice)
      return id === null ? undefined : yield* invoice(id)
    }),
    charge: (id) =>
      Effect.map(one("account.charge", id, AnyCharge, (stripe) => stripe.charges.retrieve(id)), (found) => found && toAccountCharge(found, client.scrub)),
    reversal: (kind, id) =>
      Effect.map(
        one(`account.${kind}`, id, Reversal, (stripe) => kind === "refund" ? stripe.refunds.retrieve(id) : stripe.disputes.retrieve(id)),
        (found) => found && toReversal(found)
      ),
    refundsOf: (charge) => all("account.refunds", (stripe, cursor) => stripe.refunds.list({ charge, ...cursor })),
    disputesOf: (charge) => all("account.disputes", (stripe, cursor) => stripe.disputes.list({ charge, ...cursor })),
    payments: (range, after) =>
      map(page("account.payments", AnyIntent, after, (stripe, cursor) => stripe.paymentIntents.list({ created: created(range), ...cursor })), toAccountPayment),
    invoices: (range, after) =>
      map(page("account.invoices", AnyInvoice, after, (stripe, cursor) => stripe.invoices.list({ created: created(range), ...cursor })), toAccountPayment),
    charges: (range, after) =>
      map(page("account.charges", AnyCharge, after, (stripe, cursor) => stripe.charges.list({ created: created(range), ...cursor })), (charge) =>
        toAccountCharge(charge, client.scrub)),
    origins: (range, after) =>
      Effect.map(
        page("account.origins", OriginEvent, after, (stripe, cursor) =>
          stripe.events.list({ type: "charge.succeeded", created: created(range), ...cursor })),
        ({ items, next }) => ({ items: items.map(toOrigin).filter((origin) => origin !== undefined), next })
      )
  }
}

const makeAccount = (account: string | null) =>
  Effect.map(StripeClient, (client) => {
    const own = makeReader(client, account, undefined)
    return ProcessorAccount.of({
      ...own,
      accountOf: (namespace) => accountOf(namespace) ?? account,
      at: (other) => other === account || other === null ? own : makeReader(client, other, other)
    })
  })

/** `ProcessorAccount` on Stripe. */
export const StripeAccount: {
  /** On a client that is given; `account` is the connected account of the client's settings. */
  readonly layer: (options?: { readonly account?: string | undefined }) => Layer.Layer<ProcessorAccount, never, StripeClient>
  /** From the environment, as the gateway. */
  readonly layerConfig: Layer.Layer<ProcessorAccount, Config.ConfigError | StripeConfigError>
} = {
  layer: (options = {}) => Layer.effect(ProcessorAccount, makeAccount(options.account ?? null)),
  layerConfig: Layer.effect(ProcessorAccount, Effect.flatMap(stripeConfig, ({ account }) => makeAccount(account ?? null))).pipe(
    Layer.provide(StripeClient.layerConfig)
  )
}
