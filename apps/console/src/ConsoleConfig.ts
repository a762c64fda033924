/** The console's settings, and what is refused: no door without a lock where others pass. */
import { Config, Effect, Option, Redacted, Schema } from "effect"
import { userInfo } from "node:os"
import type { AccessOptions } from "./Access.ts"

/** A setting that would let strangers in, or that is none. */
export class ConsoleConfigError extends Schema.TaggedError<ConsoleConfigError>("@purser/console/ConsoleConfigError")("ConsoleConfigError", {
  setting: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `${this.setting}: ${this.detail}`
  }
  get isRetryable() {
    return false
  }
}

/** Where it listens and who comes in. */
export interface ConsoleSettings {
  readonly host: string
  readonly port: number
  readonly access: AccessOptions
}

/** What the command line says over the settings. */
export interface ConsoleFlags {
  readonly host?: string | undefined
  readonly port?: number | undefined
  readonly readOnly?: boolean | undefined
  /** Who acts where nobody signs in. */
  readonly actor?: string | undefined
}

/** Short tokens can be guessed. */
const tokenMin = 16

const settings = Config.all({
  host: Config.NonEmptyString("PURSER_CONSOLE_HOST").pipe(Config.withDefault("127.0.0.1")),
  port: Config.schema(Schema.FiniteFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 0, maximum: 65_535 })), "PURSER_CONSOLE_PORT").pipe(Config.withDefault(4280)),
  token: Config.option(Config.Redacted("PURSER_CONSOLE_TOKEN")),
  viewerToken: Config.option(Config.Redacted("PURSER_CONSOLE_VIEWER_TOKEN")),
  readOnly: Config.Boolean("PURSER_CONSOLE_READ_ONLY").pipe(Config.withDefault(false)),
  allowPlain: Config.Boolean("PURSER_CONSOLE_ALLOW_PLAIN").pipe(Config.withDefault(false)),
  publicUrl: Config.option(Config.URL("PURSER_CONSOLE_PUBLIC_URL"))
})

const isLoopback = (host: string): boolean => host === "localhost" || host === "::1" || host === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(host)

const refuse = (setting: string, detail: string) => Effect.fail(new ConsoleConfigError({ setting, detail }))

const userName = Effect.orElseSucceed(Effect.try(() => userInfo().username), () => "operator")

/** The settings in force. */
export const consoleSettings = Effect.fnUntraced(function*(flags: ConsoleFlags): Effect.fn.Return<ConsoleSettings, Config.ConfigError | ConsoleConfigError> {
  const read = yield* settings
  const host = flags.host ?? read.host
  const port = flags.port ?? read.port
  const readOnly = flags.readOnly === true || read.readOnly
  const given = [["PURSER_CONSOLE_TOKEN", read.token], ["PURSER_CONSOLE_VIEWER_TOKEN", read.viewerToken]] as const
  for (const [setting, token] of given) {
    if (Option.isSome(token) && Redacted.value(token.value).length < tokenMin) return yield* refuse(setting, `a token has at least ${tokenMin} characters`)
  }
  if (Option.isSome(read.token) && Option.isSome(read.viewerToken) && Redacted.value(read.token.value) === Redacted.value(read.viewerToken.value)) {
    return yield* refuse("PURSER_CONSOLE_VIEWER_TOKEN", "it is the text of PURSER_CONSOLE_TOKEN: whoever is to look could act")
  }
  const isLocked = Option.isSome(read.token) || Option.isSome(read.viewerToken)
  const publicUrl = Option.getOrUndefined(read.publicUrl)
  if (publicUrl !== undefined) {
    if (publicUrl.protocol !== "https:") return yield* refuse("PURSER_CONSOLE_PUBLIC_URL", "it is where browsers find the console behind TLS, and begins with https://")
    if (!isLocked) return yield* refuse("PURSER_CONSOLE_TOKEN", `at ${publicUrl.origin} others come by: a token is needed`)
  }
  const hosts = ["localhost", "127.0.0.1", "[::1]", host.toLowerCase()]
  if (!isLoopback(host)) {
    if (!isLocked) return yield* refuse("PURSER_CONSOLE_TOKEN", `on ${host} others come by: a token is needed`)
    if (!read.allowPlain) {
      return yield* refuse("PURSER_CONSOLE_HOST", `plain http on ${host} would show tokens to the network; put TLS in front of a loopback address, or set PURSER_CONSOLE_ALLOW_PLAIN=true`)
    }
  }
  return {
    host,
    port,
    access: {
      // A console that only looks has no operator, whatever token is shown.
      operatorToken: readOnly ? undefined : Option.getOrUndefined(read.token),
      viewerToken: Option.getOrUndefined(readOnly && Option.isNone(read.viewerToken) ? read.token : read.viewerToken),
      open: isLocked ? undefined : { actor: flags.actor ?? (yield* userName), role: readOnly ? "viewer" : "operator" },
      secureCookie: publicUrl !== undefined,
      hosts: publicUrl !== undefined ? [...hosts, publicUrl.hostname] : isLocked ? undefined : hosts
    }
  }
})
