/** A tracer that keeps its spans, so that a test can say whose trace goes on in whose. */
import { Context, Effect, Layer, Option, Tracer } from "effect"

/** The spans of the program, in the order in which they began. */
export class SpanJournal extends Context.Service<SpanJournal, {
  /** Spans of this name. */
  readonly named: (name: string) => Effect.Effect<ReadonlyArray<Tracer.Span>>
  /** All of them. */
  readonly all: Effect.Effect<ReadonlyArray<Tracer.Span>>
}>()("@purser/testkit/SpanJournal") {
  /** Traces what runs in it. */
  static readonly layer: Layer.Layer<SpanJournal> = Layer.effectContext(Effect.sync(() => {
    const spans: Array<Tracer.Span> = []
    const tracer = Tracer.make({
      span: (options) => {
        const span = new Tracer.NativeSpan(options)
        spans.push(span)
        return span
      }
    })
    return Context.make(SpanJournal, {
      named: (name) => Effect.sync(() => spans.filter((span) => span.name === name)),
      all: Effect.sync(() => [...spans])
    }).pipe(Context.add(Tracer.Tracer, tracer))
  }))
}

/** The id of the span in which a span hangs. */
export const parentId = (span: Tracer.Span): string | undefined => Option.getOrUndefined(span.parent)?.spanId
