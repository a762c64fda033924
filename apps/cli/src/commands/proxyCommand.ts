/** The flags of `purser proxy`. */
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { inTelemetry } from "./inTelemetry.ts"
import { portFlag } from "./portFlag.ts"

/** `purser proxy` */
export const proxyCommand = Command.make("proxy", {
  host: Flag.String("host").pipe(Flag.withDescription("Where to listen (default: PURSER_PROXY_HOST, else 127.0.0.1)"), Flag.optional),
  port: portFlag.pipe(Flag.withDescription("The port; 0 takes a free one (default: PURSER_PROXY_PORT, else 12112)"), Flag.optional)
}, Effect.fnUntraced(function*(given) {
  const { proxy } = yield* Effect.promise(() => import("../handlers/proxy.ts"))
  return yield* inTelemetry("proxy", proxy({ host: Option.getOrUndefined(given.host), port: Option.getOrUndefined(given.port) }))
})).pipe(
  Command.withDescription("Serve the spend-cap proxy: vault keys in place of a Stripe key, and never more than the cap"),
  Command.withExamples([
    { command: "PURSER_PROXY_STRIPE_KEY=rk_live_… purser proxy", description: "In front of Stripe, with an embedded store of its own" },
    { command: "PURSER_PROXY_DATABASE_URL=postgres://… purser proxy --port 12113", description: "One of several proxies over one PostgreSQL store" }
  ])
)
