/**
 * Loaded before a side, takes telemetry out of the code that the side is made of: no look whether somebody traces, no counter, no series.
 * What is left is what a program would be without a word of telemetry, and what "off" is measured against.
 */
import { readFileSync } from "node:fs"
import { registerHooks } from "node:module"
import { fileURLToPath } from "node:url"

const replaced = (text: string, from: RegExp, to: string): string => {
  if (!from.test(text)) throw new Error(`nothing of ${from} is there any more`)
  return text.replace(from, to)
}

const tracing = `
import { Effect } from "effect"
export const Tracing = {
  isOn: Effect.succeed(false),
  spanOf: () => undefined,
  tracedIn: (_, __, effect) => effect,
  traced: (_, effect) => effect,
  apart: (_, effect) => effect,
  sending: (_, send) => send(undefined),
  serving: (_, __, effect) => effect,
  ofCharge: () => undefined,
  annotate: () => Effect.void,
  isTraceparent: (value) => typeof value === "string" && value.length === 55
}`

/** Modules by the end of their address, and what becomes of their text. */
const changes: ReadonlyArray<readonly [end: string, change: (text: string) => string]> = [
  ["/packages/core/src/Tracing.ts", () => tracing],
  ["/packages/core/src/MetricSeries.ts", (text) => replaced(text, /return \{ of, known: [^\n]+\}\n/, "const silent = { updateUnsafe: () => undefined, valueUnsafe: () => undefined } as M\n  return { of: () => silent, known: [] }\n")],
  ["/effect/dist/Metric.js", (text) =>
    `${replaced(text, /export const update = /, "const updateForReal = ")}\nexport const update = (...given) => given.length === 2 ? InternalEffect.void : () => InternalEffect.void\n`]
]

const met = new Set<string>()
registerHooks({
  load: (url, context, next) => {
    const [end, change] = changes.find(([end]) => url.endsWith(end)) ?? []
    if (end === undefined || change === undefined) return next(url, context)
    met.add(end)
    return { format: url.endsWith(".ts") ? "module-typescript" : "module", source: change(readFileSync(fileURLToPath(url), "utf8")), shortCircuit: true }
  }
})

process.on("exit", () => {
  if (met.size === changes.length) return
  console.error(`only ${[...met].join(", ")} was taken out`)
  process.exitCode = 1
})
