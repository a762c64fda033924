/** What a process holds when nothing is under way, and whether it holds more and more. Read from Linux's `/proc`, and from the process itself. */
import { Effect, Schedule } from "effect"
import { readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs"
import type { Post } from "./Stage.ts"

/** One look at one process. */
export interface Holding {
  readonly round: number
  readonly name: string
  /** Heap that is left when its garbage was collected. */
  readonly heapMb: number
  /** Buffers outside of the heap. */
  readonly externalMb: number
  readonly residentMb: number
  readonly descriptors: number
  readonly sockets: number
}

const mb = (bytes: number) => bytes / 2 ** 20
/** Long enough for what a run left open to be closed: keep-alive connections, lingering sockets. */
const restMs = 1500

/** Looks at the process of a post, once it has collected its garbage. */
export const hold = Effect.fnUntraced(function*(round: number, name: string, post: Post) {
  const { memoryFile } = post
  if (memoryFile === undefined) return yield* Effect.die(new Error(`Bug: ${name} is not watched`))
  yield* Effect.sleep(restMs)
  const pid = yield* post.pid
  rmSync(memoryFile, { force: true })
  yield* post.signal("SIGUSR2")
  const note = Effect.try(() => JSON.parse(readFileSync(memoryFile, "utf8")) as NodeJS.MemoryUsage)
  const memory = yield* Effect.orDie(Effect.retry(note, { schedule: Schedule.spaced("50 millis"), times: 400 }))
  const links = readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`)
    } catch {
      return ""
    }
  })
  const holding: Holding = {
    round,
    name,
    heapMb: mb(memory.heapUsed),
    externalMb: mb(memory.external),
    residentMb: mb(memory.rss),
    descriptors: links.length,
    sockets: links.filter((link) => link.startsWith("socket:")).length
  }
  return holding
})

/** What is measured, and how much more of it at the end than at the beginning is no growth: what differs from look to look. */
const measures = {
  heapMb: { part: 0.1, more: 6 },
  externalMb: { part: 0.2, more: 8 },
  residentMb: { part: 0.25, more: 40 },
  descriptors: { part: 0.1, more: 6 },
  sockets: { part: 0.1, more: 6 }
} as const satisfies Partial<Record<keyof Holding, { readonly part: number; readonly more: number }>>
type Measure = keyof typeof measures

const median = (numbers: ReadonlyArray<number>): number => numbers.toSorted((one, other) => one - other)[numbers.length >> 1] ?? 0

/** Looks that say nothing yet: a process that has just begun fills its caches. */
const warmUp = 0.2

const trend = (looks: ReadonlyArray<Holding>, measure: Measure) => {
  const warm = looks.slice(Math.ceil(looks.length * warmUp)).map((look) => look[measure])
  const part = Math.max(1, Math.floor(warm.length / 3))
  return { first: median(warm.slice(0, part)), last: median(warm.slice(-part)) }
}

const byName = (holdings: ReadonlyArray<Holding>) => Map.groupBy(holdings, ({ name }) => name)

/** What has grown from the first third of the warm looks to the last one. */
export const growth = (holdings: ReadonlyArray<Holding>): ReadonlyArray<string> =>
  [...byName(holdings)].flatMap(([name, looks]) =>
    looks.length < 6
      ? [`${name}: ${looks.length} looks say nothing about growth`]
      : (Object.keys(measures) as ReadonlyArray<Measure>).flatMap((measure) => {
        const { first, last } = trend(looks, measure)
        const { more, part } = measures[measure]
        return last > first * (1 + part) + more ? [`${name}: ${measure} grew from ${first.toFixed(1)} to ${last.toFixed(1)}`] : []
      }))

/** The looks as a table: for each process and measure the first look, the medians of the first and last third, and the most. */
export const table = (holdings: ReadonlyArray<Holding>): string => {
  const line = (cells: ReadonlyArray<string>) => cells.map((cell, at) => at < 2 ? cell.padEnd(14) : cell.padStart(12)).join("")
  return [
    line(["process", "holds", "looks", "first", "first third", "last third", "most"]),
    ...[...byName(holdings)].flatMap(([name, looks]) =>
      (Object.keys(measures) as ReadonlyArray<Measure>).map((measure) => {
        const { first, last } = trend(looks, measure)
        const all = looks.map((look) => look[measure])
        return line([name, measure, String(looks.length), ...[all[0]!, first, last, Math.max(...all)].map((number) => number.toFixed(1))])
      }))
  ].join("\n")
}
