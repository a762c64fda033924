import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { Database } from "../src/Database.ts"
import { EmbeddedPostgres } from "../src/EmbeddedPostgres.ts"
import { accountOf } from "../src/internal/postgresBinaries.ts"
import { startProgram } from "./support/program.ts"

const isAlive = (pid: number) => Fs.existsSync(`/proc/${pid}`) || process.platform !== "linux"

describe("EmbeddedPostgres", () => {
  it.live("serves while its scope is open, and ends a server whose starter was killed", () =>
    Effect.gen(function*() {
      const orphaned = yield* startProgram("startServer.ts")
      const folder = yield* orphaned.line
      const orphan = Number(Fs.readFileSync(Path.join(folder, "data/postmaster.pid"), "utf8").split("\n")[0])
      yield* orphaned.kill
      assert.isTrue(isAlive(orphan))

      const server = EmbeddedPostgres.layer
      const database = Layer.unwrap(Effect.map(EmbeddedPostgres, ({ url }) => Database.layerUrl(url))).pipe(Layer.provide(server))
      const { version } = yield* Effect.provide(Database, database)
      assert.match(version, /^18\./)
      assert.isFalse(Fs.existsSync(folder))
    }), 60_000)

  it("runs as postgres, else as nobody, and as nobody else's root", () => {
    const root = "root:x:0:0:root:/root:/bin/bash"
    const nobody = "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin"
    assert.deepStrictEqual(accountOf([root, nobody, "postgres:x:101:104::/var:/bin/sh"].join("\n")), { uid: 101, gid: 104 })
    assert.deepStrictEqual(accountOf([root, nobody].join("\n")), { uid: 65534, gid: 65534 })
    assert.deepStrictEqual(accountOf([root, "nobody:*:-2:-2::/:/bin/false", "daemon:*:1:1::/:/bin/false"].join("\n")), { uid: 1, gid: 1 })
    assert.strictEqual(accountOf(root), undefined)
  })
})
