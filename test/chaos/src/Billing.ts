/** A billing file and the run that charges it: the command is given again whenever it has ended, until its account is closed. */
import type { BillingPeriod } from "@purser/core"
import { csv } from "@purser/test-e2e/src/Desk.ts"
import { type Ended, type Running, start } from "@purser/test-e2e/src/Purser.ts"
import { temporaryFolder } from "@purser/test-e2e/src/Store.ts"
import { Effect, Ref } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Bill, RunAccount } from "./Judge.ts"
import type { Stage } from "./Stage.ts"

/** Starts without an end until it is given up. */
const startsMax = 30
const dayMs = 86_400_000

/** A period of its own for each round: days long past. */
export const periodOf = (round: number): BillingPeriod => new Date(Date.UTC(2020, 0, 1) + round * dayMs).toISOString().slice(0, 10) as BillingPeriod

/** Bills of rising amounts, of which one in a hundred is refused by its card. */
export const billsOf = (rows: number): ReadonlyArray<Bill> =>
  Array.from({ length: rows }, (_, index) => ({ customer: `c${index}`, amountMinor: 1000 + index, declined: index % 97 === 13 }))

const lineOf = (period: string, { amountMinor, customer, declined }: Bill) =>
  `${customer},${period},${(amountMinor / 100).toFixed(2)},USD,cus_${customer},${declined ? "pm_card_visa_chargeDeclined" : `pm_${customer}`},`

const isOver = ({ code, json }: Ended) => (code === 0 || code === 2) && json?.["unresolved"] === 0

const accountOf = ({ json = {} }: Ended): RunAccount => ({
  succeeded: Number(json["succeeded"]),
  declined: Number(json["declined"]),
  paidMinor: (json["paidMinor"] as { readonly usd?: number } | undefined)?.usd ?? 0
})

/** The run of these bills over a stage, so many of them at once. */
export const bill = Effect.fnUntraced(function*({ bills, concurrency, env, period, stage }: {
  readonly bills: ReadonlyArray<Bill>
  readonly concurrency: number
  readonly period: BillingPeriod
  readonly stage: Stage
  readonly env: Readonly<Record<string, string>>
}) {
  const folder = yield* temporaryFolder
  const file = join(folder, "bills.csv")
  writeFileSync(file, csv(...bills.map((one) => lineOf(period, one))))
  // A period long past is charged only where somebody says yes to it.
  const args = ["run", file, "--json", "--yes", "--concurrency", String(concurrency), ...stage.runArgs]
  const current = yield* Ref.make<Running | undefined>(undefined)
  const starts = yield* Ref.make(0)
  const complaints: Array<string> = []
  const once = Effect.scoped(Effect.gen(function*() {
    const running = yield* start(args, { ...env, ...stage.runEnv }, folder)
    yield* Ref.set(current, running)
    yield* Ref.update(starts, (count) => count + 1)
    return yield* running.ended
  }))
  const whole = Effect.gen(function*() {
    for (let attempt = 1; attempt <= startsMax; attempt++) {
      const ended = yield* once
      complaints.push(...new Set(ended.stderr.match(/.*(?:No space left|ENOSPC).*/g) ?? []))
      if (isOver(ended)) return accountOf(ended)
      if (ended.signal !== "SIGKILL") complaints.push(`${ended.code ?? ended.signal}: ${ended.stderr.slice(-400)}`)
      yield* Effect.sleep(200)
    }
    return yield* Effect.die(new Error(`the run did not end in ${startsMax} starts: ${complaints.at(-1)}`))
  })
  return {
    /** Starts the command until its account is closed. */
    whole,
    signal: (name: NodeJS.Signals) => Effect.flatMap(Ref.get(current), (running) => running?.kill(name) ?? Effect.void),
    starts: Ref.get(starts),
    complaints
  }
})

/** A run of the command. */
export type Producer = Effect.Success<ReturnType<typeof bill>>
