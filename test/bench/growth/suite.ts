/** The same run at ten and a hundred times the rows: what a row takes, what the engine holds, and whether statements begin to read more than their rows. */
import { withChargeServer } from "../charge/compare.ts"
import { beside, openSide } from "../support/children.ts"
import { ask } from "../support/database.ts"
import { inTurns, ratios, type Suite } from "../support/Suite.ts"
import { figure } from "../support/spread.ts"
import type { Grown } from "./side.ts"

/** What `side.ts` bills first. */
const warmRows = 5000

/** Rows that statements read by going through a whole table of charges, their trail or their reservations. */
const scanned = async (databaseUrl: string) => {
  const rows = await ask<{ read: string }>(
    databaseUrl,
    "select coalesce(sum(seq_tup_read), 0) as read from pg_stat_user_tables where schemaname = 'purser' and relname in ('charges', 'charge_event_pages', 'cap_reservations')"
  )
  return Number(rows[0]!.read)
}

export const growth: Suite = {
  name: "growth",
  title: "Growth",
  run: async (bench) => {
    const sizes = bench.quick ? ["5000", "50000"] : ["10000", "100000", "1000000"]
    const scaled = sizes.map((size) => String(bench.count(Number(size), Number(size))))
    // As it is installed: a process that reads the sources holds a hundred megabytes of them and of what turns them into JavaScript.
    const program = await bench.bundled(beside(import.meta.url, "side.ts"))
    // A million rows take minutes: the large runs are made once, whatever the rounds.
    const rounds = bench.quick ? Math.min(bench.rounds, 2) : 1
    const found = await withChargeServer(0, (postUrl) =>
      inTurns(scaled, rounds, async (size, round) => {
        const databaseUrl = await bench.server.newDatabase()
        const side = openSide(program, [size, `r${round}`, databaseUrl, postUrl])
        await side.heard()
        const before = await scanned(databaseUrl)
        const counted = await bench.server.counting()
        side.send("go")
        const grown = await side.heard<Grown>()
        await side.end()
        const cost = await counted(Number(size))
        const totalMs = grown.planMs + grown.dispatchMs + grown.reportMs
        bench.say(`${size} rows: ${(totalMs * 1000 / Number(size)).toFixed(0)} µs a row, ${grown.peakRssMb.toFixed(0)} MB`)
        const [{ bytes }] = await ask<{ bytes: string }>(databaseUrl, "select sum(pg_total_relation_size(c.oid)) as bytes from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'purser' and c.relkind = 'r'") as [{ bytes: string }]
        return { ...grown, cost, microsPerRow: totalMs * 1000 / Number(size), scans: (await scanned(databaseUrl) - before) / (Number(size) + warmRows), diskPerRow: Number(bytes) / (Number(size) + warmRows) }
      }))
    const [least, most] = [scaled[0]!, scaled[scaled.length - 1]!]
    const of = (size: string, read: (one: (typeof found)[string][number]) => number) => found[size]!.map(read)
    const large = found[most]!
    return {
      setting: `${scaled.map((size) => figure(Number(size))).join(", ")} rows, each size in a process of its own, bundled as the command is, and a database of its own after ${figure(warmRows)} rows for the compiler; plan, dispatch through the in-process transport with one POST a charge, and report`,
      figures: scaled.flatMap((size) => {
        const program = `${figure(Number(size))} rows`
        return [
          { program, what: "µs a row", values: of(size, (one) => one.microsPerRow), cost: found[size]!.map((one) => ({ ...one.cost, cpuMicros: one.cpuMicros, peakRssMb: one.peakRssMb })) },
          { program, what: "µs a row: plan", values: of(size, (one) => one.planMs * 1000 / Number(size)) },
          { program, what: "µs a row: dispatch and settle", values: of(size, (one) => one.dispatchMs * 1000 / Number(size)) },
          { program, what: "µs a row: report", values: of(size, (one) => one.reportMs * 1000 / Number(size)) },
          { program, what: "bytes of disk a row", values: of(size, (one) => one.diskPerRow) }
        ]
      }),
      goals: [
        { what: `time of a row: ${figure(Number(most))} rows ÷ ${figure(Number(least))} rows`, wanted: { atMost: 1.15 }, values: ratios(of(most, (one) => one.microsPerRow), of(least, (one) => one.microsPerRow)) },
        {
          what: `engine's memory at ${figure(Number(most))} rows, MB`, wanted: { atMost: 300 }, values: of(most, (one) => one.peakRssMb),
          detail: `at the end of each quarter of the dispatch: ${large.map(({ quartersMb }) => quartersMb.map((mb) => mb.toFixed(0)).join(", ")).join("; ")} MB`
        },
        {
          what: `scans of whole tables in a run, rows read so ÷ rows there: ${figure(Number(most))} rows less ${figure(Number(least))} rows`, wanted: { atMost: 2 },
          values: of(most, (one) => one.scans).map((scans, round) => scans - found[least]![round]!.scans),
          detail: "a statement whose plan had turned into a scan would make one a batch"
        }
      ]
    }
  }
}
