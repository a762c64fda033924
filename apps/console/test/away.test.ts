/** A ledger that hangs on connections that are open: nobody waits for it without end, and nobody takes the console for gone. */
import { assert, describe, it } from "@effect/vitest"
import { Attention, ChargePause, EventFeed, SecretText } from "@purser/core"
import { Context, Effect, Exit, Layer, Queue, Stream } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { HttpApiEndpoint } from "effect/http-api"
import { TestClock } from "effect/testing"
import { Access } from "../src/Access.ts"
import { Away } from "../src/api/ConsoleError.ts"
import { Door } from "../src/api/Visitor.ts"
import { layerDoor } from "../src/Guard.ts"
import { LiveFeed } from "../src/LiveFeed.ts"
import { open } from "./support.ts"

/** A connection that is dead hears of no interruption. */
const hanging = Effect.uninterruptible(Effect.never)

/** How a request ends whose handler hangs, looked at after so long. */
const asked = Effect.fnUntraced(function*(method: "GET" | "POST", csrf: string, after: "9 seconds" | "11 seconds" | "109 seconds" | "111 seconds") {
  const door = yield* Door
  const endpoint = method === "GET" ? HttpApiEndpoint.get("look", "/") : HttpApiEndpoint.post("act", "/")
  const request = HttpServerRequest.fromWeb(new Request("http://localhost/", { method, headers: { "x-purser-csrf": csrf } }))
  const fiber = yield* Effect.forkChild(Effect.flip(Effect.provideService(door.cookie(hanging, { endpoint, group: undefined } as never), HttpServerRequest.HttpServerRequest, request)))
  yield* TestClock.adjust(after)
  const exit = fiber.pollUnsafe()
  return exit === undefined ? "waits" : Exit.isSuccess(exit) ? exit.value : exit
}, (asking) => Effect.provide(Effect.scoped(asking), [Layer.succeed(HttpServerRequest.ParsedSearchParams, {}), Layer.succeed(HttpRouter.RouteContext, { params: {}, route: undefined as never })]))

describe("a ledger that hangs", () => {
  it.effect("is away for whoever reads within ten seconds, and for whoever acts before the page gives up", () =>
    Effect.gen(function*() {
      const access = yield* Access
      const visitor = yield* access.identify(HttpServerRequest.fromWeb(new Request("http://localhost/")))
      const csrf = visitor?.csrf ?? ""
      assert.strictEqual(yield* asked("GET", csrf, "9 seconds"), "waits")
      assert.deepInclude(yield* asked("GET", csrf, "11 seconds"), { _tag: "Away", message: "no answer within 10s: the ledger is away" })
      assert.strictEqual(yield* asked("POST", csrf, "109 seconds"), "waits")
      assert.deepInclude(yield* asked("POST", csrf, "111 seconds"), { _tag: "Away", message: "no answer within 1m 50s: the trail and the story say whether it was done" })
      // Who may not come in is told at once.
      const stranger = yield* asked("POST", "x", "9 seconds")
      assert.deepInclude(stranger, { _tag: "NotAllowed" })
    }).pipe(Effect.provide(Layer.provideMerge(layerDoor, Layer.merge(Access.layer(open), SecretText.layer())))))

  it.effect("is told to pages that follow, before they take the console for gone, until it answers again", () =>
    Effect.gen(function*() {
      let isHanging = false
      const none = { unresolved: 0, quarantined: 0, conflicts: 0, deadLetters: 0, unknownObjects: 0 }
      const stores = Layer.mergeAll(
        Layer.mock(Attention, { counts: () => Effect.suspend(() => isHanging ? hanging : Effect.succeed(none)) }),
        Layer.mock(ChargePause, { view: Effect.succeed([]) }),
        Layer.mock(EventFeed, { follow: () => Stream.never })
      )
      const { pulses } = Context.get(yield* Layer.build(Layer.provide(LiveFeed.layer, stores)), LiveFeed)
      const heard = yield* Queue.unbounded<number>()
      const follow = Effect.forkChild(Effect.flip(Stream.runForEach(pulses, ({ atMs }) => Queue.offer(heard, atMs))))
      /** Nine seconds, one by one: what a page waits for is ten. */
      const pass = Effect.forEach(Array.from({ length: 9 }), () => Effect.andThen(Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow), TestClock.adjust("1 second")))
      const first = yield* follow
      yield* Queue.take(heard)
      isHanging = true
      yield* pass
      assert.deepInclude(first.pollUnsafe(), { _tag: "Success", value: new Away({ message: "the ledger has not answered within 5s" }) })
      yield* Queue.clear(heard)
      const second = yield* follow
      yield* pass
      const again = second.pollUnsafe()
      assert.strictEqual(again !== undefined && Exit.isSuccess(again) ? again.value._tag : "waits", "Away")
      // None of what was before is told as if it were of now.
      assert.strictEqual(yield* Queue.size(heard), 0)
      isHanging = false
      yield* follow
      yield* Queue.take(heard)
    }))
})
