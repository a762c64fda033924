/** What the program is started in: an older Node, and a package manager that stands in for the file system. */
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import { open } from "node:fs/promises"
import { join } from "node:path"
import { Database } from "../src/Database.ts"
import { tooOld } from "../src/internal/nodeVersion.ts"
import { temporaryFolder } from "./support/folder.ts"

const root = join(import.meta.dirname, "../../..")

/** The process says that it is this Node until the scope closes. */
const runningOn = (node: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const versions = process.versions
      Object.defineProperty(process, "versions", { value: { ...versions, node }, configurable: true })
      return versions
    }),
    (versions) => Effect.sync(() => Object.defineProperty(process, "versions", { value: versions, configurable: true }))
  )

it("a Node is too old where the manifests say so", () => {
  const engines = ["packages", "apps"].flatMap((parent) => readdirSync(join(root, parent)).map((name) => JSON.parse(readFileSync(join(root, parent, name, "package.json"), "utf8")).engines.node as string))
  assert.isAbove(engines.length, 10)
  assert.deepStrictEqual([...new Set(engines)], [">=22.19"])
  assert.deepStrictEqual(["22.19.0", "22.20.1", "24.0.0", "26.1.0"].map(tooOld), [undefined, undefined, undefined, undefined])
  assert.deepStrictEqual(["18.19.1", "20.20.2", "22.18.0"].map(tooOld), ["18.19.1", "20.20.2", "22.18.0"].map((had) => `Purser needs Node 22.19 or newer, and this is Node ${had}`))
})

it.effect("says which Node it needs before it tries anything", () =>
  Effect.gen(function*() {
    yield* runningOn("20.20.2")
    const dataDir = yield* temporaryFolder
    const ways = [Database.layerEmbedded({ dataDir }), Database.layerMemory, Database.layerUrl(Redacted.make("postgres://nobody@127.0.0.1:1/none"))]
    for (const way of ways) {
      const error = yield* Effect.flip(Layer.build(way))
      assert.match(error.message, /is not available: Purser needs Node 22\.19 or newer, and this is Node 20\.20\.2$/)
    }
    assert.deepStrictEqual(readdirSync(dataDir), [])
  }).pipe(Effect.scoped))

it.live("a new folder is flushed where a handle of a file cannot be, as under yarn's Plug'n'Play", () =>
  Effect.gen(function*() {
    const dataDir = yield* temporaryFolder
    const handle = yield* Effect.promise(() => open(import.meta.filename))
    yield* Effect.promise(() => handle.close())
    const handles = Object.getPrototypeOf(handle) as { sync: () => Promise<void> }
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        const sync = handles.sync
        handles.sync = () => Promise.reject(new Error("Method not implemented."))
        return sync
      }),
      (sync) => Effect.sync(() => void (handles.sync = sync))
    )
    yield* Layer.build(Database.layerEmbedded({ dataDir }))
    assert.include(readdirSync(dataDir), "db")
  }).pipe(Effect.scoped), 60_000)
