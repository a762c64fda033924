/** A page that stays open while its console is started again, and what makes the proofs of two consoles the same. */
import { assert, describe, it } from "@effect/vitest"
import { ChargePause } from "@purser/core"
import { Context, Effect, Layer, Redacted } from "effect"
import { vi } from "vitest"
import type { Session } from "../src/api/Shapes.ts"
import { Console } from "../src/Console.ts"
import { call, remember, renew, runtime } from "../web/client.ts"
import { locked, open, world } from "./support.ts"
import type { AccessOptions } from "../src/Access.ts"

/** A console that was just started. */
const started = (access: AccessOptions) =>
  Effect.gen(function*() {
    const context = yield* Layer.build(Layer.fresh(world(access)))
    const answer = yield* Effect.provide(Console.webHandler(""), context)
    return { answer, pause: Context.get(context, ChargePause) }
  })

describe("a page whose console is started again", () => {
  it.live("acts with the new console's proof, once, and asks for a sign-in where nobody knows it", () =>
    Effect.scoped(Effect.gen(function*() {
      const [first, second, stranger] = [yield* started(open), yield* started(open), yield* started(locked)]
      let now = first
      const asked: Array<string> = []
      vi.stubGlobal("document", { baseURI: "http://localhost/" })
      vi.stubGlobal("fetch", (url: URL | string, init: RequestInit) => {
        const request = new Request(url, init)
        request.headers.set("host", "localhost")
        asked.push(`${request.method} ${new URL(request.url).pathname}`)
        return now.answer(request)
      })
      yield* Effect.addFinalizer(() => Effect.sync(() => vi.unstubAllGlobals()))
      const told: Array<string> = []
      const tell = { renewed: ({ csrf }: Session) => void told.push(csrf ?? ""), stranger: () => void told.push("stranger") }
      const session = yield* Effect.promise(() => call((client) => client.session.get()))
      assert.isTrue(session.ok)
      const old = session.ok ? session.value : null
      remember(old, tell)
      const stop = Effect.promise(() => call((client) => client.runs.pauseCharging({ payload: { reason: "a drill" } })))
      now = second
      asked.length = 0
      const done = yield* stop
      assert.deepStrictEqual(done.ok, true, JSON.stringify(done))
      assert.deepStrictEqual(asked, ["POST /api/charging/pause", "GET /api/session", "POST /api/charging/pause"])
      assert.deepStrictEqual((yield* second.pause.inForce).map(({ reason }) => reason), ["a drill"])
      assert.deepStrictEqual([told.length, told[0] === old?.csrf], [1, false])
      // A reconnect reads the session before anything is acted on: the act goes through at once.
      now = first
      yield* Effect.promise(() => runtime.runPromise(renew))
      asked.length = 0
      assert.isTrue((yield* stop).ok)
      assert.deepStrictEqual(asked, ["POST /api/charging/pause"])
      now = stranger
      told.length = 0
      yield* Effect.promise(() => runtime.runPromiseExit(renew))
      assert.deepStrictEqual(told, ["stranger"])
    })), 60_000)

  it.live("keeps its proof where the consoles share a secret", () =>
    Effect.scoped(Effect.gen(function*() {
      const proof = Effect.fnUntraced(function*(access: AccessOptions) {
        const { answer } = yield* started(access)
        const response = yield* Effect.promise(() => answer(new Request("http://localhost/api/session", { headers: { host: "localhost" } })))
        return ((yield* Effect.promise(() => response.json())) as Session).csrf
      })
      const shared = { ...open, proofSecret: Redacted.make("0123456789abcdef0123456789abcdef") }
      const [one, same, other] = [yield* proof(shared), yield* proof(shared), yield* proof(open)]
      assert.strictEqual(one, same)
      assert.notStrictEqual(one, other)
    })), 60_000)
})
