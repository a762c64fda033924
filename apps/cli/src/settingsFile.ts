/**
 * The settings of a file: `KEY=value` lines, as in a `.env` file, named by `PURSER_CONFIG`. Flags go before the environment,
 * and the environment before the file. A file that is named and cannot be read is an error, and so is a key that is none of ours.
 */
import { Config, ConfigProvider, Effect, FileSystem, Layer, Option } from "effect"
import { refused } from "./CommandFailed.ts"

/** The file's settings behind those that are there. */
export const settingsFile = Layer.effect(
  ConfigProvider.ConfigProvider,
  Effect.gen(function*() {
    const given = yield* ConfigProvider.ConfigProvider
    const path = yield* Config.option(Config.String("PURSER_CONFIG"))
    if (Option.isNone(path)) return given
    const files = yield* FileSystem.FileSystem
    const text = yield* files.readFileString(path.value).pipe(
      Effect.catch((error) => refused(`PURSER_CONFIG: ${path.value} cannot be read: ${error.reason._tag === "NotFound" ? "no such file" : error.message}`))
    )
    const lines = text.split(/\r?\n/)
    for (const [index, line] of lines.entries()) {
      if (/^\s*(?:#|$)/.test(line) || /^\s*(?:export\s+)?PURSER_[A-Z0-9_]+\s*=/.test(line)) continue
      // The line itself is not shown: it may hold a secret.
      return yield* refused(`PURSER_CONFIG: ${path.value}, line ${index + 1}: expected PURSER_…=value, or a comment`)
    }
    return ConfigProvider.orElse(given, ConfigProvider.fromDotEnvContents(text))
  })
)
