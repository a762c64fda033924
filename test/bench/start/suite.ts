/** How long the command takes until it answers, or serves. */
import { mkdtempSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { freePort, runNode, startServer } from "../support/children.ts"
import { cpuMsOf, peakRssMbOf } from "../support/processes.ts"
import { type Cost, inTurns, type Suite } from "../support/Suite.ts"

interface Started {
  readonly tookMs: number
  readonly cost: Cost
}

/** Ends when somebody listens there. */
const listening = async (port: number): Promise<void> => {
  for (;;) {
    const there = await new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => {
        socket.destroy()
        resolve(true)
      })
      socket.once("error", () => resolve(false))
    })
    if (there) return
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

const goals = { help: 300, postgres: 800, cold: 1500, warm: 800 } as const
const labels = { help: "purser --help", postgres: "worker, PostgreSQL", cold: "worker, embedded, new folder", warm: "worker, embedded, its folder again" } as const

export const start: Suite = {
  name: "start",
  title: "Start",
  run: async (bench) => {
    const command = await bench.command()
    const databaseUrl = await bench.server.newDatabase()
    const base = { PURSER_STRIPE_KEY: "sk_test_bench", PURSER_STRIPE_URL: "http://127.0.0.1:9", NODE_COMPILE_CACHE: join(bench.folder, "compiled") }
    const ready = async (env: Record<string, string>): Promise<Started> => {
      const port = await freePort()
      const beganMs = performance.now()
      const worker = await startServer([command, "worker", "--endpoint", `tcp://127.0.0.1:${port}`], /starting a worker/, { ...base, ...env }, bench.folder)
      await listening(port)
      const tookMs = performance.now() - beganMs
      const cost = { cpuMicros: cpuMsOf(worker.pid) * 1000, peakRssMb: peakRssMbOf(worker.pid) }
      await worker.stop()
      return { tookMs, cost }
    }
    const newFolder = () => mkdtempSync(join(bench.folder, "data-"))
    const warmFolder = newFolder()
    const measure = {
      help: () => runNode([command, "--help"], base, bench.folder).then(({ cpuMs, peakRssMb, tookMs }): Started => ({ tookMs, cost: { cpuMicros: cpuMs * 1000, peakRssMb } })),
      postgres: () => ready({ PURSER_DATABASE_URL: databaseUrl }),
      cold: () => ready({ PURSER_DATA_DIR: newFolder() }),
      warm: () => ready({ PURSER_DATA_DIR: warmFolder })
    }
    // Compiles, migrates, and makes the folder.
    for (const one of ["help", "postgres", "warm"] as const) await measure[one]()
    const names = ["help", "postgres", "cold", "warm"] as const
    const found = await inTurns(names, bench.quick ? Math.max(bench.rounds, 5) : bench.rounds * 2, async (name) => {
      const started = await measure[name]()
      bench.say(`${labels[name]} ${started.tookMs.toFixed(0)} ms`)
      return started
    })
    const times = (name: keyof typeof labels) => found[name].map(({ tookMs }) => tookMs)
    return {
      setting: "the bundled command with its code compiled before, as the installed one has it; a worker is ready when its socket takes connections, on PostgreSQL with the schema in place",
      figures: names.map((name) => ({ program: labels[name], what: "ms", values: times(name), cost: found[name].map(({ cost }) => cost) })),
      goals: names.map((name) => ({ what: `${labels[name]}, ms`, wanted: { atMost: goals[name] }, values: times(name) }))
    }
  }
}
