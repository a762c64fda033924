/**
 * The sender to the naive worker: a Lazy Pirate whose idempotency key holds the time at which its socket was made. The
 * time-out makes a new socket, the new socket a new key, and the new key a second charge.
 */
import { StripeSim } from "@purser/stripe-sim"
import { Effect } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Request } from "zeromq"

const period = "2026-07-naive"
const timeoutMs = 700

/** How the naive run ended, by the simulator's books. */
export interface NaiveReport {
  readonly customers: number
  readonly chargedTwice: number
}

const startWorker = (url: string, endpoints: ReadonlyArray<string>, dieAfter: number): ChildProcess =>
  spawn(process.execPath, ["--disable-warning=ExperimentalWarning", fileURLToPath(new URL("naiveWorker.ts", import.meta.url))], {
    env: { ...process.env, STRIPE_URL: url, ENDPOINTS: endpoints.join(","), DIE_AFTER: String(dieAfter) },
    stdio: "ignore"
  })

const openSocket = (endpoint: string) => {
  const socket = new Request({ linger: 0, receiveTimeout: timeoutMs, sendTimeout: timeoutMs })
  socket.connect(endpoint)
  return { socket, sessionMs: Date.now() }
}

/** Sends one sender's invoices one after the other, each until it is answered. */
const send = async (endpoint: string, customers: ReadonlyArray<string>) => {
  let session = openSocket(endpoint)
  for (const customer of customers) {
    for (let attempt = 1; attempt <= 20; attempt++) {
      const key = createHash("sha256").update(`${session.sessionMs}:${customer}:${period}`).digest("hex").slice(0, 32)
      try {
        await session.socket.send(JSON.stringify({
          customer_id: customer,
          billing_period: period,
          amount_cents: 4200,
          stripe_customer_id: `cus_${customer}`,
          idempotency_key: key
        }))
        await session.socket.receive()
        break
      } catch {
        session.socket.close()
        session = openSocket(endpoint)
      }
    }
  }
  session.socket.close()
}

/** Bills customers through a naive worker that is killed once and started again. */
export const naiveRun = (customers: number): Effect.Effect<NaiveReport, never, StripeSim> =>
  Effect.gen(function*() {
    const sim = yield* StripeSim
    const senders = 16
    const folder = join(tmpdir(), `purser-naive-${process.pid}`)
    const endpoints = Array.from({ length: senders }, (_, index) => `ipc://${folder}-${index}`)
    // Stripe takes a moment to answer: what is on its way when the worker dies has been charged and stays unanswered.
    yield* sim.faults.add({ match: { method: "POST", path: "/v1/charges", times: "always" }, action: { kind: "delay", at: "after", delayMs: 25 } })
    const names = Array.from({ length: customers }, (_, index) => `naive_${String(index).padStart(4, "0")}`)
    yield* Effect.promise(async () => {
      let worker = startWorker(sim.url, endpoints, Math.floor(customers / 2))
      const restart = () => {
        worker = startWorker(sim.url, endpoints, 0)
      }
      worker.once("exit", restart)
      await Promise.all(endpoints.map((endpoint, index) => send(endpoint, names.filter((_, at) => at % senders === index))))
      worker.removeAllListeners("exit")
      worker.kill("SIGKILL")
    })
    const books = (yield* sim.books).filter((entry) => entry.billingPeriod === period)
    return { customers: books.filter((entry) => entry.payments > 0).length, chargedTwice: books.filter((entry) => entry.payments > 1).length }
  })
