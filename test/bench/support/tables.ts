/** Results as text: for a terminal, and as the tables of a page. Both are made of what was kept, so that they say the same. */
import { type Cost, type Figure, type Goal, isMet, roundsOf } from "./Suite.ts"
import type { Results, Ran } from "./results.ts"
import { costFigure, shown, spread } from "./spread.ts"

const sign = (goal: Goal): string => "atLeast" in goal.wanted ? `≥ ${goal.wanted.atLeast}` : `≤ ${goal.wanted.atMost}`

const verdict = (goal: Goal): string => {
  const met = isMet(goal)
  return met === undefined ? `not measured: ${goal.detail ?? ""}` : met ? "met" : "**missed**"
}

const costs: ReadonlyArray<readonly [field: keyof Cost, title: string]> = [
  ["cpuMicros", "CPU µs"], ["databaseCpuMicros", "database CPU µs"], ["peakRssMb", "peak RSS MB"], ["transactions", "transactions that wrote"],
  ["statements", "statements"], ["fsyncs", "fsyncs"], ["walBytes", "WAL bytes"]
]

const costOf = ({ cost }: Figure, field: keyof Cost): string => {
  const known = (cost ?? []).map((one) => one[field]).filter((value) => value !== undefined && value !== null)
  return known.length === 0 ? "" : costFigure(spread(known).median)
}

const row = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |`
const table = (titles: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string => [row(titles), row(titles.map(() => "---")), ...rows.map(row)].join("\n")

/** Goals of one suite. */
export const goalsTable = ({ found }: Ran): string =>
  found === undefined || found.goals.length === 0 ? "" : table(
    ["goal", "wanted", "measured, median (least–greatest)", ""],
    found.goals.map((goal) => [goal.what, sign(goal), goal.values.length === 0 ? "–" : shown(spread(goal.values)), `${verdict(goal)}${goal.detail === undefined || goal.values.length === 0 ? "" : `; ${goal.detail}`}`])
  )

/** Figures of one suite, with what a job cost. */
export const figuresTable = ({ found }: Ran): string => {
  const figures = found?.figures ?? []
  const known = costs.filter(([field]) => figures.some((one) => costOf(one, field) !== ""))
  return table(
    ["", "", "median (least–greatest)", ...known.map(([, title]) => title)],
    figures.map((one) => [one.program, one.what, shown(spread(one.values)), ...known.map(([field]) => costOf(one, field))])
  )
}

/** When and where a suite ran, in a sentence. */
export const circumstances = ({ found, loadBefore, machine, mode, rounds: asked, startedAt, tookSeconds }: Ran): string => {
  const rounds = roundsOf(found) ?? asked
  return `${startedAt.slice(0, 16).replace("T", " ")} UTC, revision ${machine.revision}, ${mode} mode, ${rounds} ${rounds === 1 ? "round" : "rounds"} in ${Math.round(tookSeconds)} s, load ${loadBefore} before; ` +
    `${machine.cores} cores (${machine.cpu}), ${Math.round(machine.memoryMb / 1024)} GB, ${machine.system}, Node ${machine.node}, PostgreSQL ${machine.postgres}`
}

/** One suite as a part of a page. */
export const sectionOf = (name: string, ran: Ran): string =>
  ran.found === undefined
    ? `_Not measured: ${ran.failed ?? "it did not end"}._`
    : [
      `${ran.found.setting[0]!.toUpperCase()}${ran.found.setting.slice(1)}.`,
      goalsTable(ran),
      figuresTable(ran),
      `![${ran.title}](${name}.svg)`,
      `_${circumstances(ran)}._`
    ].filter((part) => part !== "").join("\n\n")

/** The place of a suite's heading on the page. */
export const slugOf = (title: string): string => title.toLowerCase().replaceAll(/[^\w\s-]/g, "").replaceAll(" ", "-")

/** All goals of all suites. */
export const overview = (results: Results, order: ReadonlyArray<string>): string => {
  const rows = order.flatMap((name) => {
    const ran = results[name]
    if (ran === undefined) return [[name, "", "", "", "not run yet"]]
    if (ran.found === undefined) return [[`[${ran.title}](#${slugOf(ran.title)})`, "", "", "", `not measured: ${ran.failed ?? ""}`]]
    return ran.found.goals.map((goal) => [`[${ran.title}](#${slugOf(ran.title)})`, goal.what, sign(goal), goal.values.length === 0 ? "–" : shown(spread(goal.values)), verdict(goal)])
  })
  return table(["suite", "goal", "wanted", "measured", ""], rows)
}

/** A suite for a terminal. */
export const printed = (ran: Ran): string => {
  if (ran.found === undefined) return `  not measured: ${ran.failed ?? "it did not end"}\n`
  const figures = ran.found.figures.map((one) => {
    const cost = costs.map(([field, title]) => [costOf(one, field), title]).filter(([value]) => value !== "").map(([value, title]) => `${value} ${title}`).join(", ")
    return `  ${one.program.padEnd(40)} ${shown(spread(one.values)).padStart(26)} ${one.what}${cost === "" ? "" : `   ${cost} a job`}`
  })
  const goals = ran.found.goals.map((goal) => `  ${(isMet(goal) ?? false) ? "✓" : "✗"} ${goal.what}: ${goal.values.length === 0 ? "–" : shown(spread(goal.values))}, wanted ${sign(goal)}: ${verdict(goal).replaceAll("*", "")}${goal.detail === undefined ? "" : ` (${goal.detail})`}`)
  return [`  ${ran.found.setting}`, ...figures, ...goals, ""].join("\n")
}
