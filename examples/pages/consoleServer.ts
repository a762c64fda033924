// #region
import { Console, layerConsole } from "@purser/console"
import { Effect, ManagedRuntime } from "effect"

const runtime = ManagedRuntime.make(layerConsole({
  // Your server knows who it is; undefined for a stranger.
  identify: (request) => Effect.succeed(request.headers["x-user"] === undefined ? undefined : { actor: request.headers["x-user"], role: "operator" }),
  secureCookie: true
}))
const handle = await runtime.runPromise(Console.webHandler("/purser")) // (request: Request) => Promise<Response>
// #endregion

console.log((await handle(new Request("http://127.0.0.1/purser/api/attention"))).status)
await runtime.dispose()
