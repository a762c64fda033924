/**
 * The messages of the protocol as JSON text, in both forms.
 *
 * The joined form carries many requests in one frame, each with an id and a deadline; the plain form is the bare object
 * that existing Python workers and producers send. A body that cannot be read spoils itself alone, never its neighbours.
 * The wire carries no idempotency key of ours: the receiver computes it from the identity.
 */
import { Config, Effect, Result, Schema } from "effect"
import { type PeriodOptions, parsePeriod } from "./BillingPeriod.ts"
import { defaultNamespace } from "./ChargeKey.ts"
import { ChargeOutcome } from "./ChargeOutcome.ts"
import { type ChargeRequest, readRequest } from "./ChargeRequest.ts"
import { parseCurrency } from "./Currency.ts"
import { makeRequestReader, readSucceeded, writeSucceeded } from "./internal/wireFast.ts"
import { type Place, type Twice, writtenTwice } from "./internal/wireTwice.ts"
import { Money } from "./Money.ts"
import { SubmitError } from "./SubmitError.ts"
import { Tracing } from "./Tracing.ts"
import { MalformedMessage, TransportError } from "./TransportError.ts"
import { RunMark } from "./RunMark.ts"
import { frameItemsMax, JoinedBody, PlainBody, ReplyBody, RequestEnvelope, WireId } from "./WireSchema.ts"

/** What a submission comes back with. */
export type ChargeReply = Result.Result<ChargeOutcome, SubmitError>

/** A request that could be read, or why not. */
export type ReadRequest = Result.Result<ChargeRequest, TransportError>

/**
 * One item of a joined frame. `deadlineMs`: milliseconds that the sender waits, counted from receipt. `traceparent`: the
 * sender's span, when it traces. `source`: of an item that cannot be read, what came; none where a name stands twice, which only the
 * frame's text still tells.
 */
export interface RequestItem {
  readonly id: string
  readonly deadlineMs: number
  readonly request: ReadRequest
  readonly traceparent?: string
  readonly source?: unknown
}

/** A frame of requests in either form. `seq` of the plain form, a number or a text, is echoed and never used. */
export type RequestFrame =
  | { readonly form: "joined"; readonly client: string; readonly items: ReadonlyArray<RequestItem> }
  | { readonly form: "plain"; readonly seq: unknown; readonly request: ReadRequest; readonly traceparent?: string }

/** One answer of a joined frame. */
export interface ReplyItem {
  readonly id: string
  readonly reply: ChargeReply
}

const tooMany = (items: unknown): Result.Result<never, TransportError> | undefined =>
  Array.isArray(items) && items.length > frameItemsMax ? Result.fail(malformed(`a frame has at most ${frameItemsMax} items`, "items")) : undefined

const JoinedRequests = Schema.Struct({ v: Schema.Literal(1), client: WireId, items: Schema.Array(Schema.Unknown) })
const JoinedReplies = Schema.Struct({ v: Schema.Literal(1), items: Schema.Array(Schema.Unknown) })
const ReplyEnvelope = Schema.Struct({ id: Schema.String, body: ReplyBody })

const decodeRequestBody = Schema.decodeUnknownResult(JoinedBody)
const decodePlainBody = Schema.decodeUnknownResult(PlainBody)
const decodeJoinedRequests = Schema.decodeUnknownResult(JoinedRequests)
const decodeRequestEnvelope = Schema.decodeUnknownResult(RequestEnvelope)
const decodeReplyEnvelope = Schema.decodeUnknownResult(ReplyEnvelope)
const isWireId = (value: unknown): value is string => typeof value === "string" && value.length > 0 && value.length <= 255
const decodeJoinedReplies = Schema.decodeUnknownResult(JoinedReplies)
const encodeOutcome = Schema.encodeSync(ChargeOutcome)
const encodeError = Schema.encodeSync(SubmitError)

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** A counter is a number or a text. Anything deeper is not echoed: to write it again could exhaust the stack. */
const readSeq = (seq: unknown): unknown => typeof seq === "object" ? undefined : seq

const malformed = (detail: string, field: string | null = null) =>
  new TransportError({ reason: new MalformedMessage({ detail: detail.slice(0, 500), field }), chargeKey: null })

const parseJson = (text: string): Result.Result<unknown, TransportError> =>
  Result.try({ try: (): unknown => JSON.parse(text), catch: () => malformed("not JSON") })

