/** An operator's desk: a folder for billing files, a fresh store, and the command over both and the test's simulator. */
import { StripeSim } from "@purser/stripe-sim"
import { Effect, type Scope } from "effect"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { purser, start } from "./Purser.ts"
import { stores, temporaryFolder } from "./Store.ts"

/** The header of the billing files of tests. */
export const header = "customer_id,billing_period,amount,currency,stripe_customer_id,payment_method,item"

/** A billing file of these lines under the usual header. */
export const csv = (...lines: ReadonlyArray<string>) => [header, ...lines].join("\n")

/** The bytes of a case's file. */
export const caseFile = (name: string): Uint8Array => readFileSync(new URL(`../test/fixtures/${name}`, import.meta.url))

/** Rows of one period in usd, 10.00 each unless told, each of a customer of its own. */
export const tens = (count: number, amount = "10.00") =>
  Array.from({ length: count }, (_, i) => `c${i},2026-07,${amount},USD,cus_${i},pm_${i},base`)

/** Reads what RFC 4180 calls a file; throws at anything else. */
export const parseCsv = (text: string): ReadonlyArray<Readonly<Record<string, string>>> => {
  const cell = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/y
  const rows: Array<Array<string>> = [[]]
  while (cell.lastIndex < text.length) {
    const match = cell.exec(text)
    if (match === null) throw new Error(`no CSV at ${JSON.stringify(text.slice(0, 80))}`)
    rows.at(-1)!.push(match[1]?.replaceAll("\"\"", "\"") ?? match[2]!)
    if (match[3] !== ",") rows.push([])
  }
  const [names, ...lines] = rows.filter((row) => row.length > 0)
  return lines.map((row) => {
    if (row.length !== names!.length) throw new Error(`${row.length} cells where the header has ${names!.length}`)
    return Object.fromEntries(names!.map((name, at) => [name, row[at]!]))
  })
}

const postgres = stores.find(([name]) => name === "postgres")![1]

/** A desk on a store of its own; the quicker one to open unless told. */
export const desk = Effect.fnUntraced(function*(store: Effect.Effect<Record<string, string>, unknown, Scope.Scope> = postgres) {
  const sim = yield* StripeSim
  const folder = yield* temporaryFolder
  const env: Readonly<Record<string, string>> = { ...yield* store, PURSER_STRIPE_URL: sim.url }
  const pathOf = (name: string) => join(folder, name)
  return {
    sim,
    env,
    folder,
    pathOf,
    /** Writes a file and answers its path. */
    write: (name: string, text: string | Uint8Array) => {
      writeFileSync(pathOf(name), text)
      return pathOf(name)
    },
    /** The rows of a report file. */
    report: (name: string) => parseCsv(readFileSync(pathOf(name), "utf8")),
    purser: (args: ReadonlyArray<string>, more: Readonly<Record<string, string>> = {}, stdin?: string) => purser(args, { ...env, ...more }, folder, stdin),
    start: (args: ReadonlyArray<string>, more: Readonly<Record<string, string>> = {}) => start(args, { ...env, ...more }, folder),
    /** How many requests have reached the simulator. */
    calls: Effect.map(sim.requests, (requests) => requests.length),
    /** The identities that were paid, by the simulator's books. */
    paid: Effect.map(sim.books, (books) => books.filter(({ payments }) => payments > 0))
  }
})

/** The desk's type. */
export type Desk = Effect.Success<ReturnType<typeof desk>>

/** Waits until the simulator's books have this many payments. */
export const paidAtLeast = (sim: StripeSim["Service"], payments: number): Effect.Effect<void> =>
  Effect.flatMap(sim.books, (books) =>
    books.reduce((sum, entry) => sum + entry.payments, 0) >= payments ? Effect.void : Effect.andThen(Effect.sleep(5), paidAtLeast(sim, payments)))

/** Runs a test at a fresh desk with a simulator of its own. */
export const atDesk = <E>(test: (desk: Desk) => Effect.Effect<void, E, Scope.Scope>) =>
  Effect.scoped(Effect.flatMap(desk(), test)).pipe(Effect.provide(StripeSim.layer()))

/** Two processes at a time: a machine for tests has few cores. */
export const inPairs = <A, E, R>(effects: ReadonlyArray<Effect.Effect<A, E, R>>) => Effect.all(effects, { concurrency: 2 })
