import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Redacted } from "effect"
import * as Net from "node:net"
import { inspect } from "node:util"
import { Database } from "../src/Database.ts"
import * as Migrations from "../src/Migrations.ts"
import * as TestDatabase from "../src/TestDatabase.ts"
import { temporaryFolder } from "./support/folder.ts"

const failure = (url: string) =>
  Effect.flip(Effect.scoped(Layer.build(Database.layerUrl(Redacted.make(url), { connectTimeout: "2 seconds" }))))

const secret = "p%40ss-w0rd"

const assertSilent = (error: object) => {
  const text = `${inspect(error, { depth: 10 })} ${String(error)} ${JSON.stringify(error)}`
  assert.notInclude(text, secret)
  assert.notInclude(text, "p@ss-w0rd")
}

describe("a database that cannot be used", () => {
  it.live("is DatabaseUnavailable when nobody listens, and may be tried again", () =>
    Effect.gen(function*() {
      const error = yield* failure(`postgres://me:${secret}@127.0.0.1:1/books`)
      assert.strictEqual(error._tag, "DatabaseUnavailable")
      assert.strictEqual(error.database, "postgres://me@127.0.0.1:1/books")
      assert.isTrue(error.isRetryable)
      assertSilent(error)
    }))

  it.live("is DatabaseUnavailable when the server never answers", () =>
    Effect.gen(function*() {
      const server = yield* Effect.acquireRelease(
        Effect.callback<Net.Server>((resume) => {
          const server = Net.createServer()
          server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
        }),
        (server) => Effect.sync(() => server.close())
      )
      const { port } = server.address() as Net.AddressInfo
      const error = yield* failure(`postgres://me:${secret}@127.0.0.1:${port}/books`)
      assert.match(error.message, /timed out/)
      assertSilent(error)
    }))

  it.live("is DatabaseUnavailable for a wrong password or database, and is not to be tried again", () =>
    Effect.gen(function*() {
      const good = new URL(Redacted.value(yield* TestDatabase.postgresUrl))
      const wrongPassword = new URL(good)
      wrongPassword.password = secret
      const wrongDatabase = new URL(good)
      wrongDatabase.pathname = "/absent"
      for (const url of [wrongPassword, wrongDatabase]) {
        const error = yield* failure(url.href)
        assert.strictEqual(error._tag, "DatabaseUnavailable")
        assert.isFalse(error.isRetryable)
        assert.match(error.detail, /authentication failed|does not exist/)
        assertSilent(error)
        assert.notInclude(error.message, decodeURIComponent(good.password))
      }
    }))

  it.live("is DatabaseUnavailable for a text that is no URL, without repeating it", () =>
    Effect.gen(function*() {
      for (const url of [`mysql://me:${secret}@host/db`, `postgres://me:${secret}@host:port/db`, secret]) {
        const error = yield* failure(url)
        assert.strictEqual(error._tag, "DatabaseUnavailable")
        assertSilent(error)
      }
    }))
})

describe("Database.layerConfig", () => {
  const open = (settings: Readonly<Record<string, string>>) =>
    Effect.provide(Effect.all({ database: Database, version: Migrations.schemaVersion }), Layer.provide(Database.layerConfig, ConfigProvider.layer(ConfigProvider.fromUnknown(settings))))

  it.live("takes the server when there is a URL, and gives it the schema unless told otherwise", () =>
    Effect.gen(function*() {
      const url = Redacted.value(yield* TestDatabase.postgresUrlEmpty)
      const settings = { PURSER_DATABASE_URL: url, PURSER_DATABASE_POOL: "2" }
      const { database: { kind, label }, version } = yield* open({ ...settings, PURSER_MIGRATE: "off" })
      assert.strictEqual(kind, "postgres")
      assert.notInclude(label, new URL(url).password)
      assert.strictEqual(version, 0)
      assert.strictEqual((yield* open(settings)).version, Migrations.codeVersion)
    }))

  it.live("else takes the folder, with fsync off if so told", () =>
    Effect.gen(function*() {
      const dataDir = yield* temporaryFolder
      const { database: { kind, label }, version } = yield* open({ PURSER_DATA_DIR: dataDir, PURSER_PGLITE_FSYNC: "off" })
      assert.strictEqual(version, Migrations.codeVersion)
      assert.strictEqual(kind, "pglite")
      assert.strictEqual(label, `pglite in ${dataDir}`)
    }))

  it.live("refuses a pool of no connections", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(open({ PURSER_DATABASE_POOL: "0" }))
      assert.strictEqual(error._tag, "ConfigError")
    }))
})