interface Fields {
  readonly namespace: string | null | undefined
  readonly customerId: string
  readonly billingPeriod: string
  readonly item: string | null | undefined
  readonly revision: number | null | undefined
  readonly amountMinor: number
  readonly currency: string
  readonly stripeCustomerId: string
  readonly paymentMethod: string | null | undefined
  readonly senderKey: string | null | undefined
  readonly allowFuture: boolean | undefined
}

const toRequest = (fields: Fields, options: PeriodOptions): ReadRequest => {
  const period = parsePeriod(fields.billingPeriod, options)
  if (Result.isFailure(period)) return Result.fail(malformed(period.failure.message, "billing_period"))
  const currency = parseCurrency(fields.currency)
  if (currency === undefined) return Result.fail(malformed(`"${fields.currency}" is not a currency that Stripe charges`, "currency"))
  const decoded = readRequest({
    namespace: fields.namespace ?? defaultNamespace,
    customerId: fields.customerId,
    billingPeriod: period.success,
    ...(fields.item != null ? { item: fields.item } : {}),
    ...(fields.revision != null ? { revision: fields.revision } : {}),
    amountMinor: fields.amountMinor,
    currency,
    stripeCustomerId: fields.stripeCustomerId,
    ...(fields.paymentMethod != null ? { paymentMethod: fields.paymentMethod } : {}),
    ...(fields.senderKey != null ? { senderKey: fields.senderKey } : {}),
    ...(fields.allowFuture === true ? { allowFuture: true } : {})
  })
  if (Result.isFailure(decoded)) return Result.fail(malformed(decoded.failure.message))
  const money = Money.fromMinor(decoded.success.amountMinor, currency, { maximumMinor: Number.MAX_SAFE_INTEGER })
  return Result.isFailure(money) ? Result.fail(malformed(money.failure.message, "amount")) : Result.succeed(decoded.success)
}

type RequestReader = ReturnType<typeof makeRequestReader>

const readJoinedBody = (body: unknown, options: PeriodOptions, fast: RequestReader): ReadRequest => {
  const usual = isRecord(body) ? fast(body) : undefined
  if (usual !== undefined) return Result.succeed(usual)
  const read = decodeRequestBody(body)
  if (Result.isFailure(read)) return Result.fail(malformed(read.failure.message))
  const b = read.success
  return toRequest({
    namespace: b.namespace,
    customerId: b.customer_id,
    billingPeriod: b.billing_period,
    item: b.item,
    revision: b.revision,
    amountMinor: b.amount_minor,
    currency: b.currency,
    stripeCustomerId: b.stripe_customer_id,
    paymentMethod: b.payment_method,
    senderKey: b.sender_key,
    allowFuture: b.allow_future
  }, options)
}

const readPlainBody = (body: unknown, options: PeriodOptions): ReadRequest => {
  const read = decodePlainBody(body)
  if (Result.isFailure(read)) return Result.fail(malformed(read.failure.message))
  const b = read.success
  return toRequest({
    namespace: b.namespace,
    customerId: b.customer_id,
    billingPeriod: b.billing_period,
    item: b.item,
    revision: b.revision,
    amountMinor: b.amount_cents,
    currency: b.currency ?? "usd",
    stripeCustomerId: b.stripe_customer_id,
    paymentMethod: b.payment_method,
    senderKey: b.idempotency_key,
    allowFuture: undefined
  }, options)
}

/** The sender's span. What cannot be one is left out: a trace is never a reason to refuse a charge. */
const traceOf = (record: unknown): { readonly traceparent?: string } => {
  const traceparent = isRecord(record) ? record["traceparent"] : undefined
  return Tracing.isTraceparent(traceparent) ? { traceparent } : noTrace
}
const noTrace = {} as const

/** The sender's run, kept beside the request; what cannot be one is left out as well. */
const runOf = (record: unknown, request: ReadRequest): ReadRequest => {
  const runId = isRecord(record) ? record["run_id"] : undefined
  if (runId !== undefined && Result.isSuccess(request) && RunMark.isRunId(runId)) RunMark.on(request.success, runId)
  return request
}

