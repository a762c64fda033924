/**
 * How the rows of a run are made, and what is done with them: a source, stages of the user's before the charge, the charge
 * itself, and stages after it. Types flow from one to the next, so that a stage gets what the one before it gives.
 *
 * A stage runs on a chunk at a time, at least once, with a key that stays the same however often and wherever it runs. It makes
 * no charge: the charge is the engine's.
 */
import { type ChargeRequest, type RunRow, type RunRowReport } from "@purser/core"
import { Cause, Duration, Effect, Schedule, Schema, Stream } from "effect"
import type { RunReport } from "./RunReport.ts"
import { RunError, SourceFailed, StageFailed } from "./RunError.ts"

/** Where a stage stands. */
export interface StageContext {
  readonly runId: string
  readonly name: string
  readonly round: number
  /** From 0. */
  readonly chunk: number
  /** The same for every try of this stage on this chunk, on whatever machine. */
  readonly idempotencyKey: string
  /** 1 for the first try of this process. */
  readonly attempt: number
}

/** How patient a stage is. */
export interface StagePolicy {
  /** When a try that failed is followed by another: five in all, over half a minute, unless told. */
  readonly retry?: Schedule.Schedule<unknown, unknown>
  /** How long one try may take; a minute unless told. */
  readonly timeout?: Duration.Input
}

/** What can be kept between two stages. */
export type ItemSchema<A> = Schema.Codec<A, unknown>

/** What is made of a chunk of one stage. */
export interface BeforeStage {
  readonly name: string
  readonly run: (body: string, context: StageContext) => Effect.Effect<string, RunError>
}

/** What is done with rows that were charged. */
export interface AfterStage {
  readonly name: string
  readonly run: (rows: ReadonlyArray<RunRowReport>, context: StageContext) => Effect.Effect<void, RunError>
}

/** A definition with all that it needs, as the engine runs it. */
export interface ClosedDefinition {
  readonly name: string
  /** Rows as they are, or chunks for the stages, as JSON. */
  readonly source:
    | { readonly _tag: "Rows"; readonly rows: (params: unknown) => Stream.Stream<ReadonlyArray<RunRow>, RunError> }
    | { readonly _tag: "Items"; readonly chunks: (params: unknown) => Stream.Stream<string, RunError> }
  readonly before: ReadonlyArray<BeforeStage>
  readonly requests: (body: string) => Effect.Effect<ReadonlyArray<ChargeRequest>, RunError>
  readonly after: ReadonlyArray<AfterStage>
  readonly ended: ReadonlyArray<(report: RunReport) => Effect.Effect<void, RunError>>
}

/** A definition that says what is charged. `R` is what its parts need. */
export interface RunDefinition<R> {
  readonly name: string
  /** A further stage after the charge; it gets every row of the run once it is dispatched, with how it stands; what a canceled round did not send, in the round that sends it. */
  readonly after: <E, R2>(name: string, stage: StagePolicy & {
    readonly run: (rows: ReadonlyArray<RunRowReport>, context: StageContext) => Effect.Effect<void, E, R2>
  }) => RunDefinition<R | R2>
  /** What is done at the end of a run, however it ended. At least once. */
  readonly ended: <E, R2>(hook: StagePolicy & { readonly run: (report: RunReport) => Effect.Effect<void, E, R2> }) => RunDefinition<R | R2>
  /** The definition with what it needs taken from here. */
  readonly close: Effect.Effect<ClosedDefinition, never, R>
}

/** A definition on its way: what the last stage gives is `A`. */
export interface RunStages<A, R> {
  /** A further stage before the charge. */
  readonly stage: <B, E, R2>(name: string, stage: StagePolicy & {
    readonly output: ItemSchema<B>
    readonly run: (items: ReadonlyArray<A>, context: StageContext) => Effect.Effect<ReadonlyArray<B>, E, R2>
  }) => RunStages<B, R | R2>
  /** What is charged for each item. */
  readonly charge: (request: (item: A) => ChargeRequest) => RunDefinition<R>
}

const textOf = (error: unknown): string => error instanceof Error ? error.message || error.name : String(error)
const sourceFailed = (definition: string) => (error: unknown) =>
  error instanceof RunError ? error : new RunError({ reason: new SourceFailed({ definition, detail: textOf(error) }) })

const patience = Schedule.exponential("1 second").pipe(Schedule.jittered, Schedule.upTo({ times: 4 }))

/** One step under its policy: every try is timed, and the last failure is told. */
const under = <A, E, R>(
  stage: string,
  policy: StagePolicy,
  chunk: number,
  attempt: (attempt: number) => Effect.Effect<A, E, R>
): Effect.Effect<A, RunError, R> => {
  const failed = (detail: string) => new RunError({ reason: new StageFailed({ stage, chunk, detail }) })
  return Effect.suspend(() => {
    let tries = 0
    const timeout = policy.timeout ?? "1 minute"
    const once = Effect.suspend(() => attempt(++tries)).pipe(
      // What a stage throws is its failure like any other: it must not end a run whose charges are made.
      Effect.catchDefect((defect) => Effect.fail(defect)),
      Effect.mapError((error) => failed(textOf(error))),
      Effect.timeoutOrElse({
        duration: timeout,
        orElse: () => Effect.fail(failed(`no answer within ${Duration.format(Duration.fromInputUnsafe(timeout))}`))
      })
    )
    return Effect.retry(once, policy.retry ?? patience)
  })
}

