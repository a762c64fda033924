/** What the results say about the size of a machine: the rows of the sizing table in the operations page. */
import type { Cost } from "./Suite.ts"
import type { Ran, Results } from "./results.ts"
import { figure, spread } from "./spread.ts"

const medianOf = (ran: Ran | undefined, program: string, field: keyof Cost): number | undefined => {
  const values = ran?.found?.figures.find((one) => one.program === program)?.cost?.map((one) => one[field]).filter((value) => value !== undefined && value !== null)
  return values === undefined || values.length === 0 ? undefined : spread(values).median
}

const valueOf = (ran: Ran | undefined, program: string | undefined, what: string): number | undefined => {
  const values = ran?.found?.figures.filter((one) => (program === undefined || one.program === program) && one.what === what).at(-1)?.values
  return values === undefined ? undefined : spread(values).median
}

const known = (value: number | undefined, show: (value: number) => string): string => value === undefined ? "not measured" : show(value)

/** The table. */
export const sizingTable = (results: Results): string => {
  const { charge, embedded, growth, proxy } = results
  const [worker, database] = [medianOf(charge, "purser", "cpuMicros"), medianOf(charge, "purser", "databaseCpuMicros")]
  const both = worker === undefined || database === undefined ? undefined : worker + database
  const largest = growth?.found?.figures.filter(({ what }) => what === "µs a row").at(-1)?.program
  const rows: ReadonlyArray<readonly [string, string, string]> = [
    ["processor time of a charge: the worker's", known(worker, (micros) => `${figure(micros)} µs`), "[one charge](benchmarks/README.md#one-charge-whole-way), with a processor that answers at once"],
    ["processor time of a charge: PostgreSQL's", known(database, (micros) => `${figure(micros)} µs`), "the same"],
    ["charges a second of a core of a worker", known(worker, (micros) => figure(1e6 / micros)), "a second ÷ the first line"],
    ["charges a second of a core that worker and PostgreSQL share", known(both, (micros) => figure(1e6 / micros)), "a second ÷ the first two lines"],
    ["memory of a worker at its peak", known(medianOf(charge, "purser", "peakRssMb"), (mb) => `${figure(mb)} MB`), "256 charges under way"],
    [`memory of a run of ${largest ?? "many rows"}`, known(largest === undefined ? undefined : medianOf(growth, largest, "peakRssMb"), (mb) => `${figure(mb)} MB`), "[growth](benchmarks/README.md#growth): planning, dispatch and worker in one process"],
    ["WAL of a charge", known(medianOf(charge, "purser", "walBytes"), (bytes) => `${figure(bytes / 1000)} kB`), "[one charge](benchmarks/README.md#one-charge-whole-way); what a replica or an archive receives"],
    ["disk of a million charges that a run billed", known(valueOf(growth, largest, "bytes of disk a row"), (bytes) => `${figure(bytes / 1000)} GB`), "[growth](benchmarks/README.md#growth): tables, trail and indexes, before autovacuum has come by"],
    ["charges a second, embedded", known(valueOf(embedded, "purser, embedded", "charges/s"), figure), "[embedded](benchmarks/README.md#the-embedded-database), with fsync"],
    ["calls a second through the spend-cap proxy", known(valueOf(proxy, "spend-cap proxy, postgres", "calls/s"), figure), "[proxy](benchmarks/README.md#the-spend-cap-proxy), 64 under way"]
  ]
  return [`| what | figure | from |`, `|---|---|---|`, ...rows.map((cells) => `| ${cells.join(" | ")} |`)].join("\n")
}
