/**
 * What goes wrong, and when: a schedule of one seed. A fault strikes when the processor's books have so many payments, so that
 * the schedule means the same on a slow and on a quick machine.
 */
import type { Rng } from "@purser/test-simulation/src/Rng.ts"

/** The transports that processes reach each other by, and those that stay in one process. */
export const transports = ["req-rep", "router-dealer", "push-pull", "majordomo", "pub-sub", "pair", "memory"] as const
/** One of them. */
export type Transport = (typeof transports)[number]

/** Everything runs in the process of the run. */
export const isAlone = (transport: Transport): boolean => transport === "pair" || transport === "memory"
/** A broker or a forwarder stands between. */
export const hasBetween = (transport: Transport): boolean => !isAlone(transport) && transport !== "req-rep"

/** Kinds of faults, and what each does. */
export const faultKinds = {
  "kill-worker": "SIGKILL of a worker, and another one in its place",
  "freeze-worker": "SIGSTOP of a worker for longer than its leases, then SIGCONT",
  "kill-producer": "SIGKILL of the run, and the same command again",
  "freeze-producer": "SIGSTOP of the run, then SIGCONT",
  "kill-between": "SIGKILL of the broker or forwarder, and another one at its address",
  "freeze-between": "SIGSTOP of the broker or forwarder, then SIGCONT",
  "reset-messages": "TCP reset of every connection between client, broker or forwarder, and workers",
  "reset-stripe": "TCP reset of every connection to Stripe, answers on their way included",
  "reset-database": "TCP reset of every connection to the database, commits on their way included",
  "restart-database": "PostgreSQL stopped as by a crash, or by an administrator, and started again",
  "fail-over": "PostgreSQL killed, its synchronous standby promoted, the address moved",
  "move-clocks": "the database's and Stripe's clock go on by hours: leases run out, keys are pruned; or back by seconds",
  "jump-worker": "a worker's own clock jumps by days",
  "fill-disk": "no room on the disk of the embedded database, and room again"
} as const
/** One of them. */
export type FaultKind = keyof typeof faultKinds

/** One fault of a schedule. */
export interface Fault {
  readonly kind: FaultKind
  /** Strikes when so many payments were made. */
  readonly at: number
  /** Which of two workers. */
  readonly worker: 0 | 1
  /** How long something stands still. */
  readonly forMs: number
  /** By how much clocks move. */
  readonly byMs: number
  readonly mode: "immediate" | "fast"
}

/** The kinds that can happen over a transport, on a server or in a folder. */
export const kindsOf = (transport: Transport, store: "server" | "replicated" | "folder"): ReadonlyArray<FaultKind> => {
  const all: ReadonlyArray<FaultKind> = [
    "kill-producer",
    "freeze-producer",
    "reset-stripe",
    ...(isAlone(transport) ? [] : ["kill-worker", "freeze-worker", "reset-messages", "jump-worker"] as const),
    ...(hasBetween(transport) ? ["kill-between", "freeze-between"] as const : [])
  ]
  if (store === "folder") return [...all, "fill-disk"]
  return [...all, "reset-database", "move-clocks", store === "replicated" ? "fail-over" : "restart-database"]
}

const once: ReadonlySet<FaultKind> = new Set(["fail-over"])
const hourMs = 3_600_000

/** Each kind at least `each` times, in an order and at moments of chance, over the first nine tenths of the payments. */
export const scheduleOf = (rng: Rng, kinds: ReadonlyArray<FaultKind>, rows: number, each: number): ReadonlyArray<Fault> => {
  const drawn = kinds.flatMap((kind) => Array.from({ length: once.has(kind) ? 1 : each }, (_, turn) => {
    const own = rng.branch(`${kind}/${turn}`)
    return {
      kind,
      at: own.between(Math.floor(rows / 50), Math.floor(rows * 0.9)),
      worker: own.pick([0, 1] as const),
      forMs: own.between(300, 2_500),
      byMs: own.pick([25 * hourMs, 2 * hourMs, 40_000, -5_000]),
      mode: turn % 2 === 0 ? "immediate" as const : "fast" as const
    }
  }))
  return drawn.toSorted((one, other) => one.at - other.at)
}

/** A line of the schedule, for whoever repeats it. */
export const describeFault = ({ at, byMs, forMs, kind, mode, worker }: Fault): string => {
  const how = kind.startsWith("freeze") ? `for ${forMs} ms` : kind === "restart-database" ? mode : kind === "move-clocks" ? `by ${byMs} ms` : ""
  return `at ${String(at).padStart(5)} payments: ${kind}${kind.endsWith("worker") ? ` ${worker}` : ""} ${how}`.trimEnd()
}
