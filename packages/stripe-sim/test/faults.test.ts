import { StripeSim } from "@purser/stripe-sim"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { connect } from "node:net"
import { arrived, call, intentForm, raw, sdk, type Sim } from "./support.ts"

const intents = "/v1/payment_intents"
const confirmPath = `${intents}/*/confirm`

const created = (sim: Sim, more = "") => Effect.map(raw(sim, intents, { body: intentForm(more) }), ({ json }) => String(json.id))

const confirm = (sim: Sim, id: string, key?: string) =>
  raw(sim, `${intents}/${id}/confirm`, { body: "off_session=true", ...(key === undefined ? {} : { key }) })

const paid = (sim: Sim) => sim.payments("cus_1", "")

const journalOf = (sim: Sim, path: string) =>
  Effect.map(sim.requests, (entries) => entries.filter((entry) => entry.path === path))

describe("resets", () => {
  it.effect("before processing: the connection is reset and nothing moved", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const id = yield* created(sim)
      yield* sim.faults.add({ match: { path: confirmPath }, action: { kind: "reset", at: "before" } })
      const error = yield* Effect.flip(confirm(sim, id, "k"))
      assert.strictEqual(error.code, "ECONNRESET")
      assert.strictEqual(yield* paid(sim), 0)
      const again = yield* confirm(sim, id, "k")
      assert.strictEqual(again.json.status, "succeeded")
      assert.strictEqual(again.headers["idempotent-replayed"], undefined)
      const [lost, answered] = yield* journalOf(sim, `${intents}/${id}/confirm`)
      assert.deepInclude(lost, { status: null, paymentsMoved: 0, faults: ["reset"] })
      assert.deepInclude(answered, { status: 200, paymentsMoved: 1, movedMinor: 1999 })
    }))

  it.effect("after processing: the money moved, the answer is lost, the key replays it", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const id = yield* created(sim)
      yield* sim.faults.add({ match: { path: confirmPath }, action: { kind: "reset", at: "after" } })
      const error = yield* Effect.flip(confirm(sim, id, "k"))
      assert.strictEqual(error.code, "ECONNRESET")
      assert.strictEqual(yield* paid(sim), 1)
      const again = yield* confirm(sim, id, "k")
      assert.strictEqual(again.json.status, "succeeded")
      assert.strictEqual(again.headers["idempotent-replayed"], "true")
      assert.strictEqual(yield* paid(sim), 1)
      const [lost] = yield* journalOf(sim, `${intents}/${id}/confirm`)
      assert.deepInclude(lost, { status: null, paymentsMoved: 1, movedMinor: 1999 })
    }))

  it.effect("are resets on the socket, not an orderly end", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      for (const at of ["before", "after"] as const) {
        yield* sim.faults.add({ action: { kind: "reset", at } })
        const seen = yield* Effect.callback<string>((resume) => {
          const socket = connect(sim.port, sim.host, () => {
            socket.write("GET /v1/charges HTTP/1.1\r\nhost: sim\r\nauthorization: Bearer sk_test_sim\r\n\r\n")
          })
          socket.on("error", (error: NodeJS.ErrnoException) => resume(Effect.succeed(error.code ?? error.message)))
          socket.on("end", () => resume(Effect.succeed("an orderly end")))
        })
        assert.strictEqual(seen, "ECONNRESET")
      }
    }))

  it.effect("show that the SDK resends a reset request by itself", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      yield* sim.faults.add({ action: { kind: "reset", at: "after" } })
      yield* call(() => sdk(sim).charges.create({ amount: 500, currency: "usd", customer: "cus_1" }))
      const entries = yield* journalOf(sim, "/v1/charges")
      assert.deepStrictEqual(entries.map((entry) => entry.replayed), [false, true])
      assert.strictEqual(entries[0]?.idempotencyKey, entries[1]?.idempotencyKey)
      assert.strictEqual(yield* paid(sim), 1)
    }))
})

describe("answers that do not end", () => {
  it.effect("a stalled body leaves the caller waiting, though the money moved", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const id = yield* created(sim)
      yield* sim.faults.add({ match: { path: confirmPath }, action: { kind: "stall" } })
      const waiting = yield* Effect.forkChild(confirm(sim, id))
      yield* arrived(sim, (entry) => entry.paymentsMoved === 1)
      assert.isUndefined(waiting.pollUnsafe())
      yield* Fiber.interrupt(waiting)
      assert.strictEqual(yield* paid(sim), 1)
    }))

  it.effect("a truncated body breaks the connection after the headers", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const id = yield* created(sim)
      yield* sim.faults.add({ match: { path: confirmPath }, action: { kind: "truncate" } })
      yield* Effect.flip(confirm(sim, id))
      assert.strictEqual(yield* paid(sim), 1)
    }))
})

