/**
 * What telemetry costs, as processor time of one charge: without it, with metrics, with traces of all charges.
 * `node telemetry/main.ts [--rounds 7] [--count 20000] [--in-flight 256] [--against FOLDER]`.
 *
 * `--against` names another checkout of this repository, installed, for example of the revision before telemetry:
 * `git worktree add ../before REVISION`, then `pnpm install` there. The sides take turns in every round; read the ratios, each of
 * one round, against `off` of this checkout. Run it on a machine that does nothing else.
 */
import { spawn } from "node:child_process"
import { copyFileSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { shown, spread } from "../spread.ts"

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "7" },
    count: { type: "string", default: "20000" },
    "in-flight": { type: "string", default: "256" },
    against: { type: "string" }
  }
})
const side = fileURLToPath(new URL("side.ts", import.meta.url))

/** Takes what it is sent; its time is not the sides'. */
const collector = createServer((request, response) => {
  request.resume()
  request.on("end", () => response.end())
})
await new Promise<void>((listening) => collector.listen(0, "127.0.0.1", listening))
const url = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`

const measure = (program: string, mode: string) =>
  new Promise<number>((done, failed) => {
    const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", program, mode, values.count, values["in-flight"], url], { stdio: ["ignore", "pipe", "inherit"] })
    let said = ""
    child.stdout.on("data", (data) => said += String(data))
    child.on("close", (code) => code === 0 ? done(Number(said)) : failed(new Error(`${mode} ended with ${code}`)))
  })

const sides: Array<{ readonly name: string; readonly program: string; readonly mode: string }> = ["off", "metrics", "traces", "both"].map((mode) => ({ name: mode, program: side, mode }))
// A package that had all that the side imports before this bench was there.
const before = values.against === undefined ? undefined : join(resolve(values.against), "test", "e2e", "src", "telemetrySide.ts")
if (before !== undefined) {
  copyFileSync(side, before)
  sides.push({ name: "before", program: before, mode: "off" })
}

const micros = new Map<string, Array<number>>(sides.map(({ name }) => [name, []]))
try {
  for (let round = 1; round <= Number(values.rounds); round++) {
    // Each round begins with another side.
    for (let turn = 0; turn < sides.length; turn++) {
      const { mode, name, program } = sides[(turn + round) % sides.length]!
      micros.get(name)!.push(await measure(program, mode))
    }
    console.log(`round ${round}: ${sides.map(({ name }) => `${name} ${micros.get(name)!.at(-1)!.toFixed(1)}`).join(", ")} µs a charge`)
  }
} finally {
  collector.close()
  if (before !== undefined) rmSync(before)
}
const off = micros.get("off")!
for (const { name } of sides) {
  const own = micros.get(name)!
  console.log(`${name.padEnd(8)} ${shown(spread(own), 1)} µs a charge, ${shown(spread(own.map((value, round) => value / off[round]!)), 3)} times off`)
}
