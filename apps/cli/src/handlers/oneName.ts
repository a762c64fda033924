/** One name for everything that a process does, in leases, on the event trail and in the workers' book. */
import { PipelineOptions } from "@purser/engine"
import { PgWorkerBook } from "@purser/postgres"
import { ConfigProvider, Effect, Layer, Random } from "effect"
import { hostname } from "node:os"
import { version } from "../version.ts"

/** The name of the settings, else this beginning and a random end. */
export const oneName = (beginning: string) =>
  Layer.effect(
    ConfigProvider.ConfigProvider,
    Effect.gen(function*() {
      const given = yield* ConfigProvider.ConfigProvider
      const suffix = (yield* Random.nextIntBetween(0, 2 ** 32)).toString(16).padStart(8, "0")
      return ConfigProvider.orElse(given, ConfigProvider.fromUnknown({ PURSER_WORKER: `${beginning}-${suffix}` }))
    })
  )

/** Introduces this process to the workers' book, and says that it lives until the scope ends. */
export const beating = (serves: string) =>
  Effect.gen(function*() {
    const { worker } = yield* PipelineOptions.fromConfig
    yield* Layer.build(PgWorkerBook.layerBeat({ worker, host: hostname(), pid: process.pid, serves, version }))
  })
