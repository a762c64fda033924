/** What several tests of this package need. */
import { Effect } from "effect"
import { createServer } from "node:net"

/** A port of the loopback that nothing listens on just now. */
export const freePort: Effect.Effect<number> = Effect.callback((resume) => {
  const server = createServer()
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    server.close(() => resume(typeof address === "object" && address !== null ? Effect.succeed(address.port) : Effect.die("no port")))
  })
})
