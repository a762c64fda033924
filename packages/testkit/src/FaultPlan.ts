/** What the memory network will do to the next messages, set from inside a test. */
import { type MessageFate, MemoryNetwork } from "@purser/core"
import { Context, Effect, Layer } from "effect"

type Direction = "request" | "reply"

/** Queued fates per direction; a message without one is delivered once. */
export class FaultPlan extends Context.Service<FaultPlan, {
  readonly push: (direction: Direction, fates: ReadonlyArray<MessageFate>) => Effect.Effect<void>
}>()("@purser/testkit/FaultPlan") {
  /** Puts the plan in charge of `Transport.layerMemory`. */
  static readonly layer: Layer.Layer<FaultPlan> = Layer.effectContext(Effect.sync(() => {
    const queues: Record<Direction, Array<MessageFate>> = { request: [], reply: [] }
    return Context.make(FaultPlan, {
      push: (direction: Direction, fates: ReadonlyArray<MessageFate>) => Effect.sync(() => void queues[direction].push(...fates))
    }).pipe(
      Context.add(MemoryNetwork, (direction: Direction) => Effect.sync((): MessageFate => queues[direction].shift() ?? { _tag: "Deliver" }))
    )
  }))

  /** The next `count` replies never arrive. */
  static readonly loseReply = (count: number) => many("reply", count, { _tag: "Lose" })
  /** The next `count` requests never arrive. */
  static readonly loseRequest = (count: number) => many("request", count, { _tag: "Lose" })
  /** The next `count` requests arrive twice. */
  static readonly repeatRequest = (count: number) => many("request", count, { _tag: "Repeat" })
  /** The next `count` replies come late. */
  static readonly delayReply = (count: number, delayMs: number) => many("reply", count, { _tag: "Delay", delayMs })
  /** The next `count` requests come late, behind later ones. */
  static readonly delayRequest = (count: number, delayMs: number) => many("request", count, { _tag: "Delay", delayMs })
}

const many = (direction: Direction, count: number, fate: MessageFate): Effect.Effect<void, never, FaultPlan> =>
  Effect.flatMap(FaultPlan, (plan) => plan.push(direction, Array.from({ length: count }, () => fate)))
