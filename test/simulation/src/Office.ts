/**
 * A process of the engine beside the workers: it takes webhooks, refunds, follows up declines or compares the account. Its
 * lives share a Stripe client; all else is built anew in each, over the stores as this process sees them.
 */
import {
  ChargeGateway, ChargePause, type ChargeRequest, DunningBook, Ledger, type LedgerError, type ProcessorAccount, ReconcileBook, type RefundGateway, RefundLedger, Sightings, SpendCap, WebhookInbox
} from "@purser/core"
import { ChargePipeline, type PipelineOptions } from "@purser/engine"
import { StripeAccount, StripeRefunds } from "@purser/stripe"
import type { WebhookRequest } from "@purser/stripe-sim"
import { Cause, Context, Effect, type Exit, Fiber, Layer, type Scope } from "effect"
import type { Process } from "./Process.ts"
import { Slot } from "./Slot.ts"
import { capOf, connectionOf, ledgerOf } from "./Store.ts"
import { optionsOf, stripeOf } from "./Way.ts"
import type { Shared } from "./Worker.ts"

/** The books beside the ledger, as the store has them. */
export type Books = DunningBook | ReconcileBook | RefundLedger | Sightings | WebhookInbox

/** What the engine is in an office. */
export type Engine = Books | ChargeGateway | ChargePause | ChargePipeline | Ledger | PipelineOptions | ProcessorAccount | RefundGateway | SpendCap

type Atoms = ChargeGateway | ProcessorAccount | RefundGateway

/** Who takes what Stripe posts. */
export interface Mail {
  receive: (request: WebhookRequest) => Effect.Effect<number>
}

/** What offices have beside what the workers share. */
export interface OfficeShared extends Shared {
  readonly requests: ReadonlyArray<ChargeRequest>
  readonly mail: Mail
  readonly books: Context.Context<Books>
}

/** A book as one process sees it: each call goes over its connection. */
const bookOf = <S extends object>(book: S, connection: (operation: string) => <A>(call: Effect.Effect<A, LedgerError>) => Effect.Effect<A, LedgerError>): S =>
  Object.fromEntries(Object.entries(book).map(([name, member]) => [
    name,
    typeof member === "function" ? (...args: ReadonlyArray<unknown>) => connection(name)(member(...args)) : connection(name)(member)
  ])) as S

interface Life<S> {
  readonly process: Process
  readonly scope: Scope.Closeable
  readonly services: Context.Context<S>
}

/** What an office is for. */
export interface Duty<S> {
  /** Its services, over the engine. */
  readonly layer: Layer.Layer<S, unknown, Engine>
  /** What a life does by itself, until it ends. */
  readonly run?: (services: Context.Context<S>) => Effect.Effect<unknown, unknown>
  /** A bug between this office and its engine. */
  readonly engine?: (engine: Context.Context<Engine>) => Context.Context<Engine>
}

/** One office: its present life, and how another one begins. */
export class Office<S> extends Slot {
  private life: Life<S> | undefined
  private stripe: Context.Context<Atoms> | undefined
  private readonly shared: OfficeShared
  private readonly duty: Duty<S>

  constructor(name: string, shared: OfficeShared, duty: Duty<S>) {
    super(name, shared.kernel, shared.scenario.seed)
    this.shared = shared
    this.duty = duty
  }

  /** Builds what outlives a life. `onCall` sees each call of Stripe as it leaves. */
  readonly prepare = (onCall?: (method: string, path: string) => Effect.Effect<void>): Effect.Effect<void, never, Scope.Scope> =>
    stripeOf(this.shared, { processOf: () => this.process, onCall }, (gateway) => Layer.mergeAll(gateway, StripeAccount.layer(), StripeRefunds.layerWith)).pipe(
      Effect.map((built) => {
        const { mutant, tools } = this.shared
        const gateway = Context.get(built, ChargeGateway)
        this.stripe = Context.add(built, ChargeGateway, mutant?.gateway?.(gateway, tools) ?? gateway)
      })
    )

  protected begin(process: Process, scope: Scope.Closeable) {
    const { books, cap, ledger, mutant, pause, scenario, storm } = this.shared
    process.atPass = () => this.atPass()
    const connection = connectionOf(process, storm)
    const seen = <I, T extends object>(book: Context.Key<I, T>) => Layer.succeed(book, bookOf(Context.get(books as Context.Context<I>, book), connection))
    const engine = ChargePipeline.layer.pipe(
      Layer.provideMerge(Layer.mergeAll(
        Layer.succeed(Ledger, ledgerOf(process, storm, ledger, scenario.oneStore ? { cap, saysRoomAnyway: mutant?.saysRoomAnyway === true } : undefined)),
        Layer.succeed(SpendCap, capOf(process, storm, cap, { isSameStore: scenario.oneStore, takesUndoneForDone: mutant?.takesUndoneForDone === true })),
        Layer.succeed(ChargePause, pause),
        seen(DunningBook), seen(ReconcileBook), seen(RefundLedger), seen(Sightings), seen(WebhookInbox),
        Layer.succeedContext(this.stripe!),
        optionsOf(this.shared, process)
      ))
    )
    return Effect.gen({ self: this }, function*() {
      const built = yield* Layer.buildWithScope(engine, scope)
      const services = yield* Layer.buildWithScope(this.duty.layer.pipe(Layer.provide(Layer.succeedContext(this.duty.engine?.(built) ?? built))), scope)
      this.life = { process, scope, services }
      if (this.duty.run !== undefined) yield* Effect.forkIn(this.watched(process, this.duty.run(services)), scope)
    })
  }

  /** Whatever fails inside a living process is the engine's doing. */
  private watched<A, E>(process: Process, effect: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.tapCause(effect, (cause) =>
      Effect.sync(() => {
        if (!process.dead && Cause.hasDies(cause)) this.shared.violations.push(`${process.name} failed inside: ${Cause.pretty(cause)}`)
      }))
  }

  /** Has the present life do something; `undefined` when there is none, or when it dies over it. */
  readonly ask = <A, E>(act: (services: Context.Context<S>) => Effect.Effect<A, E>): Effect.Effect<Exit.Exit<A, E> | undefined> =>
    Effect.suspend(() => {
      const { life } = this
      if (life === undefined || life.process.dead) return Effect.undefined
      return Effect.forkIn(this.watched(life.process, act(life.services)), life.scope).pipe(
        Effect.flatMap(Fiber.await),
        Effect.map((exit) => life.process.dead ? undefined : exit)
      )
    })

  private atPass() {
    const { storm } = this.shared
    const fault = storm.atOffice(this.name)
    if (fault === undefined) return
    storm.tell(this.process.name, `${fault.how} for ${fault.ms}`)
    if (fault.how === "kill") return this.kill(fault.ms)
    this.freeze(fault.ms)
  }
}
