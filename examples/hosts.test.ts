/** Purser inside the servers that there are: each example is started as a newcomer would, and spoken to over HTTP. */
import { assert, it } from "@effect/vitest"
import { postgresUrl } from "@purser/postgres/TestDatabase"
import { StripeSim } from "@purser/stripe-sim"
import { Effect, Redacted } from "effect"
import { spawn } from "node:child_process"
import { createHmac } from "node:crypto"
import { once } from "node:events"
import { fileURLToPath } from "node:url"

const secret = "whsec_of_the_host_under_test"
const charge = (customer: string, more: Record<string, unknown> = {}) => ({
  customerId: customer, billingPeriod: "2025-07", amountMinor: 1000, currency: "usd", stripeCustomerId: `cus_${customer}`, ...more
})

/** A server of the examples, until the scope ends. */
const host = Effect.fnUntraced(function*(file: string) {
  const sim = yield* StripeSim
  const url = yield* postgresUrl
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => spawn(process.execPath, ["--disable-warning=ExperimentalWarning", fileURLToPath(new URL(file, import.meta.url))], {
      env: {
        ...process.env, PORT: "0", PURSER_DATABASE_URL: Redacted.value(url), PURSER_STRIPE_URL: sim.url, PURSER_STRIPE_KEY: "rk_test_host",
        PURSER_WEBHOOK_SECRET: secret, PURSER_RUN_PAUSE: "50 millis"
      }
    })),
    (child) => Effect.sync(() => void child.kill("SIGKILL"))
  )
  let said = ""
  child.stderr.on("data", (data) => {
    said += String(data)
  })
  const base = yield* Effect.promise(() =>
    new Promise<string>((resolve, reject) => {
      child.stdout.on("data", (data) => {
        said += String(data)
        const found = /listening on (http:\/\/[\d.]+:\d+)/.exec(said)?.[1]
        if (found !== undefined) resolve(found)
      })
      child.on("close", () => reject(new Error(`${file} does not listen: ${said}`)))
    }))
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    Effect.promise(async () => {
      const answer = await fetch(`${base}${path}`, {
        method: "POST", headers: { "content-type": "application/json", ...headers }, body: typeof body === "string" ? body : JSON.stringify(body)
      })
      return { status: answer.status, text: await answer.text() }
    })
  const stop = Effect.promise(async () => {
    child.kill("SIGTERM")
    const [code] = await once(child, "close") as [number | null]
    return code === 0 ? "in order" : said
  })
  return { post, stop }
})

for (const file of ["express.ts", "fastify.ts", "hono.ts"]) {
  it.live(`${file} charges once, streams a run, takes webhooks, and leaves in order`, () =>
    Effect.scoped(Effect.gen(function*() {
      const sim = yield* StripeSim
      const { post, stop } = yield* host(file)
      const lines = yield* post("/runs/july", [...Array.from({ length: 8 }, (_, index) => charge(`c${index}`)), charge("poor", { paymentMethod: "pm_card_chargeDeclined" })])
      const last = JSON.parse(lines.text.trim().split("\n").at(-1)!) as Record<string, unknown>
      assert.deepInclude(last, { state: "finished", rows: 9, succeeded: 8, declined: 1 }, lines.text)
      assert.strictEqual((yield* post("/runs/july", [])).text.trim().split("\n").at(-1), lines.text.trim().split("\n").at(-1))
      assert.strictEqual((yield* post("/runs/none", {})).status, 400)

      const answers = yield* Effect.forEach([
        charge("c0"), charge("poor", { paymentMethod: "pm_card_chargeDeclined" }), charge("c0", { amountMinor: 999 }), { ...charge("new"), amount: 1 }, charge("rich", { amountMinor: 99_000 })
      ], (body) => Effect.map(post("/charges", body), ({ status, text }) => [status, JSON.parse(text) as unknown]))
      assert.deepStrictEqual(answers.map(([status]) => status), [200, 402, 409, 400, 422])
      assert.deepInclude(answers[0]![1], { paid: true, before: true })
      assert.deepInclude(answers[2]![1], { amountMinor: 1000 })

      const broken = yield* post("/charges", '{"customerId":')
      assert.strictEqual(broken.status, 400)
      assert.strictEqual(typeof (JSON.parse(broken.text) as { error: unknown }).error, "string")

      const event = JSON.stringify({ object: "event", id: "evt_host", type: "payment_intent.succeeded", created: 1_750_000_000, data: { object: { id: "pi_host" } } })
      const at = Math.floor(Date.now() / 1000)
      const signature = createHmac("sha256", secret).update(`${at}.${event}`).digest("hex")
      const signed = { "stripe-signature": `t=${at},v1=${signature}` }
      assert.deepStrictEqual(JSON.parse((yield* post("/webhooks/stripe", event, signed)).text), { received: true, duplicate: false })
      assert.strictEqual((yield* post("/webhooks/stripe", `${event} `, signed)).status, 400)

      assert.strictEqual(yield* stop, "in order")
      const paid = (yield* sim.books).filter(({ payments }) => payments > 0)
      assert.deepStrictEqual([paid.length, new Set(paid.map(({ payments }) => payments))], [8, new Set([1])])
    })).pipe(Effect.provide(StripeSim.layer())), 60_000)
}