describe("delays", () => {
  const hour = 3_600_000

  it.effect("before: a later request overtakes, and the late one meets what it left", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const id = yield* created(sim)
      yield* sim.faults.add({ match: { path: confirmPath }, action: { kind: "delay", at: "before", delayMs: hour } })
      const late = yield* Effect.forkChild(confirm(sim, id, "late"))
      yield* arrived(sim, (entry) => entry.idempotencyKey === "late")
      assert.strictEqual((yield* confirm(sim, id, "quick")).json.status, "succeeded")
      yield* sim.faults.release
      const answer = yield* Fiber.join(late)
      assert.strictEqual(answer.status, 400)
      assert.strictEqual(answer.json.error.code, "payment_intent_unexpected_state")
      assert.strictEqual(yield* paid(sim), 1)
    }))

  it.effect("during: the object is held, so another request for it is turned away", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const id = yield* created(sim)
      yield* sim.faults.add({ match: { path: confirmPath }, action: { kind: "delay", at: "during", delayMs: hour } })
      const running = yield* Effect.forkChild(confirm(sim, id, "one"))
      yield* arrived(sim, (entry) => entry.idempotencyKey === "one")
      const other = yield* confirm(sim, id, "two")
      assert.strictEqual(other.status, 429)
      assert.strictEqual(other.json.error.code, "lock_timeout")
      assert.strictEqual(other.headers["stripe-rate-limited-reason"], undefined)
      assert.strictEqual(yield* paid(sim), 0)
      yield* sim.faults.release
      assert.strictEqual((yield* Fiber.join(running)).json.status, "succeeded")
      assert.strictEqual((yield* confirm(sim, id, "two")).status, 400)
      assert.strictEqual(yield* paid(sim), 1)
    }))

  it.effect("after: the money moved and the key knows it while the answer is still on its way", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const id = yield* created(sim)
      yield* sim.faults.add({ match: { path: confirmPath }, action: { kind: "delay", at: "after", delayMs: hour } })
      const running = yield* Effect.forkChild(confirm(sim, id, "k"))
      yield* arrived(sim, (entry) => entry.paymentsMoved === 1)
      assert.isUndefined(running.pollUnsafe())
      assert.strictEqual((yield* confirm(sim, id, "k")).headers["idempotent-replayed"], "true")
      yield* sim.faults.release
      assert.strictEqual((yield* Fiber.join(running)).json.status, "succeeded")
    }))

  it.effect("end by themselves when their time has passed", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      for (const at of ["before", "during", "after"] as const) {
        yield* sim.faults.add({ action: { kind: "delay", at, delayMs: 5 } })
      }
      assert.strictEqual((yield* raw(sim, intents, { body: intentForm() })).status, 200)
      assert.deepStrictEqual((yield* sim.requests)[0]?.faults, ["delay", "delay", "delay"])
    }))

  it.effect("a caller that has gone does not stop what it started", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const id = yield* created(sim)
      yield* sim.faults.add({ match: { path: confirmPath }, action: { kind: "delay", at: "during", delayMs: hour } })
      const gone = yield* Effect.forkChild(confirm(sim, id, "k"))
      yield* arrived(sim, (entry) => entry.idempotencyKey === "k")
      yield* Fiber.interrupt(gone)
      yield* sim.faults.release
      assert.strictEqual(yield* paid(sim), 1)
    }))
})

describe("server errors", () => {
  it.effect("500 done and not stored: the money moved although the key knows nothing", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      yield* sim.faults.add({ action: { kind: "serverError", effect: "done", stored: false } })
      const body = "amount=500&currency=usd&customer=cus_1"
      assert.strictEqual((yield* raw(sim, "/v1/charges", { body, key: "k" })).status, 500)
      assert.strictEqual((yield* raw(sim, "/v1/charges", { body, key: "k" })).status, 200)
      assert.strictEqual(yield* paid(sim), 2)
    }))

  it.effect("500 done and stored: the answer stays, only a look shows the payment", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const id = yield* created(sim)
      yield* sim.faults.add({
        match: { path: confirmPath },
        action: { kind: "serverError", effect: "done", stored: true }
      })
      const first = yield* confirm(sim, id, "k")
      const again = yield* confirm(sim, id, "k")
      assert.deepStrictEqual([first.status, again.status], [500, 500])
      assert.strictEqual(again.json.error.type, "api_error")
      assert.strictEqual((yield* raw(sim, `${intents}/${id}`)).json.status, "succeeded")
      assert.strictEqual(yield* paid(sim), 1)
    }))

  it.effect("500 rolled forward: the payment happens later, on the virtual clock", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const id = yield* created(sim)
      yield* sim.faults.add({
        match: { path: confirmPath },
        action: { kind: "serverError", effect: "later", stored: true, laterMs: 600_000 }
      })
      assert.strictEqual((yield* confirm(sim, id, "k")).status, 500)
      assert.strictEqual((yield* raw(sim, `${intents}/${id}`)).json.status, "requires_confirmation")
      yield* sim.advanceClock("5 minutes")
      assert.strictEqual(yield* paid(sim), 0)
      yield* sim.advanceClock("5 minutes")
      assert.strictEqual(yield* paid(sim), 1)
      const [entry] = yield* journalOf(sim, `${intents}/${id}/confirm`)
      assert.deepInclude(entry, { status: 500, paymentsMoved: 1 })
    }))

  it.effect("500 rolled forward meets what happened meanwhile: still one payment", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const id = yield* created(sim)
      yield* sim.faults.add({
        match: { path: confirmPath },
        action: { kind: "serverError", effect: "later", stored: false }
      })
      yield* confirm(sim, id, "k")
      assert.strictEqual((yield* confirm(sim, id, "k2")).json.status, "succeeded")
      yield* sim.rollForward
      assert.strictEqual(yield* paid(sim), 1)
    }))

  it.effect("502 in HTML, with and without effect", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const id = yield* created(sim)
      yield* sim.faults.add(
        { match: { path: confirmPath }, action: { kind: "badGateway", effect: "none" } },
        { match: { path: confirmPath, nth: 2 }, action: { kind: "badGateway", effect: "done" } }
      )
      const first = yield* confirm(sim, id, "k")
      assert.strictEqual(first.status, 502)
      assert.strictEqual(first.headers["content-type"], "text/html")
      assert.strictEqual(yield* paid(sim), 0)
      assert.strictEqual((yield* confirm(sim, id, "k")).status, 502)
      assert.strictEqual(yield* paid(sim), 1)
      assert.strictEqual((yield* confirm(sim, id, "k")).headers["idempotent-replayed"], "true")
    }))

  it.effect("JSON without an error member, which the SDK takes for success", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      yield* sim.faults.add({ action: { kind: "foreignJson", status: 403, effect: "none" } })
      const answer = yield* call(() => sdk(sim).paymentIntents.create({ amount: 500, currency: "usd" }))
      assert.strictEqual(answer.lastResponse.statusCode, 403)
      assert.isUndefined(answer.id)
    }))
})

