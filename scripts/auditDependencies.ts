/**
 * Known holes in what is installed with a package, by the registry's own list: `auditDependencies.ts [LEVEL] [FILE]`; FILE is a report of
 * `pnpm audit --prod --json` that was kept. Ends with 0 when there is none of the level or worse, with 1 when there is one, and with 2 when the
 * registry could not be asked: no answer is not a clean one.
 */
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"

/** From the least on. */
const levels = ["low", "moderate", "high", "critical"]
const [level = "moderate", file] = process.argv.slice(2)

const unknown = (why: string, more = ""): never => {
  console.error(`nothing is known about holes in the dependencies: ${why}\n${more.trim().slice(0, 1000)}`)
  process.exit(2)
}
const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === "object" && value !== null && !Array.isArray(value)
/** A severity that is not known counts as the worst. */
const atLeast = (severity: unknown) => severity !== "info" && (levels.includes(String(severity)) ? levels.indexOf(String(severity)) >= levels.indexOf(level) : true)

const ask = () => {
  // Asked once: without a registry, pnpm's own repeats take more than a minute.
  const { stderr, stdout } = spawnSync("pnpm", ["audit", "--prod", "--json", "--config.fetch-retries=0", "--config.fetch-timeout=20000"], { encoding: "utf8", shell: process.platform === "win32", maxBuffer: 64 * 1024 * 1024 })
  return { output: stdout ?? "", more: `${stdout ?? ""}${stderr ?? ""}` }
}
const reportOf = (output: string, more: string): unknown => {
  try {
    return JSON.parse(output)
  } catch {
    return unknown("the registry could not be asked", more)
  }
}

if (!levels.includes(level)) unknown(`no level is called ${level}; there are ${levels.join(", ")}`)
const { more, output } = file === undefined ? ask() : { output: readFileSync(file, "utf8"), more: "" }
const report = reportOf(output, more)
const advisories = isRecord(report) ? report["advisories"] : undefined
const metadata = isRecord(report) ? report["metadata"] : undefined
const counts = isRecord(metadata) ? metadata["vulnerabilities"] : undefined
if (!isRecord(advisories) || !isRecord(counts)) {
  unknown("the registry answered with something that is no report of an audit", more || output)
} else {
  const found = Object.values(advisories).filter(isRecord).filter(({ severity }) => atLeast(severity))
  const isCounted = Object.entries(counts).some(([severity, count]) => atLeast(severity) && Number(count) > 0)
  // The list and its own sum must agree, else a part of the answer was not understood.
  if (isCounted && found.length === 0) unknown("the report counts findings that it does not list", output)
  for (const { module_name, severity, title, url } of found) console.error(`${String(severity)}: ${String(module_name)}: ${String(title)} (${String(url)})`)
  console.log(found.length === 0 ? `no known hole of level ${level} or worse` : `${found.length} of level ${level} or worse`)
  process.exit(found.length === 0 ? 0 : 1)
}
