/**
 * What happens to one request: its route, its terms, the decision, the call, the evidence, the record, the answer.
 *
 * Nothing is forwarded without a decision that the store has written down, and what was forwarded is seen to its end
 * whether or not its client waits. The client of a paid charge hears the answer before its outcome is written, and what it asks next of this process is
 * decided after it; every other answer is recorded first, so that what its client does next meets it at any process.
 */
import { Measures, MetricSeries } from "@purser/core"
import { Context, Effect, Layer, Metric, Option, type Redacted, Result, Schema } from "effect"
import { randomBytes } from "node:crypto"
import { type Evidence, evidenceOf } from "./Evidence.ts"
import { type FormProblem, type FormTerms, readAdjustment, readForm } from "./FormAmount.ts"
import { answer, cut, type Exchange, readBody, reset } from "./internal/exchange.ts"
import { answered, forwarded, headerOf, timesGiven } from "./internal/headers.ts"
import { make as timely } from "./internal/timely.ts"
import { ProxyMetrics } from "./ProxyMetrics.ts"
import type { ProxySettings } from "./ProxyConfig.ts"
import { type OwnAnswer, refuse, refuseForm, refuseReuse, storeUnavailable, upstreamUnreachable } from "./Refusal.ts"
import { movesMoney, type Route, routeOf } from "./RoutePolicy.ts"
import { Upstream, type UpstreamAnswer } from "./Upstream.ts"
import { vaultKeyOf, vaultKeyPattern } from "./VaultKey.ts"
import { type Outcome, type Verdict, VaultStore, type Wish } from "./VaultStore.ts"

const bodyLimitBytes = 1024 * 1024

const Kept = Schema.fromJsonString(Schema.Struct({ status: Schema.Int, headers: Schema.Array(Schema.String), body: Schema.String }))
const encodeKept = Schema.encodeSync(Kept)
const decodeKept = Schema.decodeOption(Kept)

/** A request that was read: its terms, or why its form is refused. */
interface Asked {
  readonly exchange: Exchange
  readonly method: string
  readonly raw: ReadonlyArray<string>
  readonly route: Route
  readonly vaultKey: Redacted.Redacted
  readonly key: string | null
  readonly body: Buffer | null
  readonly terms: FormTerms | null
  readonly problem: FormProblem | null
  readonly requestId: string
}

const keyProblem = (raw: ReadonlyArray<string>, key: string | null): FormProblem | null =>
  key === null || key === ""
    ? { param: null, code: "idempotency_key_missing", message: "The spend-cap proxy needs an Idempotency-Key on calls that move money." }
    : vaultKeyPattern.test(key)
    ? { param: null, code: "idempotency_key_invalid", message: "The Idempotency-Key holds a vault key." }
    : key.length > 255 || timesGiven(raw, "idempotency-key") > 1
    ? { param: null, code: "idempotency_key_invalid", message: "There must be one Idempotency-Key of at most 255 characters." }
    : null

