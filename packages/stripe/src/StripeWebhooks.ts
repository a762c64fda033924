/**
 * Stripe's webhook calls as events of the contract `WebhookSource`: signature over the raw bytes, then as little of the
 * event as names the object.
 *
 * What the event says about the object is not read: the object is asked for its present state.
 */
import { EventMalformed, type WebhookEvent, WebhookRefused, WebhookSource, type WebhookSubject } from "@purser/core"
import { Clock, Config, Duration, Effect, Layer, Option, Redacted, Schema } from "effect"
import { signatureProblem } from "./internal/signature.ts"
import { SettingRefused, StripeConfigError } from "./StripeConfigError.ts"

/** Settings of the verification. */
export interface StripeWebhookOptions {
  /** Signing secrets (`whsec_…`) of the endpoint; more than one while a secret is rolled. */
  readonly secrets: ReadonlyArray<Redacted.Redacted>
  /** How far the time of the signature may be from ours, both ways; default 5 minutes. */
  readonly tolerance?: Duration.Input | undefined
}

/** `PURSER_WEBHOOK_SECRET`: one secret, or several by comma. `PURSER_WEBHOOK_TOLERANCE`. */
export const stripeWebhookConfig: Config.Config<StripeWebhookOptions> = Config.all({
  secrets: Config.Redacted("PURSER_WEBHOOK_SECRET").pipe(
    Config.map((text) => Redacted.value(text).split(",").map((secret) => Redacted.make(secret.trim())))
  ),
  tolerance: Config.Duration("PURSER_WEBHOOK_TOLERANCE").pipe(Config.withDefault(Duration.minutes(5)))
})

const Event = Schema.Struct({
  object: Schema.optionalKey(Schema.Literal("event")),
  id: Schema.String.check(Schema.isPattern(/^evt_[A-Za-z0-9_]{1,250}$/)),
  type: Schema.String.check(Schema.isPattern(/^[a-z0-9_.]{1,120}$/)),
  created: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 100_000_000_000 })),
  account: Schema.optionalKey(Schema.NullOr(Schema.String.check(Schema.isMaxLength(255)))),
  data: Schema.Struct({ object: Schema.Struct({ id: Schema.optionalKey(Schema.NullOr(Schema.String)) }) })
})

const decodeEvent = Schema.decodeUnknownOption(Schema.fromJsonString(Event))

/** More special types stand before those that they begin with. */
const subjects: ReadonlyArray<readonly [prefix: string, subject: WebhookSubject, idPattern: RegExp]> = [
  ["payment_intent.", "payment", /^pi_[A-Za-z0-9_]{1,250}$/],
  ["charge.dispute.", "dispute", /^(?:dp|du|pdp)_[A-Za-z0-9_]{1,250}$/],
  ["charge.refund.", "refund", /^(?:re|pyr)_[A-Za-z0-9_]{1,250}$/],
  ["refund.", "refund", /^(?:re|pyr)_[A-Za-z0-9_]{1,250}$/],
  ["invoice.", "payment", /^in_[A-Za-z0-9_]{1,250}$/],
  ["charge.", "charge", /^(?:ch|py)_[A-Za-z0-9_]{1,250}$/],
  ["customer.updated", "customer", /^cus_[A-Za-z0-9_]{1,250}$/]
]

const subjectOf = (type: string, objectId: string | null): WebhookSubject => {
  const known = subjects.find(([prefix]) => type.startsWith(prefix))
  return known === undefined || objectId === null || !known[2].test(objectId) ? "other" : known[1]
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
const textOf = Option.liftThrowable((body: Uint8Array) => utf8.decode(body))

const make = Effect.fnUntraced(function*(options: StripeWebhookOptions) {
  const refuse = (name: string, detail: string) => Effect.fail(new StripeConfigError({ reason: new SettingRefused({ name, detail }) }))
  const { secrets } = options
  // Neither the secret nor its length is repeated: the message goes into logs.
  if (secrets.length === 0 || !secrets.every((secret) => /^whsec_[\x21-\x7e]{8,500}$/.test(Redacted.value(secret)))) {
    return yield* refuse("PURSER_WEBHOOK_SECRET", "a signing secret is whsec_ and 8 to 500 printable ASCII characters, none of them white space; several are separated by commas")
  }
  const toleranceMs = Duration.toMillis(Duration.fromInputUnsafe(options.tolerance ?? "5 minutes"))
  if (!Number.isFinite(toleranceMs) || toleranceMs < 1000 || toleranceMs > 86_400_000) {
    return yield* refuse("PURSER_WEBHOOK_TOLERANCE", "it must be from 1 second to 1 day")
  }
  return WebhookSource.of({
    open: Effect.fn("StripeWebhooks.open")(function*(body: Uint8Array, header: string | undefined) {
      const nowMs = yield* Clock.currentTimeMillis
      const problem = signatureProblem({ body, header, secrets, nowMs, toleranceMs })
      if (problem !== undefined) return yield* new WebhookRefused({ reason: problem })
      const malformed = (detail: string) => Effect.fail(new WebhookRefused({ reason: new EventMalformed({ detail }) }))
      const text = textOf(body)
      if (Option.isNone(text)) return yield* malformed("the body is not UTF-8")
      const read = decodeEvent(text.value)
      if (Option.isNone(read)) return yield* malformed("the body is no event of the kind that is spoken here")
      const { account, created, data, id, type } = read.value
      const objectId = data.object.id ?? null
      const subject = subjectOf(type, objectId)
      const event: WebhookEvent = {
        id, type, createdMs: created * 1000, account: account ?? null, subject, objectId: subject === "other" ? null : objectId
      }
      return event
    })
  })
})

/** `WebhookSource` on Stripe. */
export const StripeWebhooks: {
  /** From the environment, see {@link stripeWebhookConfig}. */
  readonly layerConfig: Layer.Layer<WebhookSource, Config.ConfigError | StripeConfigError>
  /** With these secrets. */
  readonly layer: (options: StripeWebhookOptions) => Layer.Layer<WebhookSource, StripeConfigError>
} = {
  layerConfig: Layer.effect(WebhookSource, Effect.flatMap(stripeWebhookConfig, make)),
  layer: (options) => Layer.effect(WebhookSource, make(options))
}
