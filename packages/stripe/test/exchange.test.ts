/** One connection, and what becomes of those who wait for it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Queue } from "effect"
import { type HttpEnd, type HttpRequest, openOrigin } from "../src/internal/exchange.ts"
import { http, stub } from "./support.ts"

const to = (path: string): HttpRequest => ({ method: "POST", path, headers: { "Idempotency-Key": path }, body: "a=1" })

describe("an exchange", () => {
  it.effect("that is stopped while it waits for its connection is never sent, and tells nothing", () =>
    Effect.gen(function*() {
      const server = yield* stub(({ path, socket }) => path === "/held" ? undefined : socket.write(http(200, { path })))
      const origin = yield* Effect.acquireRelease(Effect.sync(() => openOrigin(new URL(server.url), 1)), ({ close }) => Effect.sync(close))
      const ended = yield* Queue.unbounded<string>()
      const send = (path: string) => origin.send(to(path), (end: HttpEnd) => void Queue.offerUnsafe(ended, `${path} ${"answer" in end ? end.answer.body : "failed"}`))
      send("/held")
      const held = yield* Queue.take(server.arrived)
      const stop = send("/stopped")
      send("/last")
      stop()
      held.socket.write(http(200, { path: "/held" }))
      assert.deepStrictEqual([yield* Queue.take(ended), yield* Queue.take(ended)], ["/held {\"path\":\"/held\"}", "/last {\"path\":\"/last\"}"])
      assert.deepStrictEqual(server.requests.map(({ path }) => path), ["/held", "/last"])
    }))
})
