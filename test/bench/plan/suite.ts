/** A billing file, read, checked and planned by the command, beside csv-parse and COPY alone. */
import { once } from "node:events"
import { createWriteStream } from "node:fs"
import { join } from "node:path"
import { finished } from "node:stream/promises"
import { beside, runNode } from "../support/children.ts"
import { ask } from "../support/database.ts"
import { inTurns, ratios, type Suite } from "../support/Suite.ts"

const writeFile = async (file: string, rows: number, run: string) => {
  const out = createWriteStream(file)
  out.write("customer_id,billing_period,amount,currency,stripe_customer_id,payment_method\n")
  for (let at = 0; at < rows; at += 1000) {
    const lines = Array.from({ length: Math.min(1000, rows - at) }, (_, index) => {
      const n = at + index
      return `cust_${run}_${n},2026-07,${(10 + n % 90).toFixed(2)},USD,cus_${run}_${n},pm_card_visa`
    })
    if (!out.write(`${lines.join("\n")}\n`)) await once(out, "drain")
  }
  out.end()
  await finished(out)
}

export const plan: Suite = {
  name: "plan",
  title: "A run from a file: reading and planning",
  run: async (bench) => {
    const rows = bench.count(200_000, 60_000)
    const command = await bench.command()
    const databaseUrl = await bench.server.newDatabase()
    const env = { PURSER_DATABASE_URL: databaseUrl, PURSER_STRIPE_KEY: "sk_test_bench", NODE_COMPILE_CACHE: join(bench.folder, "compiled") }
    // Migrates, and compiles.
    await runNode([command, "cap", "show", "--json"], env, bench.folder)
    const found = await inTurns(["copy", "purser"], bench.rounds, async (name, round) => {
      const file = join(bench.folder, `${name}${round}.csv`)
      await writeFile(file, rows, `${name}${round}`)
      const counted = await bench.server.counting()
      const { cpuMs, peakRssMb, tookMs } = name === "copy"
        ? await runNode([beside(import.meta.url, "copy.ts"), file, databaseUrl], {}, bench.folder)
        : await runNode([command, "run", file, "--detach", "--yes", "--json", "--expected-total", "usd=1000000000.00"], env, bench.folder)
      bench.say(`${name} ${(rows * 1000 / tookMs).toFixed(0)} rows/s`)
      return { perSecond: rows * 1000 / tookMs, cost: { ...await counted(rows), cpuMicros: cpuMs * 1000 / rows, peakRssMb } }
    })
    const [{ planned }] = await ask<{ planned: string }>(databaseUrl, "select count(*) as planned from purser.charges where state = 'planned'") as [{ planned: string }]
    if (Number(planned) !== rows * bench.rounds) throw new Error(`${planned} rows were planned, not ${rows * bench.rounds}`)
    const of = (name: keyof typeof found) => found[name].map(({ perSecond }) => perSecond)
    return {
      setting: `${rows} rows a round; each a process from its start to its end; purser reads, checks every field, looks for duplicates, opens the cap, and makes each row an obligation (purser run --detach)`,
      figures: [
        { program: "csv-parse and COPY", what: "rows/s", values: of("copy"), cost: found.copy.map(({ cost }) => cost) },
        { program: "purser run --detach", what: "rows/s", values: of("purser"), cost: found.purser.map(({ cost }) => cost) }
      ],
      goals: [{ what: "plan ÷ csv-parse and COPY", wanted: { atLeast: 0.5 }, values: ratios(of("purser"), of("copy")) }]
    }
  }
}
