/**
 * The faults of one scenario as the world asks for them: each event of a kind has a number, and the fault that names it
 * strikes. When the storm is over nothing strikes any more, whatever is left.
 */
import type { FaultPlace } from "@purser/core"
import { Context, Effect, type Exit } from "effect"
import { type Kernel, startMs } from "./Kernel.ts"
import type { Scenario, SimFault } from "./Scenario.ts"

type Of<K extends SimFault["kind"]> = Extract<SimFault, { readonly kind: K }>

/** What happens to one call of the store; of `undone` the driver sends it again as often as its own rule says. */
export type StoreFate =
  | { readonly how: "down" | "doubt" | "slow"; readonly ms: number }
  | { readonly how: "undone"; readonly times: number }

/** Whose calls they are. */
export type StoreLane = "store" | "runs" | "idle"

/** Asked at every event. */
export class Storm {
  over = false
  /** What happens, line by line, for a person who looks at one seed. */
  readonly lines: Array<string> = []
  private readonly isTold: boolean
  private readonly byKind = new Map<SimFault["kind"], ReadonlyArray<SimFault>>()
  private readonly counts = new Map<string, number>()
  /** Since when each process has its connection to the store. */
  private readonly connectedMs = new Map<string, number>()
  private readonly kernel: Kernel
  private readonly faults: ReadonlyArray<SimFault>

  constructor(kernel: Kernel, scenario: Scenario, isTold: boolean) {
    this.kernel = kernel
    this.isTold = isTold
    this.faults = scenario.faults
  }

  /** Milliseconds since the world began. */
  get nowMs() {
    return this.kernel.nowMs - startMs
  }

  /** All faults of a kind. */
  of<K extends SimFault["kind"]>(kind: K): ReadonlyArray<Of<K>> {
    const known = this.byKind.get(kind)
    if (known !== undefined) return known as ReadonlyArray<Of<K>>
    const found = this.faults.filter((fault): fault is Of<K> => fault.kind === kind)
    this.byKind.set(kind, found)
    return found
  }

  /** The fault of a window that is open now. */
  private open<F extends Of<"storeAway" | "stripeAway" | "partition">>(faults: ReadonlyArray<F>): F | undefined {
    return this.over ? undefined : faults.find(({ atMs, forMs }) => atMs <= this.nowMs && this.nowMs < atMs + forMs)
  }

  tell(who: string, what: string, answer?: unknown) {
    if (this.isTold) this.lines.push(`${String(this.nowMs).padStart(9)} ${who} ${what}${answer === undefined ? "" : ` => ${JSON.stringify(answer, (_, value) => typeof value === "bigint" ? Number(value) : value).slice(0, 160)}`}`)
  }

  private count(event: string): number {
    const count = (this.counts.get(event) ?? 0) + 1
    this.counts.set(event, count)
    return count
  }

  private strikes<F extends SimFault & { readonly nth: number }>(event: string, faults: ReadonlyArray<F>): F | undefined {
    const count = this.count(event)
    return this.over ? undefined : faults.find(({ nth }) => nth === count)
  }

  /** What happens to this call of the store, by a process. Workers' calls and those of who has runs in hand are counted apart; what is asked idly is not. */
  atStore(who: string, lane: StoreLane = "store"): StoreFate | undefined {
    const struck = lane === "idle" ? undefined : this.strikes(lane, this.of("store"))
    const undone = lane === "idle" ? undefined : this.strikes(lane === "runs" ? "runs statement" : "statement", this.of("serialization"))
    const away = this.open(this.of("storeAway"))
    if (away !== undefined) return { how: away.doubt ? "doubt" : "down", ms: 10 }
    return this.atFailover(who) ?? struck ?? (undone === undefined ? undefined : { how: "undone", times: undone.times })
  }

  private atFailover(who: string): StoreFate | undefined {
    if (this.over) return undefined
    const sinceMs = this.connectedMs.get(who)
    for (const { atMs, forMs, underWay } of this.of("failover")) {
      const backMs = atMs + forMs
      const isAway = atMs <= this.nowMs && this.nowMs < backMs
      const leadsNowhere = sinceMs !== undefined && sinceMs < atMs && backMs <= this.nowMs
      if (!isAway && !leadsNowhere) continue
      this.connectedMs.delete(who)
      return { how: isAway && this.count(`failover ${atMs}`) <= underWay ? "doubt" : "down", ms: 10 }
    }
    if (sinceMs === undefined) this.connectedMs.set(who, this.nowMs)
    return undefined
  }

  stripeIsAway(): boolean {
    return this.open(this.of("stripeAway")) !== undefined
  }

  atMessage(direction: "request" | "reply"): Of<"message"> | undefined {
    return this.strikes(direction, this.of("message").filter((fault) => fault.direction === direction))
  }

  isCutOff(client: number): boolean {
    return this.open(this.of("partition").filter((fault) => fault.client === client)) !== undefined
  }

  atPlace(place: FaultPlace): Of<"kill"> | Of<"freeze"> | undefined {
    return this.strikes(place, [...this.of("kill"), ...this.of("freeze")].filter((fault) => fault.place === place))
  }

  atRunner(): Of<"runner"> | undefined {
    return this.strikes("runner", this.of("runner"))
  }

  /** A process beside the workers does something to the world outside, or has done it. */
  atOffice(office: string): Of<"office"> | undefined {
    return this.strikes(`office ${office}`, this.of("office").filter((fault) => fault.office === office))
  }

  atIntent(): Of<"cancelInDashboard"> | undefined {
    return this.strikes("intent", this.of("cancelInDashboard"))
  }
}

/** Starts something that goes on by itself in the world of the kernel. */
export const forkIn = (kernel: Kernel, effect: Effect.Effect<unknown, never>, onExit?: (exit: Exit.Exit<unknown, never>) => void): void => {
  const fiber = Effect.runForkWith(Context.makeUnsafe(kernel.context.mapUnsafe))(effect)
  if (onExit !== undefined) fiber.addObserver(onExit)
}
