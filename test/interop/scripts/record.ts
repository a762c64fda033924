/** Records what `peers/plain.py` sends on each pattern into `fixtures/`: run it again when the program changes. */
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { live, patterns, python } from "../src/PyzmqPeer.ts"
import { Shop } from "../src/Shop.ts"
import { freeAddress, servePlain } from "../src/sockets.ts"

await Effect.runPromise(Effect.scoped(Effect.gen(function*() {
  if (python === undefined) return yield* Effect.die(new Error("no Python here has pyzmq"))
  const shop = yield* Shop
  for (const pattern of patterns) {
    const addresses = { endpoint: yield* freeAddress, ackEndpoint: yield* freeAddress }
    yield* servePlain(pattern, addresses, shop.serve)
    const { sent } = yield* live(python, pattern, addresses)
    writeFileSync(new URL(`../fixtures/${pattern}.json`, import.meta.url), `${JSON.stringify({ program: "peers/plain.py", pattern, sent }, null, 2)}\n`)
  }
})).pipe(Effect.provide(Shop.layer)))