const make = Effect.fnUntraced(function*(settings: Pick<ProxySettings, "storeTimeoutMs">) {
  // An outcome is written down before its client hears of it, unless the store is away: the client gets its answer all the same.
  const { decide, record } = timely({ store: yield* VaultStore, decideMs: settings.storeTimeoutMs, waitingMax: 10_000 })
  const upstream = yield* Upstream
  const measures = yield* Measures
  let underWay = 0
  yield* MetricSeries.readWith(ProxyMetrics.inFlight, () => underWay)
  const counted = (call: Effect.Effect<void>) =>
    Effect.suspend(() => {
      underWay++
      return Effect.ensuring(measures ? MetricSeries.timed(ProxyMetrics.callSeconds, call) : call, Effect.sync(() => void underWay--))
    })

  const own = (exchange: Exchange, given: OwnAnswer) => answer(exchange, given.status, given.headers, given.body)

  const refusalOf = (asked: Asked, verdict: Verdict, amountMinor: number | null): OwnAnswer => {
    const code = verdict.code ?? ""
    if (code === "idempotency_key_reused" || code === "idempotency_key_of_other_route") {
      return refuseReuse(asked.key ?? "", code !== "idempotency_key_reused", asked.requestId)
    }
    if (asked.problem !== null && code === asked.problem.code) return refuseForm(asked.problem, asked.requestId)
    return refuse(code, asked.requestId, {
      capMinor: verdict.cap_minor, usedMinor: verdict.used_minor, period: verdict.period, currency: verdict.vault_currency, amountMinor
    })
  }

  const wishOf = (asked: Asked, fetched?: Evidence): Wish => ({
    vaultKey: asked.vaultKey,
    kind: asked.route.kind,
    method: asked.method,
    path: asked.route.path,
    key: asked.key,
    fingerprint: asked.terms?.fingerprint ?? null,
    amountMinor: fetched?.amountMinor ?? asked.terms?.amountMinor ?? null,
    currency: fetched?.currency ?? asked.terms?.currency ?? null,
    customer: fetched?.customer ?? asked.terms?.customer ?? null,
    period: fetched?.period ?? asked.terms?.period ?? null,
    account: asked.terms?.account ?? "",
    intentId: asked.route.intentId,
    body: asked.body === null || !movesMoney(asked.route.kind) ? null : asked.body.toString("base64"),
    fetched: fetched !== undefined,
    problem: asked.problem?.code ?? null
  })

  const blank = (asked: Asked, verdict: Verdict): Outcome => ({
    verdict, kind: asked.route.kind, key: verdict.first_key ?? asked.key, effect: "unknown", objectId: null, intentId: null, amountMinor: null, status: null,
    requestId: null, replayed: false, detail: null, answer: null
  })

  const headersFor = (asked: Asked, key: string | null): ReadonlyArray<string> => {
    const replaced = ["content-length", ...(key === null ? [] : ["idempotency-key"])]
    return [...forwarded(asked.raw, replaced), ...(key === null ? [] : ["Idempotency-Key", key])]
  }

  /** Sends a call whose answer is read, records what it proves, and answers. */
  const forward = Effect.fnUntraced(function*(asked: Asked, verdict: Verdict) {
    const { exchange, route } = asked
    const key = verdict.first_key ?? asked.key
    const path = verdict.first_route === null ? route.path + route.query : verdict.first_route.replace(/^\S+ /, "")
    const body = verdict.request_body === null ? asked.body : Buffer.from(verdict.request_body, "base64")
    const result = yield* Effect.result(upstream.call({ method: asked.method, path, headers: headersFor(asked, key), body }))
    if (Result.isFailure(result)) {
      const { begun, code, sent } = result.failure
      yield* record({ ...blank(asked, verdict), effect: sent ? "unknown" : "nothing", status: begun?.status ?? null, detail: code })
      if (begun !== null) return yield* cut(exchange, begun.status, answered(begun.headers), begun.body)
      return yield* sent ? reset(exchange) : own(exchange, upstreamUnreachable(asked.requestId))
    }
    const got: UpstreamAnswer = result.success
    const evidence = evidenceOf(route.kind, got.status, got.body)
    const headers = [...answered(got.headers, ["content-length"]), "Content-Length", String(got.body.length)]
    const written = Effect.suspend(() => record({
      ...blank(asked, verdict),
      effect: evidence.effect, objectId: evidence.objectId, intentId: evidence.intentId ?? route.intentId, amountMinor: evidence.amountMinor, status: got.status,
      requestId: headerOf(got.headers, "request-id"), replayed: headerOf(got.headers, "idempotent-replayed") === "true",
      answer: got.status === 200 ? encodeKept({ status: 200, headers, body: got.body.toString("base64") }) : null
    }))
    const marks = verdict.verdict === "resumed" ? ["X-Spend-Proxy", "duplicate"] : []
    const told = answer(exchange, got.status, [...headers, ...marks], got.body)
    // A paid charge changes nothing that another process would decide otherwise: until it is written, its room is held as well, and its key settles it.
    // The answer leaves at the end of this turn and the outcome is queued right after it, before a socket is read again: what its client asks next comes behind it.
    yield* route.kind === "charge" && evidence.effect === "paid" ? Effect.andThen(told, Effect.andThen(Effect.yieldNow, written)) : Effect.andThen(written, told)
  })

  /** Sends a call that asks for no money, both ways as a stream. */
  const stream = Effect.fnUntraced(function*(asked: Asked, verdict: Verdict) {
    const { exchange, method, raw, route } = asked
    const hasBody = method !== "GET" && method !== "HEAD"
    const result = yield* Effect.result(upstream.pipe({
      method,
      path: route.path + route.query,
      headers: forwarded(raw, hasBody ? [] : ["content-length", "content-type"]),
      body: hasBody ? exchange.request : null
    }, exchange))
    if (Result.isSuccess(result)) {
      const { headers, status } = result.success
      return yield* record({ ...blank(asked, verdict), effect: "read", status, requestId: headerOf(headers, "request-id") })
    }
    const { code, sent } = result.failure
    yield* record({ ...blank(asked, verdict), effect: "read", detail: code })
    yield* sent ? reset(exchange) : own(exchange, upstreamUnreachable(asked.requestId))
  })

  const replay = (asked: Asked, verdict: Verdict) => {
    const kept = Option.getOrThrow(decodeKept(verdict.answer ?? ""))
    return answer(
      asked.exchange, kept.status, [...answered(kept.headers, ["idempotent-replayed"]), "Idempotent-Replayed", "true", "X-Spend-Proxy", "duplicate"],
      Buffer.from(kept.body, "base64")
    )
  }

  /** Looks at an intent that this vault did not make: what its confirmation would cost. */
  const fetchIntent = (asked: Asked) =>
    upstream.call({
      method: "GET",
      path: `/v1/payment_intents/${asked.route.intentId}`,
      headers: forwarded(asked.raw, ["content-length", "content-type", "idempotency-key"]),
      body: null
    })

  /** Reads what the first call of a customer made, writes down what it has become, and answers with it; false when it is gone. */
  const look = Effect.fnUntraced(function*(asked: Asked, verdict: Verdict) {
    const { exchange, requestId } = asked
    const kind = verdict.object_kind === "charge" ? "charge" : "adjust"
    const result = yield* Effect.result(upstream.call({
      method: "GET",
      path: `/v1/${kind === "charge" ? "charges" : "payment_intents"}/${verdict.object_id}`,
      headers: forwarded(asked.raw, ["content-length", "content-type", "idempotency-key"]),
      body: null
    }))
    if (Result.isFailure(result)) {
      yield* own(exchange, upstreamUnreachable(requestId))
      return true
    }
    const got = result.success
    const evidence = evidenceOf(kind, got.status, got.body)
    if (got.status !== 200 || evidence.objectId !== verdict.object_id) {
      yield* answer(exchange, got.status === 200 ? 502 : got.status, answered(got.headers), got.body)
      return true
    }
    const headers = [...answered(got.headers, ["content-length"]), "Content-Length", String(got.body.length)]
    yield* record({
      ...blank(asked, verdict),
      kind: "read", key: null, effect: evidence.effect, objectId: evidence.objectId, intentId: evidence.intentId, amountMinor: evidence.amountMinor, status: got.status,
      requestId: headerOf(got.headers, "request-id"), answer: encodeKept({ status: 200, headers, body: got.body.toString("base64") })
    })
    if (evidence.effect === "canceled" || evidence.effect === "declined") return false
    yield* answer(exchange, 200, [...headers, "Idempotent-Replayed", "true", "X-Spend-Proxy", "duplicate"], got.body)
    return true
  })

  const decided = Effect.fnUntraced(function*(asked: Asked) {
    const { exchange, requestId } = asked
    let wish = wishOf(asked)
    let verdict = yield* decide(wish)
    // One that can never be paid stands in nobody's way any more.
    if (verdict.verdict === "look" && !(yield* look(asked, verdict))) verdict = yield* decide(wish)
    if (verdict.verdict === "unknown_intent") {
      const found = yield* Effect.result(fetchIntent(asked))
      if (Result.isFailure(found)) return yield* own(exchange, upstreamUnreachable(requestId))
      const got = found.success
      const evidence = evidenceOf("adjust", got.status, got.body)
      if (got.status !== 200 || evidence.intentId !== asked.route.intentId || evidence.amountMinor === null) {
        return yield* answer(exchange, got.status === 200 ? 502 : got.status, answered(got.headers), got.body)
      }
      wish = wishOf(asked, evidence)
      verdict = yield* decide(wish)
    }
    yield* Metric.update(ProxyMetrics.calls.of(verdict.verdict), 1)
    switch (verdict.verdict) {
      case "refused":
        yield* Metric.update(ProxyMetrics.refusals.of(verdict.code ?? "other"), 1)
        return yield* own(exchange, refusalOf(asked, verdict, wish.amountMinor))
      case "look":
        // Answered, or another one stands there now: the client asks again.
        return exchange.response.headersSent ? undefined : yield* own(exchange, refuse("duplicate_in_doubt", requestId))
      case "duplicate":
        return yield* replay(asked, verdict)
      case "unknown_intent":
        return yield* Effect.die(new Error("Bug: a fetched intent is still unknown"))
      default:
        return yield* asked.route.kind === "read" || asked.route.kind === "plain" ? stream(asked, verdict) : forward(asked, verdict)
    }
  })

  const ask = Effect.fnUntraced(function*(exchange: Exchange, vaultKey: Redacted.Redacted, requestId: string) {
    const { headers, method = "GET", rawHeaders: raw, url = "/" } = exchange.request
    const route = routeOf(method, url)
    const streams = route.kind === "read" || route.kind === "plain" || route.kind === "closed"
    const base = { exchange, method, raw, route, vaultKey, requestId, key: headerOf(raw, "idempotency-key") }
    if (streams) return { ...base, body: null, terms: null, problem: null } satisfies Asked
    const body = yield* readBody(exchange, bodyLimitBytes)
    const context = { route, method, headers }
    if (!movesMoney(route.kind)) {
      const problem = route.kind === "adjust" ? Option.getOrNull(Result.getFailure(readAdjustment(body, context))) : null
      return { ...base, body, terms: null, problem } satisfies Asked
    }
    const terms = readForm(body, context)
    const problem = Result.isFailure(terms) ? terms.failure : keyProblem(raw, base.key)
    return { ...base, body, terms: Result.getOrElse(terms, () => null), problem } satisfies Asked
  })

  return Proxy.of({
    handle: (exchange) => {
      const requestId = `req_proxy_${randomBytes(9).toString("hex")}`
      const vaultKey = vaultKeyOf(exchange.request.headers.authorization)
      if (vaultKey === undefined) return own(exchange, refuse("vault_key_unknown", requestId))
      return counted(ask(exchange, vaultKey, requestId).pipe(
        Effect.flatMap(decided),
        Effect.catchTags({
          VaultStoreError: (error) =>
            error.reason._tag === "VaultRefused"
              ? own(exchange, refuseForm({ param: null, code: "form_invalid", message: "The call holds a value that the spend-cap proxy cannot keep." }, requestId))
              : Metric.update(ProxyMetrics.storeAway, 1).pipe(
                Effect.andThen(Effect.logError("the vault store is away; nothing was forwarded").pipe(Effect.annotateLogs({ detail: error.message, requestId }))),
                Effect.andThen(own(exchange, storeUnavailable(requestId)))
              ),
          BodyTooLarge: () => own(exchange, refuse("request_too_large", requestId)),
          ClientGone: () => Effect.void
        }),
        Effect.catchCause((cause) => Effect.andThen(Effect.logError("the proxy failed inside", cause), reset(exchange))),
        Effect.uninterruptible
      ))
    }
  })
})

/** The proxy. */
export class Proxy extends Context.Service<Proxy, {
  /** Sees one request to its end. It never fails and is not interrupted. */
  readonly handle: (exchange: Exchange) => Effect.Effect<void>
}>()("@purser/spend-cap-proxy/Proxy") {
  /** Over a store and an upstream. */
  static readonly layer = (settings: Pick<ProxySettings, "storeTimeoutMs">): Layer.Layer<Proxy, never, VaultStore | Upstream> => Layer.effect(Proxy, make(settings))
}