interface Chain<R> {
  readonly name: string
  readonly source: Effect.Effect<ClosedDefinition["source"], never, R>
  readonly before: ReadonlyArray<Effect.Effect<BeforeStage, never, R>>
}

const definition = <R>(
  chain: Chain<R>,
  requests: ClosedDefinition["requests"],
  after: ReadonlyArray<Effect.Effect<AfterStage, never, R>>,
  ended: ReadonlyArray<Effect.Effect<ClosedDefinition["ended"][number], never, R>>
): RunDefinition<R> => ({
  name: chain.name,
  after: <E, R2>(name: string, { run, ...policy }: StagePolicy & { readonly run: (rows: ReadonlyArray<RunRowReport>, context: StageContext) => Effect.Effect<void, E, R2> }) =>
    definition<R | R2>(chain, requests, [
      ...after,
      Effect.map(Effect.context<R2>(), (services): AfterStage => ({
        name,
        run: (rows, context) =>
          Effect.provideContext(under(name, policy, context.chunk, (attempt) => run(rows, { ...context, attempt })), services)
      }))
    ], ended),
  ended: <E, R2>({ run, ...policy }: StagePolicy & { readonly run: (report: RunReport) => Effect.Effect<void, E, R2> }) =>
    definition<R | R2>(chain, requests, after, [
      ...ended,
      Effect.map(Effect.context<R2>(), (services) => (report: RunReport) =>
        Effect.provideContext(under("ended", policy, 0, () => run(report)), services))
    ]),
  close: Effect.gen(function*() {
    return {
      name: chain.name,
      source: yield* chain.source,
      before: yield* Effect.all(chain.before),
      requests,
      after: yield* Effect.all(after),
      ended: yield* Effect.all(ended)
    }
  })
})

/** A chunk's items as text and back. */
const codec = <A>(schema: ItemSchema<A>) => {
  const list = Schema.fromJsonString(Schema.toCodecJson(Schema.Array(schema)))
  return { encode: Schema.encodeEffect(list), decode: Schema.decodeEffect(list) }
}

const stages = <A, R>(chain: Chain<R>, schema: ItemSchema<A>): RunStages<A, R> => {
  const { decode } = codec(schema)
  return {
    stage: <B, E, R2>(name: string, { output, run, ...policy }: StagePolicy & {
      readonly output: ItemSchema<B>
      readonly run: (items: ReadonlyArray<A>, context: StageContext) => Effect.Effect<ReadonlyArray<B>, E, R2>
    }) => {
      const { encode } = codec(output)
      const stage = Effect.map(Effect.context<R2>(), (services): BeforeStage => ({
        name,
        run: (body, context) =>
          Effect.provideContext(
            under(name, policy, context.chunk, (attempt) =>
              Effect.flatMap(decode(body), (items) => Effect.flatMap(run(items, { ...context, attempt }), encode))),
            services
          )
      }))
      return stages<B, R | R2>({ ...chain, before: [...chain.before, stage] }, output)
    },
    charge: (request) =>
      definition(
        chain,
        (body) =>
          decode(body).pipe(
            Effect.map((items) => items.map(request)),
            Effect.catchDefect((defect) => Effect.fail(defect)),
            Effect.mapError(sourceFailed(chain.name))
          ),
        [],
        []
      )
  }
}

const told = <P, A, E, R>(name: string, params: Schema.Codec<P, unknown>, rows: (params: P) => Stream.Stream<A, E, R>) => {
  const decode = Schema.decodeUnknownEffect(Schema.toCodecJson(params))
  return Effect.map(Effect.context<R>(), (services) => (given: unknown): Stream.Stream<A, RunError> =>
    Stream.unwrap(Effect.map(decode(given), rows)).pipe(
      // What it throws is its failure, as of a stage.
      Stream.catchCause((cause) => Cause.hasInterrupts(cause) ? Stream.failCause(cause) : Stream.fail(Cause.squash(cause))),
      Stream.mapError(sourceFailed(name)),
      Stream.provideContext(services)
    ))
}

/** How definitions begin. */
export const RunDefinition = {
  /** Rows that are charges as they come, in chunks and with their lines; no stages before them. */
  rows: <P, E, R>(name: string, source: {
    readonly params: Schema.Codec<P, unknown>
    readonly rows: (params: P) => Stream.Stream<ReadonlyArray<RunRow>, E, R>
  }): RunDefinition<R> =>
    definition(
      { name, source: Effect.map(told(name, source.params, source.rows), (rows) => ({ _tag: "Rows", rows })), before: [] },
      () => Effect.succeed([]),
      [],
      []
    ),
  /** A stream of items, for stages. Everything that one charge is made of is one item: stages see a chunk at a time. */
  items: <P, A, E, R>(name: string, source: {
    readonly params: Schema.Codec<P, unknown>
    readonly item: ItemSchema<A>
    readonly items: (params: P) => Stream.Stream<A, E, R>
    /** Items in a chunk; 500 unless told. */
    readonly chunkSize?: number
  }): RunStages<A, R> => {
    const { encode } = codec(source.item)
    const chunks = (params: P) => source.items(params).pipe(Stream.grouped(source.chunkSize ?? 500), Stream.mapEffect((items) => encode(items)))
    return stages({ name, source: Effect.map(told(name, source.params, chunks), (bodies) => ({ _tag: "Items", chunks: bodies })), before: [] }, source.item)
  }
}