/** An item without an id of its own is answered under the empty id, so that its neighbours are served. */
const readRequestItem = (item: unknown, options: PeriodOptions, fast: RequestReader): RequestItem => {
  const id = isRecord(item) && isWireId(item["id"]) ? item["id"] : ""
  const made = (deadlineMs: number, request: ReadRequest): RequestItem => {
    if (Result.isFailure(request)) return { id, deadlineMs, request, source: item }
    runOf(item, request)
    return isRecord(item) && item["traceparent"] !== undefined ? { id, deadlineMs, request, ...traceOf(item) } : { id, deadlineMs, request }
  }
  if (id !== "" && isRecord(item) && Number.isFinite(item["deadline"]) && Number(item["deadline"]) > 0 && "body" in item) {
    return made(Number(item["deadline"]), readJoinedBody(item["body"], options, fast))
  }
  const read = decodeRequestEnvelope(item)
  return Result.isFailure(read)
    ? made(0, Result.fail(malformed(read.failure.message)))
    : made(read.success.deadline, readJoinedBody(read.success.body, options, fast))
}

/**
 * An answer that cannot be read counts as lost: the sender asks again and gets the recorded outcome. To call it a
 * malformed message would say that nothing was charged, which nobody knows.
 */
const readReplyItem = (item: unknown): ReplyItem | undefined => {
  if (isRecord(item) && typeof item["id"] === "string") {
    const usual = readSucceeded(item["body"])
    if (usual !== undefined) return { id: item["id"], reply: Result.succeed(usual) }
  }
  const read = decodeReplyEnvelope(item)
  if (Result.isFailure(read)) return undefined
  const { body, id } = read.success
  return { id, reply: "outcome" in body ? Result.succeed(body.outcome) : Result.fail(body.error) }
}

const readReplies = (items: ReadonlyArray<unknown>): ReadonlyArray<ReplyItem> => {
  const read: Array<ReplyItem> = []
  for (const item of items) {
    const reply = readReplyItem(item)
    if (reply !== undefined) read.push(reply)
  }
  return read
}

/** What is undefined is not written. */
const toJoinedBody = (request: ChargeRequest) => ({
  namespace: request.namespace,
  customer_id: request.customerId,
  billing_period: request.billingPeriod,
  item: request.item,
  revision: request.revision,
  amount_minor: request.amountMinor,
  currency: request.currency,
  stripe_customer_id: request.stripeCustomerId,
  payment_method: request.paymentMethod,
  sender_key: request.senderKey,
  allow_future: request.allowFuture === true ? true : undefined
})

const plainError = (error: SubmitError) => ({
  status: "error",
  error: {
    type: error._tag,
    reason: error.reason._tag,
    message: error.message,
    retryable: error.isRetryable,
    outcome: error.outcome
  }
})

const plainOutcome = (outcome: ChargeOutcome) => {
  const ids = "paymentIntentId" in outcome ? { payment_intent_id: outcome.paymentIntentId } : {}
  switch (outcome._tag) {
    case "Succeeded":
      return {
        status: outcome.alreadySettled ? "already_processed" : "ok",
        charge_id: outcome.chargeId ?? outcome.paymentIntentId,
        ...ids,
        amount_received: outcome.amountReceivedMinor,
        charge_key: outcome.chargeKey
      }
    case "Processing":
      return { status: "processing", ...ids, charge_key: outcome.chargeKey }
    default:
      return {
        status: "error",
        ...ids,
        charge_key: outcome.chargeKey,
        error: {
          type: outcome._tag,
          reason: "code" in outcome ? outcome.code : outcome._tag,
          ...("declineCode" in outcome ? { decline_code: outcome.declineCode } : {}),
          message: outcome.detail,
          retryable: false,
          outcome: "not_charged"
        }
      }
  }
}

const refusedTwice = ({ name }: Twice) => Result.fail(malformed(`duplicate field "${name}"`))

/** An item that has a name twice cannot be read; its neighbours can. */
const withoutTwice = (items: ReadonlyArray<RequestItem>, found: ReadonlyMap<Place, Twice>): ReadonlyArray<RequestItem> =>
  items.map((item, index) => {
    const twice = found.get(index)
    return twice === undefined ? item : { id: twice.own.has("id") ? "" : item.id, deadlineMs: item.deadlineMs, request: refusedTwice(twice) }
  })

