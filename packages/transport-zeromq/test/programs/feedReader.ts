/** Follows a feed from its beginning and prints a line for each notice. Arguments: endpoint, replay endpoint. */
import { ZmqEventFeed } from "@purser/transport-zeromq"
import { Console, Effect, Stream } from "effect"

const [endpoint, replayEndpoint] = process.argv.slice(2)

await Effect.runPromise(
  ZmqEventFeed.follow({ _tag: "Beginning" }, { endpoint, replayEndpoint, pageMax: 64, replayTimeout: "2 seconds", socket: { highWaterMark: 5, reconnectMs: 10, reconnectMaxMs: 50 } }).pipe(
    Stream.runForEach((notice) =>
      Console.log(notice._tag, notice._tag === "Event" ? notice.event.sequence : notice._tag === "Lagged" ? `${notice.reason} ${notice.after} ${notice.to}` : ""))
  )
)
