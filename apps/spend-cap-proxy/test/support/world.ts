/** What the tests share: a simulator, a store, a proxy in between, the real SDK, and requests with nothing between them and the socket. */
import { Database, type DatabaseServices } from "@purser/postgres"
import { layerPostgresEmpty } from "@purser/postgres/TestDatabase"
import { type NewVault, ProxyDatabase, type ProxyOptions, ProxyServer, VaultAdmin, VaultStore } from "@purser/spend-cap-proxy"
import { StripeSim, type StripeSimOptions } from "@purser/stripe-sim"
import { Data, Effect, Exit, Layer, Redacted, Scope } from "effect"
import { request as httpRequest } from "node:http"
import { Stripe } from "stripe"
import { afterAll } from "@effect/vitest"

/** The key that only the proxy knows. */
export const realKey = "rk_test_realkeyofthetests"

/** A vault of 10.00 usd expected, 11.00 at the most, unless told. */
export const newVault = (more: Partial<NewVault> = {}): NewVault => ({
  name: "test", billingPeriod: "2026-07", currency: "usd", expectedMinor: 1000, headroomPercent: 110, allow: [], customers: null,
  maxPerChargeMinor: null, maxCalls: null, duplicateGuard: false, expiresAtMs: null, separateReason: "each test has a cap of its own", ...more
})

/** One database for all tests of a file, each of which has a vault of its own: opening one takes longer than most of them. */
const once = <E>(database: Layer.Layer<DatabaseServices, E>): Layer.Layer<DatabaseServices, E> => {
  const scope = Scope.makeUnsafe()
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  return Layer.effectContext(Effect.runSync(Effect.cached(Layer.buildWithScope(database, scope))))
}

/** Both kinds of store. */
export const databases = [
  ["pglite", once(ProxyDatabase.migrated(Database.layerMemory))],
  ["postgres", once(ProxyDatabase.migrated(layerPostgresEmpty))]
] as const

/** A proxy in front of the simulator of the context. */
export const proxyLayer = (options: Partial<ProxyOptions> = {}) =>
  Layer.unwrap(Effect.map(StripeSim, (sim) =>
    ProxyServer.layer({ stripeKey: Redacted.make(realKey), upstream: sim.url, port: 0, ...options })))

/** Simulator, store and proxy. */
export const world = <E>(database: Layer.Layer<DatabaseServices, E>, sim: StripeSimOptions = {}) =>
  proxyLayer().pipe(
    Layer.provideMerge(Layer.merge(VaultStore.layer, VaultAdmin.layer)),
    Layer.provideMerge(database),
    Layer.provideMerge(StripeSim.layer(sim))
  )

/** Makes a vault and answers its id and key. */
export const makeVault = Effect.fnUntraced(function*(more: Partial<NewVault> = {}) {
  const { key, vault } = yield* (yield* VaultAdmin).create(newVault(more))
  return { id: vault.id, key: Redacted.value(key) }
})

/** Waits until what this process has answered is written down: a decision, here about a key that is none, comes after it. */
export const settled = Effect.flatMap(VaultStore, (store) =>
  store.decide({
    vaultKey: Redacted.make("none"), kind: "read", method: "GET", path: "/v1/charges", key: null, fingerprint: null, amountMinor: null, currency: null, customer: null,
    period: null, account: "", intentId: null, body: null, fetched: false, problem: null
  }))

/** The audit trail of a vault. */
export const trailOf = (vault: string) =>
  Effect.andThen(settled, Effect.flatMap(VaultAdmin, (admin) => admin.log({ vault, after: 0, limit: 1000 })))

/** What a vault has used. */
export const used = (id: string) =>
  Effect.map(Effect.andThen(settled, Effect.flatMap(VaultAdmin, (admin) => admin.show(id))), ({ calls, heldMinor, paidMinor, payments }) => ({ heldMinor, paidMinor, payments, calls }))

/** All that was paid, by the simulator's books. */
export const paid = Effect.map(Effect.flatMap(StripeSim, (sim) => sim.books), (books) => ({
  payments: books.reduce((sum, entry) => sum + entry.payments, 0),
  amountMinor: books.reduce((sum, entry) => sum + entry.amountMinor, 0)
}))

/** Stripe's SDK with a vault key at the proxy. */
export const sdk = (key: string, to: { readonly host: string; readonly port: number }) =>
  new Stripe(key, { host: to.host, port: to.port, protocol: "http", telemetry: false, maxNetworkRetries: 0 })

/** The SDK's error. */
export class Refused extends Data.TaggedError("Refused")<{ readonly error: Stripe.errors.StripeError }> {}

/** A call of the SDK that must succeed. */
export const call = <A>(run: () => Promise<A>): Effect.Effect<A, Refused> =>
  Effect.tryPromise({ try: run, catch: (error) => new Refused({ error: error as Stripe.errors.StripeError }) })

/** The error of a call that must fail. */
export const refusal = (run: () => Promise<unknown>) => Effect.map(Effect.flip(call(run)), ({ error }) => error)

export interface RawAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | Array<string> | undefined>>
  readonly bytes: Buffer
  readonly json: any
}

export interface RawOptions {
  readonly method?: string
  readonly vaultKey?: string | undefined
  readonly key?: string
  readonly body?: string | Buffer
  readonly headers?: Readonly<Record<string, string | ReadonlyArray<string>>>
}

/** What a connection that broke tells. */
export class Broken extends Data.TaggedError("Broken")<{ readonly code: string }> {}

/** One request on a connection of its own. An interruption is a client that leaves. */
export const raw = (to: { readonly host: string; readonly port: number }, path: string, options: RawOptions = {}): Effect.Effect<RawAnswer, Broken> =>
  Effect.callback((resume) => {
    const broken = (error: NodeJS.ErrnoException) => resume(Effect.fail(new Broken({ code: error.code ?? error.message })))
    const outgoing = httpRequest({
      host: to.host, port: to.port, path, agent: false,
      method: options.method ?? (options.body === undefined ? "GET" : "POST"),
      headers: {
        ...(options.vaultKey === undefined ? {} : { authorization: `Bearer ${options.vaultKey}` }),
        ...(options.body === undefined ? {} : { "content-type": "application/x-www-form-urlencoded" }),
        ...(options.key === undefined ? {} : { "idempotency-key": options.key }),
        ...options.headers
      } as Record<string, string>
    }, (response) => {
      const chunks: Array<Buffer> = []
      response.on("data", (chunk: Buffer) => chunks.push(chunk))
      response.on("error", broken)
      response.on("end", () => {
        const bytes = Buffer.concat(chunks)
        const text = bytes.toString("utf8")
        resume(Effect.succeed({ status: response.statusCode ?? 0, headers: response.headers, bytes, json: /^[{[]/.test(text) ? JSON.parse(text) : undefined }))
      })
    })
    outgoing.on("error", broken)
    outgoing.end(options.body)
    return Effect.sync(() => outgoing.destroy())
  })

/** A charge as a form. */
export const chargeForm = (amount: number | string = 1000, more = "") =>
  `amount=${amount}&currency=usd&customer=cus_1&metadata[customer_id]=c1&metadata[billing_period]=2026-07${more}`
