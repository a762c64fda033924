/** Log lines of the command, on standard error: for people, or one JSON object or logfmt line each for machines. */
import { Tracing } from "@purser/core"
import { Config, Console, Effect, Formatter, Layer, Logger, References } from "effect"
import { format as formatted } from "node:util"
import { Notes } from "./ui/Notes.ts"
import { Screen } from "./ui/Screen.ts"

const settings = Config.all({
  level: Config.LogLevel("PURSER_LOG_LEVEL").pipe(Config.withDefault("Warn" as const)),
  format: Config.Literals(["pretty", "json", "logfmt"], "PURSER_LOG_FORMAT").pipe(Config.withDefault("pretty" as const))
})

/** Effect's own fields, and the trace in which the line was written. */
const json = Logger.withConsoleError(Logger.make((options) => {
  const span = Tracing.spanOf(options.fiber)
  return Formatter.formatJson({ ...Logger.formatStructured.log(options), ...(span === undefined ? {} : { traceId: span.traceId, spanId: span.spanId }) })
}))

const loggers = { pretty: Logger.consolePretty(), json, logfmt: Logger.withConsoleError(Logger.formatLogFmt) } as const

/** Lines go above whatever is drawn again and again. */
const console = Layer.effect(Console.Console, Effect.map(Screen, ({ print }): Console.Console => {
  let indent = ""
  return {
    ...globalThis.console,
    error: (...args) => print(formatted(...args).replaceAll(/^/gm, indent)),
    group: () => void (indent += "  "),
    groupEnd: () => void (indent = indent.slice(2))
  }
}))

/** What a command says is part of a log that machines read, whatever the level of the rest. */
const notes = Layer.succeed(Notes, (text: string) => Effect.provideService(Effect.logInfo(text), References.MinimumLogLevel, "Info"))

/** By `PURSER_LOG_LEVEL` and `PURSER_LOG_FORMAT`. */
export const logging = Layer.unwrap(Effect.map(settings, ({ format, level }) =>
  Layer.mergeAll(
    Logger.layer([loggers[format]]),
    Layer.succeed(Logger.LogToStderr, true),
    Layer.succeed(References.MinimumLogLevel, level),
    console,
    format === "pretty" ? Layer.empty : notes
  )))