/** Reads and writes frames. A reader never throws; what it cannot read is a `MalformedMessage`. */
export interface WireCodec {
  /** A frame of requests in either form. */
  readonly decodeRequests: (text: string) => Result.Result<RequestFrame, TransportError>
  /** A joined frame of answers, without those that cannot be read: they count as lost. */
  readonly decodeReplies: (text: string) => Result.Result<ReadonlyArray<ReplyItem>, TransportError>
  /** A joined frame of requests from one socket's life. */
  readonly encodeRequests: (
    client: string,
    items: ReadonlyArray<{ readonly id: string; readonly deadlineMs: number; readonly request: ChargeRequest; readonly traceparent?: string | undefined }>
  ) => string
  /** A joined frame of answers. */
  readonly encodeReplies: (items: ReadonlyArray<ReplyItem>) => string
  /** An answer in the plain form; `seq` comes back as `ack_seq` where the request had one. */
  readonly encodePlainReply: (reply: ChargeReply, seq: unknown) => string
}

const makeCodec = (options: PeriodOptions, fast: RequestReader): WireCodec => ({
  decodeRequests: (text) =>
    Result.flatMap(parseJson(text), (json): Result.Result<RequestFrame, TransportError> => {
      if (!isRecord(json)) return Result.fail(malformed("expected a JSON object"))
      const refused = tooMany(json["items"])
      if (refused !== undefined) return refused
      const found = writtenTwice(text, json)
      const [twice] = found?.values() ?? []
      if (!("v" in json)) {
        return Result.succeed(twice === undefined
          ? { form: "plain", seq: readSeq(json["seq"]), request: runOf(json, readPlainBody(json, options)), ...traceOf(json) }
          : { form: "plain", seq: found?.get("frame")?.own.has("seq") === true ? undefined : readSeq(json["seq"]), request: refusedTwice(twice) })
      }
      const around = found?.get("frame")
      if (around !== undefined) return refusedTwice(around)
      if (json["v"] !== 1) return Result.fail(malformed("this version of the wire is not known; it is 1", "v"))
      const read = (client: string, sources: ReadonlyArray<unknown>): RequestFrame => {
        const items = sources.map((item) => readRequestItem(item, options, fast))
        return { form: "joined", client, items: found === undefined ? items : withoutTwice(items, found) }
      }
      if (isWireId(json["client"]) && Array.isArray(json["items"])) return Result.succeed(read(json["client"], json["items"]))
      return Result.mapBoth(decodeJoinedRequests(json), { onFailure: (error) => malformed(error.message), onSuccess: ({ client, items }) => read(client, items) })
    }),
  decodeReplies: (text) =>
    Result.flatMap(parseJson(text), (json) =>
      isRecord(json) && json["v"] === 1 && Array.isArray(json["items"])
        ? tooMany(json["items"]) ?? Result.succeed(readReplies(json["items"]))
        : Result.mapBoth(decodeJoinedReplies(json), { onFailure: (error) => malformed(error.message), onSuccess: ({ items }) => readReplies(items) })),
  encodeRequests: (client, items) =>
    JSON.stringify({
      v: 1,
      client,
      items: items.map(({ id, deadlineMs, request, traceparent }) => ({ id, deadline: deadlineMs, traceparent, run_id: RunMark.of(request), body: toJoinedBody(request) }))
    }),
  encodeReplies: (items) =>
    JSON.stringify({
      v: 1,
      items: items.map(({ id, reply }) => ({
        id,
        body: Result.isSuccess(reply) ? { outcome: reply.success._tag === "Succeeded" ? writeSucceeded(reply.success) : encodeOutcome(reply.success) } : { error: encodeError(reply.failure) }
      }))
    }),
  encodePlainReply: (reply, seq) =>
    JSON.stringify({
      ...(Result.isSuccess(reply) ? plainOutcome(reply.success) : plainError(reply.failure)),
      ...(seq === undefined ? {} : { ack_seq: seq })
    })
})

const makeWire = (options: PeriodOptions): WireCodec => makeCodec(options, makeRequestReader(options))

/** The wire's codec: `make` with explicit options, `fromConfig` with `PURSER_PERIOD_LABELS` (`calendar` or `opaque`). */
export const Wire = {
  make: makeWire,
  fromConfig: Effect.map(
    Config.Literals(["calendar", "opaque"], "PURSER_PERIOD_LABELS").pipe(Config.withDefault("calendar" as const)),
    (labels) => makeWire({ labels })
  )
}
