/**
 * Spans that cost nothing where nobody traces, and how a trace goes on behind a message: as the text of the W3C's
 * `traceparent`. A program traces when it provides Effect's `Tracer`; this module knows no exporter.
 *
 * A span names charges and objects of the processor, never amounts, customers or keys.
 */
import { Effect, type Fiber, Option, type Tracer } from "effect"
import * as Headers from "effect/http/Headers"
import * as HttpTraceContext from "effect/http/HttpTraceContext"
import type { ChargeRequest } from "./ChargeRequest.ts"
import { RunMark } from "./RunMark.ts"

/** What a span is made with; a function, so that it is not computed for nobody. */
export type SpanDetails = () => Tracer.SpanOptionsNoTrace

const isOn = ({ cache }: Fiber.Fiber<unknown, unknown>): boolean => cache.tracer !== undefined && cache.tracerEnabled

// Each kept stack would cost more than the span.
const withoutStack = { captureStackTrace: false } as const

/** The length of a `traceparent` of version 00, which is the one that there is. */
const traceparentLength = 55

/** The text of a span; it says too whether the span is kept. */
const traceparentOf = (span: Tracer.Span): string => HttpTraceContext.toHeaders(span)["traceparent"]!

/** The span that a text names; undefined for what names none. */
const parentOf = (traceparent: string): Tracer.ExternalSpan | undefined =>
  Option.getOrUndefined(HttpTraceContext.w3c(Headers.fromRecordUnsafe({ traceparent })))

/** Without a sender's span a trace begins, whatever the server itself runs in. */
const behind = (traceparent: string | undefined): Tracer.SpanOptionsNoTrace => {
  const parent = traceparent === undefined ? undefined : parentOf(traceparent)
  return parent === undefined ? { root: true } : { parent }
}

/** Spans around effects, and across messages. */
export const Tracing = {
  /** Whether the program traces here. */
  isOn: Effect.withFiber((fiber) => Effect.succeed(isOn(fiber))),

  /** The span that a fiber is in, when the program traces. */
  spanOf: (fiber: Fiber.Fiber<unknown, unknown>): Tracer.AnySpan | undefined => isOn(fiber) ? fiber.cache.span : undefined,

  /** The same as `traced`, for who has the fiber at hand that runs it at once. */
  tracedIn: <A, E, R>(
    fiber: Fiber.Fiber<unknown, unknown>,
    name: string,
    effect: Effect.Effect<A, E, R>,
    details?: SpanDetails,
    said?: (value: A) => Record<string, unknown>
  ): Effect.Effect<A, E, R> => {
    if (!isOn(fiber)) return effect
    const told = said === undefined ? effect : Effect.tap(effect, (value) => Effect.annotateCurrentSpan(said(value)))
    return Effect.withSpan(told, name, { ...details?.(), ...withoutStack })
  },

  /** A span around an effect when the program traces; `said` gives attributes from what came of it. */
  traced: <A, E, R>(name: string, effect: Effect.Effect<A, E, R>, details?: SpanDetails, said?: (value: A) => Record<string, unknown>): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber) => Tracing.tracedIn(fiber, name, effect, details, said)),

  /** A span that begins a trace of its own, with a link to the span around: one of very many that are looked at one by one. */
  apart: <A, E, R>(name: string, effect: Effect.Effect<A, E, R>, details?: SpanDetails): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber) => {
      if (!isOn(fiber)) return effect
      const around = fiber.cache.span
      const links = around === undefined ? [] : [{ span: around, attributes: {} }]
      return Effect.withSpan(effect, name, { root: true, links, ...details?.(), ...withoutStack })
    }),

  /** Sends in a span of its own, and gives the text by which the other side goes on with it; undefined when nobody traces. */
  sending: <A, E, R>(name: string, send: (traceparent: string | undefined) => Effect.Effect<A, E, R>, details?: SpanDetails): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber) =>
      isOn(fiber)
        ? Effect.useSpan(name, { kind: "client", ...details?.() }, (span) => Effect.withParentSpan(send(traceparentOf(span)), span, withoutStack))
        : send(undefined)),

  /** Handles what came with such a text, or without one, in a span that goes on with the sender's. */
  serving: <A, E, R>(name: string, traceparent: string | undefined, effect: Effect.Effect<A, E, R>, details?: SpanDetails): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber) =>
      isOn(fiber)
        ? Effect.withSpan(effect, name, { kind: "server", ...behind(traceparent), ...details?.(), ...withoutStack })
        : effect),

  /** What spans say of a charge. */
  ofCharge: (request: ChargeRequest): SpanDetails => () => {
    const runId = RunMark.of(request)
    return { attributes: { "purser.charge_key": request.chargeKey, "purser.billing_period": request.billingPeriod, ...(runId === undefined ? {} : { "purser.run_id": runId }) } }
  },

  /** Attributes of the span around it, when the program traces. */
  annotate: (attributes: () => Record<string, unknown>): Effect.Effect<void> =>
    Effect.withFiber((fiber) => isOn(fiber) ? Effect.annotateCurrentSpan(attributes()) : Effect.void),

  /** Whether a value of a message can be such a text; it is kept as it came and read by whoever traces. */
  isTraceparent: (value: unknown): value is string => typeof value === "string" && value.length === traceparentLength
} as const
