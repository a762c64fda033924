/**
 * `pnpm bench`: all suites, in turns within each, and the pages that show them.
 *
 *     pnpm bench [--quick] [--suite NAME]… [--rounds N] [--size FACTOR] [--json] [--no-write] [--pages]
 *
 * `--help` says what each is. A missed goal is a result: the status tells only whether everything ran.
 */
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { suites } from "./suites.ts"
import { killChildren } from "./support/children.ts"
import { type DurableServer, withServer } from "./support/database.ts"
import { optionsOf } from "./support/options.ts"
import { writePage } from "./support/pages.ts"
import { plotOf } from "./support/plot.ts"
import { keepResults, load, machineOf, type Ran, readResults, type Results } from "./support/results.ts"
import { sizingTable } from "./support/sizing.ts"
import { type Bench, roundsOf, type Suite } from "./support/Suite.ts"
import { overview, printed, sectionOf } from "./support/tables.ts"

/** A quick run that is late begins no other suite: somebody waits for it. */
const quickMs = 900_000
const names = suites.map(({ name }) => name)
const usage = `pnpm bench [options]

measures all suites, and writes docs/benchmarks

  --quick         three rounds and smaller counts, in about a quarter of an hour; it begins no other suite after ${quickMs / 1000} s, unless suites are named
  --suite NAME    this suite, and others that are named so too
  --rounds N      of each suite (5; with --quick 3); growth makes fewer, and start more
  --size FACTOR   so many times every count (1), to see that a suite works; other than 1 it is never written
  --json          results to standard output as JSON, instead of tables
  --no-write      writes nothing
  --pages         measures nothing, and writes the pages anew from the results that are kept
  --help

suites: ${names.join(", ")}`

const { complain, values } = optionsOf({
  quick: { type: "boolean", default: false },
  suite: { type: "string", multiple: true, default: [] },
  rounds: { type: "string" },
  size: { type: "string", default: "1" },
  json: { type: "boolean", default: false },
  "no-write": { type: "boolean", default: false },
  pages: { type: "boolean", default: false }
}, usage)
const rounds = Number(values.rounds ?? (values.quick ? 3 : 5))
const size = Number(values.size)
const root = join(import.meta.dirname, "../..")
const docs = join(root, "docs")
const unknown = values.suite.filter((name) => !names.includes(name))
if (unknown.length > 0) complain(`no suite ${unknown.join(", ")}; there are ${names.join(", ")}`)
if (!(Number.isInteger(rounds) && rounds >= 1)) complain("--rounds is a whole number from 1 on")
if (!(Number.isFinite(size) && size > 0)) complain("--size is a number above 0")
// A signal ends the bench as its end does, with all its processes.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130))
/** A suite that stands still ends here, and the others are run. */
const boundMs = values.quick ? 80_000 * Math.max(rounds, 3) : 720_000 * Math.max(rounds, 5)
const lastBeginMs = values.quick && values.suite.length === 0 ? quickMs : Number.POSITIVE_INFINITY
const say = (text: string) => void process.stderr.write(`${text}\n`)

const writePages = (results: Results) => {
  const folder = join(docs, "benchmarks")
  mkdirSync(folder, { recursive: true })
  for (const [name, { found, title }] of Object.entries(results)) if (found !== undefined) writeFileSync(join(folder, `${name}.svg`), plotOf(title, found.figures))
  writePage(join(folder, "README.md"), {
    overview: overview(results, names),
    ...Object.fromEntries(names.map((name) => [name, results[name] === undefined ? "_Not run yet._" : sectionOf(name, results[name])]))
  })
  writePage(join(docs, "operations.md"), { sizing: sizingTable(results) })
}

const within = <A>(work: Promise<A>): Promise<A> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => timer = setTimeout(() => reject(new Error(`it was not over after ${boundMs / 1000} s`)), boundMs))
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

const node = (...args: ReadonlyArray<string>) => execFileSync(process.execPath, ["--disable-warning=ExperimentalWarning", ...args], { stdio: ["ignore", 2, 2] })

const runSuite = async (suite: Suite, server: DurableServer, command: () => Promise<string>): Promise<Ran> => {
  const folder = mkdtempSync(join(tmpdir(), "purser-bench-"))
  const bench: Bench = {
    quick: values.quick,
    rounds,
    server,
    command,
    bundled: async (entry) => {
      const target = join(folder, "bundled")
      node(join(root, "scripts/buildCommand.ts"), target, entry)
      return join(target, basename(entry).replace(/\.ts$/, ".js"))
    },
    folder,
    count: (full, quick) => Math.max(1, Math.ceil((values.quick ? quick : full) * size)),
    say: (text) => say(`  ${text}`)
  }
  say(`${suite.name}: ${suite.title}`)
  const about = { title: suite.title, startedAt: new Date().toISOString(), mode: values.quick ? "quick" as const : "full" as const, loadBefore: load(), machine: machineOf(server.version) }
  const beganMs = performance.now()
  const end = (rest: Pick<Ran, "found" | "failed">): Ran => ({ ...about, tookSeconds: Math.round((performance.now() - beganMs) / 100) / 10, ...rest, rounds: roundsOf(rest.found) ?? rounds })
  return within(suite.run(bench)).then(
    (found) => end({ found, failed: undefined }),
    (error: unknown) => end({ found: undefined, failed: error instanceof Error ? error.message : String(error) })
  ).finally(() => {
    killChildren()
    rmSync(folder, { recursive: true, force: true })
  })
}

const runAll = async (server: DurableServer, folder: string): Promise<Results> => {
  let built: string | undefined
  const command = async () => {
    const target = join(folder, "command")
    if (built === undefined) {
      // What an installed one has beside it: the archives of the embedded database.
      node(join(root, "packages/postgres/scripts/buildSeed.ts"))
      node(join(root, "scripts/buildCommand.ts"), target)
    }
    return built ??= join(target, "main.js")
  }
  const ran: Record<string, Ran> = {}
  for (const suite of suites) {
    if (values.suite.length > 0 && !values.suite.includes(suite.name)) continue
    if (performance.now() > lastBeginMs) {
      say(`${suite.name} is left out: ${Math.round(performance.now() / 1000)} s have passed`)
      continue
    }
    const one = ran[suite.name] = await runSuite(suite, server, command)
    if (!values.json) console.log(`${suite.name} (${one.tookSeconds} s)\n${printed(one)}`)
    // What was measured stays, whatever becomes of the rest.
    if (!values["no-write"] && size === 1) writePages(keepResults(join(docs, "benchmarks"), { [suite.name]: one }))
  }
  return ran
}

if (values.pages) writePages(readResults(join(docs, "benchmarks", "results.json")))
else {
  // In the workspace, since the bundle finds its packages from there.
  const folder = mkdtempSync(join(root, "node_modules/.purser-bench-"))
  const ran = await withServer((server) => runAll(server, folder)).finally(() => rmSync(folder, { recursive: true, force: true }))
  if (values.json) console.log(JSON.stringify(ran, null, 1))
  const failed = Object.entries(ran).filter(([, { found }]) => found === undefined).map(([name]) => name)
  if (failed.length > 0) say(`not measured: ${failed.join(", ")}`)
  process.exitCode = failed.length === 0 ? 0 : 1
}
