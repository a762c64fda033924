/**
 * The processes of one run over one transport: workers, what stands between, and the run itself, each started again when it was
 * killed. Between all of them, and between them and the database and Stripe, are TCP proxies that a fault resets.
 */
import { type Ended, type Running, start } from "@purser/test-e2e/src/Purser.ts"
import { freePort, type Proxy, proxyTo } from "@purser/test-e2e/src/Proxy.ts"
import { Effect, Scope } from "effect"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { isAlone, type Transport } from "./Faults.ts"

type Env = Readonly<Record<string, string>>

/** A process that has a successor whenever it was killed. */
export interface Post {
  readonly pid: Effect.Effect<number>
  /** Where it notes its memory when it is asked by SIGUSR2. */
  readonly memoryFile: string | undefined
  readonly signal: (signal: NodeJS.Signals) => Effect.Effect<void>
  /** Kills it and starts another in its place. */
  readonly replace: Effect.Effect<void>
  /** Tells it to go, and answers how it went. */
  readonly leave: Effect.Effect<Ended>
}

/** Everything that serves a run. */
export interface Stage {
  readonly workers: ReadonlyArray<Post>
  readonly between: Post | undefined
  readonly messages: ReadonlyArray<Proxy>
  /** Arguments of the run beside its file. */
  readonly runArgs: ReadonlyArray<string>
  readonly runEnv: Env
}

const clockModule = fileURLToPath(new URL("movedClock.ts", import.meta.url))
const dayMs = 86_400_000

/** Settings under which a lost message or a dead peer is noticed within a second, and nobody gives up. */
const hurried = {
  PURSER_REQUEST_TIMEOUT: "1 second",
  PURSER_REQUEST_RETRIES: "1000",
  PURSER_HEARTBEAT: "500 millis",
  PURSER_PUB_SUB_WORKERS: "2",
  PURSER_OUTAGE_PROBE: "200 millis",
  PURSER_DATABASE_CONNECT_TIMEOUT: "2 seconds"
} as const

/** A process with a clock of its own. */
const clockOf = (offsetMs: number, jumpMs: number): Env => ({
  NODE_OPTIONS: `--disable-warning=ExperimentalWarning --import=${clockModule}`,
  CHAOS_CLOCK_OFFSET_MS: String(offsetMs),
  CHAOS_CLOCK_JUMP_MS: String(jumpMs)
})

const postOf = Effect.fnUntraced(function*(args: ReadonlyArray<string>, env: Env, says: string) {
  let running: Running = yield* start(args, env)
  yield* running.says(says)
  const scope = yield* Effect.scope
  const post: Post = {
    pid: Effect.sync(() => running.pid),
    memoryFile: env["CHAOS_MEMORY_FILE"],
    signal: (signal) => Effect.suspend(() => running.kill(signal)),
    // Also when the run is over meanwhile: whoever is told to go must have come.
    replace: Effect.uninterruptible(Effect.gen(function*() {
      yield* running.kill("SIGKILL")
      yield* running.ended
      running = yield* Scope.provide(start(args, env), scope)
      yield* running.says(says)
    })),
    leave: Effect.suspend(() => Effect.andThen(running.kill("SIGTERM"), running.ended))
  }
  return post
})

const devices = {
  "router-dealer": "queue",
  "push-pull": "streamer",
  "pub-sub": "forwarder"
} as const

/**
 * Raises the stage of a transport; `env` leads to the database and to Stripe. With a folder to be watched by, each process notes its
 * memory there, and its clock is right.
 */
export const raise = Effect.fnUntraced(function*(transport: Transport, env: Env, watchedBy?: string) {
  const settings = { ...env, ...hurried }
  const watched = (name: string): Env => watchedBy === undefined ? {} : { ...clockOf(0, 0), CHAOS_MEMORY_FILE: join(watchedBy, `${name}.json`) }
  if (isAlone(transport)) {
    return { workers: [], between: undefined, messages: [], runArgs: ["--transport", transport], runEnv: settings } satisfies Stage as Stage
  }
  const address = (port: number) => `tcp://127.0.0.1:${port}`
  const messages: Array<Proxy> = []
  const behindProxy = Effect.fnUntraced(function*(port: number) {
    const proxy = yield* proxyTo(port)
    messages.push(proxy)
    return address(proxy.port)
  })
  // One worker's clock is a day late, the other's a day early; each fault of that kind moves it on by three days.
  const work = Effect.fnUntraced(function*(endpoint: string, index: number) {
    const clock = watchedBy === undefined ? clockOf(index === 0 ? -dayMs : dayMs, 3 * dayMs) : watched(`worker-${index}`)
    return yield* postOf(["worker", "--transport", transport, "--endpoint", endpoint], { ...settings, ...clock, PURSER_WORKER: `worker-${index}` }, "worker on")
  })
  const runArgs = ["--workers", "0", "--transport", transport]
  if (transport === "req-rep") {
    const ports = [yield* freePort, yield* freePort]
    const workers = yield* Effect.forEach(ports, (port, index) => work(address(port), index), { concurrency: 2 })
    const endpoints = yield* Effect.forEach(ports, behindProxy)
    return { workers, between: undefined, messages, runArgs, runEnv: { ...settings, PURSER_ENDPOINT: endpoints.join(",") } } satisfies Stage as Stage
  }
  const [front, back] = [yield* freePort, yield* freePort]
  const [toFront, toBack] = [yield* behindProxy(front), yield* behindProxy(back)]
  const between = transport === "majordomo"
    ? yield* postOf(["broker", "--endpoint", address(front)], { ...settings, ...watched("between") }, "a broker serves on")
    : yield* postOf(["forwarder", "--device", devices[transport as keyof typeof devices], "--frontend", address(front), "--backend", address(back)], { ...settings, ...watched("between") }, "a forwarder passes messages on")
  const workers = yield* Effect.forEach([0, 1], (index) => work(transport === "majordomo" ? toFront : `>${toBack}`, index), { concurrency: 2 })
  return { workers, between, messages, runArgs, runEnv: { ...settings, PURSER_ENDPOINT: toFront } } satisfies Stage as Stage
})
