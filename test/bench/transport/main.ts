/**
 * How many requests a second each pattern carries, beside raw zeromq.js that moves the same JSON, one message in a frame,
 * with the same window: `pnpm bench:transport [--rounds 5] [--count 100000] [--pattern NAME] [--program NAME] [--json FILE]`.
 *
 * The two sides are two processes over tcp. The programs take turns in every round, so that a busy moment of the machine
 * meets all of them: read the ratios, which are of one round each, and not the numbers.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { cpus } from "node:os"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { type Pattern, patterns, type Program, programs, window } from "./messages.ts"

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    count: { type: "string", default: "100000" },
    pattern: { type: "string", multiple: true, default: [...patterns] },
    program: { type: "string", multiple: true, default: [...programs] },
    json: { type: "string" }
  }
})
const rounds = Number(values.rounds)
const count = Number(values.count)
const side = fileURLToPath(new URL("side.ts", import.meta.url))

const freePort = () =>
  new Promise<number>((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0))
    })
  })

interface Measured {
  readonly perSecond: number
  /** Processor time of both sides for one request, all threads. */
  readonly cpuMicros: number
}

const printedBy = (child: ChildProcess) =>
  new Promise<string>((resolve) => {
    let printed = ""
    child.stdout?.on("data", (chunk) => printed += chunk)
    child.on("close", () => resolve(printed))
  })

const measure = async (pattern: Pattern, program: Program): Promise<Measured> => {
  const [endpoint, back] = [`tcp://127.0.0.1:${await freePort()}`, `tcp://127.0.0.1:${await freePort()}`]
  const start = (name: string) =>
    spawn(process.execPath, [side, name, pattern, program, endpoint, back, String(pattern === "req-rep" ? Math.ceil(count / 5) : count)], { stdio: ["ignore", "pipe", "inherit"] })
  const server = start("server")
  const client = start("client")
  const [serverSays, clientSays] = [printedBy(server), printedBy(client)]
  const { cpuMicros, perSecond } = JSON.parse(await clientSays)
  server.kill("SIGINT")
  return { perSecond, cpuMicros: cpuMicros + JSON.parse(await serverSays).cpuMicros }
}

const spread = (numbers: ReadonlyArray<number>) => {
  const sorted = [...numbers].sort((a, b) => a - b)
  return { median: sorted[Math.floor(sorted.length / 2)]!, min: sorted[0]!, max: sorted[sorted.length - 1]! }
}
const shown = ({ max, median, min }: ReturnType<typeof spread>, digits: number) => `${median.toFixed(digits)} (${min.toFixed(digits)} to ${max.toFixed(digits)})`

const results = []
for (const pattern of patterns.filter((name) => values.pattern.includes(name))) {
  const rates = new Map<Program, Array<Measured>>(programs.map((program) => [program, []]))
  // A batch needs a window: a REQ socket has one frame on its way.
  const measurable = programs.filter((program) => (program === "raw" || values.program.includes(program)) && (pattern !== "req-rep" || program !== "batch"))
  for (let round = 0; round < rounds; round++) {
    for (const program of measurable) rates.get(program)!.push(await measure(pattern, program))
  }
  const raw = rates.get("raw")!
  for (const program of measurable) {
    const mine = rates.get(program)!
    const perSecond = spread(mine.map((one) => one.perSecond))
    const ratio = spread(mine.map((one, round) => one.perSecond / raw[round]!.perSecond))
    const cpuMicros = spread(mine.map((one) => one.cpuMicros))
    const cpuRatio = spread(mine.map((one, round) => raw[round]!.cpuMicros / one.cpuMicros))
    results.push({ pattern, program, window: pattern === "req-rep" ? 1 : window, perSecond, ratio, cpuMicros, cpuRatio })
    process.stdout.write(
      `${pattern.padEnd(14)} ${program.padEnd(8)} ${shown(perSecond, 0).padStart(26)} /s   ${shown(ratio, 2)} x raw   ${shown(cpuMicros, 1).padStart(22)} us of processor   ${shown(cpuRatio, 2)} x raw\n`
    )
  }
}
const report = { rounds, count, cpus: cpus().length, cpu: cpus()[0]?.model, node: process.version, results }
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`)
