/** The `purser` command as a process of its own, as an operator runs it, with fault points that a test arms. */
import { Duration, Effect } from "effect"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"

// Bundled by the test run's set-up.
const command = process.env["PURSER_TEST_COMMAND"] ?? fileURLToPath(new URL("../../../apps/cli/test/support/purserWithFaults.ts", import.meta.url))

// The embedded database is compiled at each start: quickly, rather than well, for programs that live for a second.
const shortLived = ["--liftoff-only"]

/** How a process ended. `json` is its last line of output, when that is an object. */
export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
  readonly json: Record<string, unknown> | undefined
}

/** Settings that make a resumed run wait a second instead of the usual lease. */
export const quick = {
  PURSER_LEASE: "1 second",
  PURSER_RUN_PAUSE: "200 millis",
  PURSER_HAND_BACK: "100 millis",
  PURSER_GATEWAY_BACKOFF: "20 millis",
  PURSER_GATEWAY_BACKOFF_MAX: "100 millis",
  PURSER_SWEEP_INTERVAL: "300 millis",
  PURSER_PGLITE_FSYNC: "off"
} as const

/** A process that is running. */
export interface Running {
  readonly pid: number
  readonly ended: Effect.Effect<Ended>
  readonly kill: (signal: NodeJS.Signals) => Effect.Effect<void>
  /** Waits until standard output or error holds the text, and answers all that was said until then. */
  readonly says: (text: string) => Effect.Effect<string>
  /** Waits for something that the process brings about; a process that ends before fails the test with what it said. */
  readonly meanwhile: <A>(wait: Effect.Effect<A>) => Effect.Effect<A>
}

/** The period of the billing files of tests, allowed by name: the tests of a year hence are those of today. */
const inItsTime = (args: ReadonlyArray<string>) => args[0] === "run" ? [...args, "--allow-period", "2026-07"] : args

/** Settings that no process may repeat, whatever a test looks for. */
const secrets = ["PURSER_STRIPE_KEY", "PURSER_PROXY_STRIPE_KEY", "PURSER_WEBHOOK_SECRET", "PURSER_CONSOLE_TOKEN", "PURSER_CONSOLE_VIEWER_TOKEN"]

/** The settings of which a process has said the value. What is short may be a word of its own. */
const saidOf = (env: Readonly<Record<string, string>>, output: string): ReadonlyArray<string> =>
  secrets.filter((name) => (env[name] ?? "").split(",").some((secret) => secret.length >= 8 && output.includes(secret)))

/** Starts `purser` with these arguments; it is killed with the scope. `stdin` is given to it whole. */
export const start = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>>, cwd?: string, stdin?: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("PURSER_")))
      const settings = { PURSER_STRIPE_KEY: "sk_test_e2e", ...env }
      const child = spawn(process.execPath, [...shortLived, "--disable-warning=ExperimentalWarning", command, ...inItsTime(args)], {
        env: { ...inherited, ...quick, ...settings },
        stdio: ["pipe", "pipe", "pipe"],
        ...(cwd === undefined ? {} : { cwd })
      })
      // A program that ends before it has read everything is none of the test's business.
      child.stdin.on("error", () => undefined)
      child.stdin.end(stdin ?? "")
      let stdout = ""
      let stderr = ""
      const watchers = new Set<() => void>()
      const note = () => {
        for (const watch of watchers) watch()
      }
      child.stdout.on("data", (data) => {
        stdout += String(data)
        note()
      })
      child.stderr.on("data", (data) => {
        stderr += String(data)
        note()
      })
      const closed = new Promise<Ended>((resolve, reject) => {
        child.on("close", (code, signal) => {
          const said = saidOf(settings, `${stdout}\n${stderr}`)
          // Not even who waits for nothing may miss it.
          if (said.length > 0) return reject(new Error(`purser ${args[0]} has said what ${said.join(" and ")} holds`))
          const last = stdout.trim().split("\n").at(-1) ?? ""
          resolve({ code, signal, stdout, stderr, json: last.startsWith("{") ? JSON.parse(last) as Record<string, unknown> : undefined })
          note()
        })
      })
      const ended = Effect.promise(() => closed)
      const meanwhile = <A>(wait: Effect.Effect<A>) =>
        Effect.raceFirst(wait, Effect.flatMap(ended, ({ code, signal, stderr }) =>
          Effect.die(new Error(`purser ${args.join(" ")} ended too early with ${code ?? signal}: ${stderr}`))))
      const running: Running = {
        pid: child.pid ?? 0,
        ended,
        meanwhile,
        kill: (signal) => Effect.sync(() => void child.kill(signal)),
        says: (text) =>
          meanwhile(Effect.callback<string>((resume) => {
            const watch = () => {
              if (!stdout.includes(text) && !stderr.includes(text)) return
              watchers.delete(watch)
              resume(Effect.succeed(stdout + stderr))
            }
            watchers.add(watch)
            watch()
          }))
      }
      return { running, child }
    }),
    ({ child }) => Effect.sync(() => void child.kill("SIGKILL"))
  ).pipe(Effect.map(({ running }) => running))

/** Runs `purser` to its end. */
export const purser = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>>, cwd?: string, stdin?: string): Effect.Effect<Ended> =>
  Effect.scoped(Effect.flatMap(start(args, env, cwd, stdin), ({ ended }) => ended)).pipe(Effect.timeout(Duration.seconds(120)), Effect.orDie)
