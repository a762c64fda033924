// #region
import { Console, layerConsole } from "@purser/console"
import { Effect, ManagedRuntime } from "effect"

// The server knows who it is: `identify` answers with the actor and what they may do.
const runtime = ManagedRuntime.make(layerConsole({
  identify: (request) => Effect.succeed(request.headers["x-user"] === undefined ? undefined : { actor: request.headers["x-user"], role: "operator" }),
  secureCookie: true
}))
const handle = await runtime.runPromise(Console.webHandler("/purser"))
// Give every request under /purser/ to `handle`: (request: Request) => Promise<Response>
// #endregion

console.log((await handle(new Request("http://127.0.0.1/purser/api/attention"))).status)
await runtime.dispose()