describe("refusals before processing", () => {
  it.effect("429 with its reason, 429 of a lock without one, 409 of a key", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      yield* sim.faults.add(
        { action: { kind: "rateLimited", reason: "global-rate" } },
        { match: { nth: 2 }, action: { kind: "lockTimeout" } },
        { match: { nth: 3 }, action: { kind: "keyInUse" } }
      )
      const post = raw(sim, intents, { body: intentForm(), key: "k" })
      const limited = yield* post
      assert.strictEqual(limited.status, 429)
      assert.strictEqual(limited.json.error.code, "rate_limit")
      assert.strictEqual(limited.headers["stripe-rate-limited-reason"], "global-rate")
      const locked = yield* post
      assert.strictEqual(locked.status, 429)
      assert.strictEqual(locked.json.error.code, "lock_timeout")
      assert.strictEqual(locked.headers["stripe-should-retry"], "true")
      const inUse = yield* post
      assert.strictEqual(inUse.status, 409)
      assert.strictEqual(inUse.json.error.code, "idempotency_key_in_use")
      assert.strictEqual((yield* post).status, 200)
      assert.lengthOf(yield* sim.books, 1)
    }))
})

describe("which requests a fault is for", () => {
  const limited = { kind: "rateLimited" } as const
  const statuses = (sim: Sim, bodies: ReadonlyArray<string>) =>
    Effect.forEach(bodies, (body) => Effect.map(raw(sim, intents, { body }), ({ status }) => status))

  it.effect("the nth of those that match, for as many as it says", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      yield* sim.faults.add({ match: { method: "POST", path: intents, nth: 2, times: 2 }, action: limited })
      yield* raw(sim, intents)
      assert.deepStrictEqual(yield* statuses(sim, Array(5).fill(intentForm())), [200, 429, 429, 200, 200])
    }))

  it.effect("always, until the faults are cleared", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      yield* sim.faults.add({ match: { path: "/v1/**", times: "always" }, action: limited })
      assert.deepStrictEqual(yield* statuses(sim, Array(3).fill(intentForm())), [429, 429, 429])
      yield* sim.faults.clear
      assert.deepStrictEqual(yield* statuses(sim, [intentForm()]), [200])
    }))

  it.effect("by customer and metadata, also of the intent in the path", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const a = yield* created(sim, "&metadata[customer_id]=a")
      const b = yield* created(sim, "&metadata[customer_id]=b")
      yield* sim.faults.add({ match: { customer: "cus_1", metadata: { customer_id: "b" } }, action: limited })
      yield* sim.faults.add({ match: { customer: "cus_2", times: "always" }, action: limited })
      assert.strictEqual((yield* confirm(sim, a)).status, 200)
      assert.strictEqual((yield* confirm(sim, b)).status, 429)
      assert.strictEqual((yield* confirm(sim, b)).status, 200)
    }))

  it.effect("by idempotency key, with a wildcard", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      yield* sim.faults.add({ match: { idempotencyKey: "row.7:*", times: "always" }, action: limited })
      const keyed = (key: string) => Effect.map(raw(sim, intents, { body: intentForm(), key }), ({ status }) => status)
      assert.deepStrictEqual(yield* Effect.forEach(["row.7:create", "row_7:create", "row.8:create"], keyed), [429, 200, 200])
    }))
})
