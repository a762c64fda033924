/** `purser proxy` as processes, vaults, and plain requests as naive clients make them. */
import { type NewVault, VaultAdmin, VaultDesk } from "@purser/spend-cap-proxy"
import { ConfigProvider, Data, Effect, Layer, Redacted } from "effect"
import { request } from "node:http"
import { start } from "./Purser.ts"

/** The real key; only proxies are given it. */
export const realKey = "rk_test_onlytheproxyknows"

/** The environment of a proxy and of `purser vault`, from the environment of a store. */
export const proxyEnv = (store: Readonly<Record<string, string>>, upstream: string): Record<string, string> => ({
  PURSER_PROXY_STRIPE_KEY: realKey,
  PURSER_PROXY_UPSTREAM: upstream,
  PURSER_PROXY_PGLITE_FSYNC: "off",
  ...(store["PURSER_DATABASE_URL"] === undefined ? {} : { PURSER_PROXY_DATABASE_URL: store["PURSER_DATABASE_URL"] }),
  ...(store["PURSER_DATA_DIR"] === undefined ? {} : { PURSER_PROXY_DATA_DIR: store["PURSER_DATA_DIR"] })
})

/** Starts a proxy and waits until it listens. */
export const startProxy = Effect.fnUntraced(function*(env: Readonly<Record<string, string>>) {
  const running = yield* start(["proxy", "--port", "0"], env)
  const said = yield* running.says("store ")
  const url = /proxy on (http:\/\/127\.0\.0\.1:\d+)/.exec(said)![1]!
  return { ...running, url }
})

/** `purser vault` without its process: the same acts on the same store, or through the proxy that has its folder open. */
const desk = <A, E>(env: Readonly<Record<string, string>>, act: (admin: VaultAdmin["Service"]) => Effect.Effect<A, E>) =>
  Effect.flatMap(VaultAdmin, act).pipe(
    Effect.provide(Layer.fresh(VaultDesk.layerAdmin)),
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown(env)),
    Effect.orDie
  )

/** Makes a vault for 2026-07 in usd; answers its id and key. */
export const createVault = (env: Readonly<Record<string, string>>, expectedMinor: number, more: Partial<NewVault> = {}) =>
  Effect.map(
    desk(env, (admin) =>
      admin.create({
        name: "", billingPeriod: "2026-07", currency: "usd", expectedMinor, headroomPercent: 110, allow: [], customers: null, maxPerChargeMinor: null, maxCalls: null,
        expiresAtMs: null, duplicateGuard: false, ...more
      })),
    ({ key, vault }) => ({ id: vault.id, key: Redacted.value(key) })
  )

/** A vault's figures. */
export const vaultOf = (env: Readonly<Record<string, string>>, id: string) =>
  Effect.map(desk(env, (admin) => admin.show(id)), ({ heldMinor, paidMinor }) => ({ heldMinor, paidMinor }))

/** What a client gets. */
export interface Got {
  readonly status: number
  readonly code: string | undefined
  readonly headers: Readonly<Record<string, string | Array<string> | undefined>>
  readonly json: any
}

/** The connection broke. */
export class Broken extends Data.TaggedError("Broken")<{ readonly code: string }> {}

/** One POST of a form. */
export const post = (url: string, path: string, vaultKey: string, key: string, form: string): Effect.Effect<Got, Broken> =>
  Effect.callback((resume) => {
    const broken = (error: NodeJS.ErrnoException) => resume(Effect.fail(new Broken({ code: error.code ?? error.message })))
    const outgoing = request(new URL(path, url), {
      method: "POST", agent: false,
      headers: { authorization: `Bearer ${vaultKey}`, "idempotency-key": key, "content-type": "application/x-www-form-urlencoded" }
    }, (response) => {
      let text = ""
      response.on("data", (chunk) => text += String(chunk))
      response.on("error", broken)
      response.on("end", () => {
        const json = text.startsWith("{") ? JSON.parse(text) : undefined
        resume(Effect.succeed({ status: response.statusCode ?? 0, code: json?.error?.code, headers: response.headers, json }))
      })
    })
    outgoing.on("error", broken)
    outgoing.end(form)
    return Effect.sync(() => outgoing.destroy())
  })

/** A charge as a naive client writes it. */
export const chargeForm = (customer: string, amountMinor: number) =>
  `amount=${amountMinor}&currency=usd&customer=cus_${customer}&metadata[customer_id]=${customer}&metadata[billing_period]=2026-07`

/** A charge. */
export const charge = (url: string, vaultKey: string, key: string, customer: string, amountMinor: number) =>
  post(url, "/v1/charges", vaultKey, key, chargeForm(customer, amountMinor))
