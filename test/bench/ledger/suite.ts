/** What the ledger itself brings: claims and settlements, beside a row at a time and rows in ready-made batches. */
import { Database, Migrations } from "@purser/postgres"
import { Effect, Layer, Redacted } from "effect"
import { existsSync, globSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beside, openSide, runProgram } from "../support/children.ts"
import type { Worked } from "../support/side.ts"
import { type Bench, type Cost, inTurns, ratios, type Suite } from "../support/Suite.ts"

/** The row that a claim writes, and nothing else. */
const singleRow = `insert into purser.charges (charge_key, namespace, customer_id, billing_period, amount_minor, currency, stripe_customer_id, payment_method, state,
 lease_worker, lease_epoch, lease_until, first_claimed_at, planned_at, updated_at) values (md5(nextval('bench')::text), 'zmq-billing', 'cust_1', '2026-07', 1000, 'usd', 'cus_1',
 'pm_card_visa', 'claimed', 'bench', 1, now() + interval '15 seconds', now(), now(), now());
`.replaceAll("\n ", " ")

const pgbench = (): string | undefined =>
  ["/usr/bin/pgbench", "/usr/local/bin/pgbench", "/opt/homebrew/bin/pgbench", ...globSync("/usr/lib/postgresql/*/bin/pgbench"), ...(process.env["PATH"] ?? "").split(":").map((folder) => join(folder, "pgbench"))].find((file) => existsSync(file))

interface Rows {
  readonly perSecond: number
  readonly cost: Cost
}

const rowsOfPgbench = async (bench: Bench, program: string, databaseUrl: string, clients: number): Promise<Rows> => {
  const script = join(bench.folder, "single.sql")
  writeFileSync(script, singleRow)
  const counted = await bench.server.counting()
  const { cpuMs, peakRssMb, said } = await runProgram(program, ["-n", "-M", "prepared", "-c", String(clients), "-j", "2", "-T", String(bench.count(8, 3)), "-f", script, databaseUrl])
  const rows = Number(/transactions actually processed: (\d+)/.exec(said)![1])
  return { perSecond: Number(/tps = ([\d.]+)/.exec(said)![1]), cost: { ...await counted(rows), cpuMicros: cpuMs * 1000 / rows, peakRssMb } }
}

interface Steps {
  readonly claim: number
  readonly settle: number
  readonly costs: { readonly claim: Cost; readonly settle: Cost }
}

export const ledger: Suite = {
  name: "ledger",
  title: "The ledger alone",
  run: async (bench) => {
    const count = bench.count(40_000, 20_000)
    const databaseUrl = await bench.server.newDatabase()
    await Effect.runPromise(Effect.scoped(Layer.build(Migrations.layer.pipe(Layer.provide(Database.layerUrl(Redacted.make(databaseUrl)))))))
    const { Client } = (await import("pg")).default
    const client = new Client({ connectionString: databaseUrl })
    await client.connect()
    await client.query("create sequence bench cache 1000")
    await client.end()
    const program = pgbench()
    if (program === undefined) bench.say("there is no pgbench on this machine: left out")
    const steps = async (name: string, round: number): Promise<Steps> => {
      const side = openSide(beside(import.meta.url, "side.ts"), [name, String(count), `r${round}${name.slice(0, 2)}`, databaseUrl])
      const step = async () => {
        await side.heard()
        const counted = await bench.server.counting()
        side.send("go")
        const { cpuMicros, peakRssMb, tookMs } = await side.heard<Worked>()
        return { perSecond: count * 1000 / tookMs, cost: { ...await counted(count), cpuMicros, peakRssMb } }
      }
      const [claimed, settled] = [await step(), await step()]
      await side.end()
      bench.say(`${name} ${claimed.perSecond.toFixed(0)} claims/s, ${settled.perSecond.toFixed(0)} settled/s`)
      return { claim: claimed.perSecond, settle: settled.perSecond, costs: { claim: claimed.cost, settle: settled.cost } }
    }
    const single: Array<{ readonly few: Rows; readonly many: Rows }> = []
    const found = await inTurns(["purser", "pre-built", ...program === undefined ? [] : ["pgbench" as const]], bench.rounds, async (name, round) => {
      if (name !== "pgbench") return steps(name, round)
      single.push({ few: await rowsOfPgbench(bench, program!, databaseUrl, 16), many: await rowsOfPgbench(bench, program!, databaseUrl, 64) })
      bench.say(`pgbench ${single.at(-1)!.few.perSecond.toFixed(0)}/s and ${single.at(-1)!.many.perSecond.toFixed(0)}/s`)
      return undefined
    })
    const of = (name: "purser" | "pre-built", step: "claim" | "settle") => found[name].map((one) => one![step])
    const figureOf = (name: "purser" | "pre-built", step: "claim" | "settle") => ({
      program: `${name}, ${step}`, what: "rows/s", values: of(name, step), cost: found[name].map((one) => one!.costs[step])
    })
    const figureOfPgbench = (program: string, rows: ReadonlyArray<Rows>) => ({ program, what: "rows/s", values: rows.map(({ perSecond }) => perSecond), cost: rows.map(({ cost }) => cost) })
    const best = single.map(({ few, many }) => Math.max(few.perSecond, many.perSecond))
    const overPgbench = (step: "claim" | "settle") => ({
      what: `${step}: purser ÷ pgbench, the better of 16 and 64 clients`,
      wanted: { atLeast: 3 },
      values: program === undefined ? [] : ratios(of("purser", step), best),
      ...(program === undefined ? { detail: "no pgbench on this machine" } : {})
    })
    return {
      setting: `${count} rows a round; purser by 1,024 callers of one ledger, a row and its line of trail, and between the two steps that are measured an object is attached; pre-built the same in batches of 256 on one connection; pgbench -M prepared inserts the row alone`,
      figures: [
        figureOf("purser", "claim"), figureOf("pre-built", "claim"), figureOf("purser", "settle"), figureOf("pre-built", "settle"),
        ...program === undefined ? [] : [
          figureOfPgbench("pgbench, 16 clients, insert", single.map(({ few }) => few)),
          figureOfPgbench("pgbench, 64 clients, insert", single.map(({ many }) => many))
        ]
      ],
      goals: [
        overPgbench("claim"), overPgbench("settle"),
        { what: "claim: purser ÷ pre-built", wanted: { atLeast: 0.6 }, values: ratios(of("purser", "claim"), of("pre-built", "claim")) },
        { what: "settle: purser ÷ pre-built", wanted: { atLeast: 0.6 }, values: ratios(of("purser", "settle"), of("pre-built", "settle")) }
      ]
    }
  }
}
