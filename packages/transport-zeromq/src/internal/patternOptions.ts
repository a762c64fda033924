/** Reading the settings that the patterns have in common. */
import { Closed, TransportError, Wire } from "@purser/core"
import { Config, Duration, Effect, Option } from "effect"
import { type Endpoint, parseEndpoints } from "../Endpoint.ts"
import { defaultEndpoint, type PatternOptions, type WindowClientOptions } from "../PatternOptions.ts"
import { defaultSocketSettings, type SocketSettings } from "../SocketSettings.ts"

/** What errors call a list of addresses. */
export const labelOf = (endpoints: ReadonlyArray<Endpoint>) => endpoints.map(({ address }) => address).join(",")

/** Milliseconds of a duration. */
export const millis = (input: Duration.Input) => Duration.toMillis(Duration.fromInputUnsafe(input))

/** The settings of a side's sockets. */
export const settingsOf = (options: PatternOptions): SocketSettings => ({ ...defaultSocketSettings, ...options.socket })

/** A setting that may be left out. */
export const given = <A>(config: Config.Config<A>): Config.Config<A | undefined> => Config.map(Config.option(config), Option.getOrUndefined)

/** Options that every socket has alike. */
export const commonOptions = (settings: SocketSettings) => ({
  heartbeatInterval: settings.heartbeatIntervalMs,
  heartbeatTimeout: settings.heartbeatTimeoutMs,
  heartbeatTimeToLive: settings.heartbeatTimeoutMs,
  reconnectInterval: settings.reconnectMs,
  reconnectMaxInterval: settings.reconnectMaxMs,
  maxMessageSize: settings.messageMaxBytes,
  tcpKeepalive: 1
} as const)

/** The codec that was given, or the configuration's. */
export const wireOf = (options: PatternOptions) => options.wire === undefined ? Wire.fromConfig : Effect.succeed(options.wire)

/** Whether addresses that other machines reach may be used: they are encrypted, or the operator allows them to be plain. */
export const mayBeRemote = (options: PatternOptions): boolean => options.allowPlain === true || options.socket?.curve !== undefined

/** The addresses of a side that attaches so unless they say otherwise. */
export const readEndpoints = (options: PatternOptions, attach: Endpoint["attach"]) =>
  Effect.fromResult(parseEndpoints(options.endpoint ?? defaultEndpoint, { attach, allowPlain: mayBeRemote(options) }))

/** A client that cannot work as configured. */
export const unusable = (endpoint: string, detail: string) => new TransportError({ reason: new Closed({ endpoint, detail }), chargeKey: null })

/** Limits of a window, read from a client's options. */
export const windowOf = (options: WindowClientOptions) => ({
  window: Math.max(1, options.window ?? 1000),
  whenFull: options.whenFull ?? "wait",
  silencesMax: Math.max(1, options.silencesMax ?? 3)
})

