/**
 * A client in Python: Stripe's SDK where this machine has it, else Python's own HTTP, else the same two calls from here.
 * Whoever speaks, the same must come out.
 */
import { assert, describe, it } from "@effect/vitest"
import { Database } from "@purser/postgres"
import { ProxyDatabase, ProxyServer } from "@purser/spend-cap-proxy"
import { Effect } from "effect"
import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { chargeForm, makeVault, paid, raw, world } from "./support/world.ts"

const python = "/usr/bin/python3"
const script = fileURLToPath(new URL("fixtures/charge.py", import.meta.url))

describe("a client in Python", () => {
  it.live("charges with a vault key, and gets a typed refusal over the cap", () =>
    Effect.gen(function*() {
      const proxy = yield* ProxyServer
      const { key } = yield* makeVault()
      const speak = existsSync(python)
        ? Effect.callback<Record<string, unknown>>((resume) => {
          execFile(python, [script, proxy.url, key], (error, stdout, stderr) =>
            resume(error === null ? Effect.succeed(JSON.parse(stdout)) : Effect.die(new Error(stderr))))
        })
        : Effect.gen(function*() {
          const first = yield* raw(proxy, "/v1/charges", { vaultKey: key, key: "py-1", body: chargeForm(1000) })
          const { json, status } = yield* raw(proxy, "/v1/charges", { vaultKey: key, key: "py-2", body: chargeForm(200) })
          return { via: "node", first: first.json.status, raised: "PermissionError", status, code: json.error.code, type: json.error.type }
        })
      const { via, ...seen } = yield* speak
      assert.include(["stripe", "urllib", "node"], via)
      assert.deepStrictEqual(seen, { first: "succeeded", raised: "PermissionError", status: 403, code: "spend_cap_exceeded", type: "invalid_request_error" })
      assert.deepStrictEqual(yield* paid, { payments: 1, amountMinor: 1000 })
    }).pipe(Effect.provide(world(ProxyDatabase.migrated(Database.layerMemory)))), 60_000)
})
