/** `purser doctor`: looks at everything that a run needs, one after the other, whatever was wrong before. */
import { type BillingPeriod, ChargePause, isRunOver, Money, RunRegistry, SpendCap, standingOf, WorkerBook, WorkerLife } from "@purser/core"
import { Database, DatabaseClock, Migrations, PgChargePause, PgRunRegistry, PgSpendCap, PgWorkerBook } from "@purser/postgres"
import { transportNames } from "@purser/purser"
import { examineKey, gatewayNameConfig, type KeyUse, StripeClient, stripeConfig } from "@purser/stripe"
import { Clock, Config, ConfigProvider, Effect, Layer } from "effect"
import { CommandFailed, exitStatus } from "../CommandFailed.ts"
import { out } from "../ui/Output.ts"
import { table } from "../ui/table.ts"
import { examineRestore } from "./doctorRestore.ts"
import { examineEndpoint } from "./doctorSockets.ts"
import { pauseText } from "./pause.ts"
import { lostText } from "./unattended.ts"

/** One thing that was looked at. `fail` stops a run, `warn` should be known. */
export interface Finding {
  readonly check: string
  readonly level: "ok" | "warn" | "fail"
  readonly text: string
}

const finding = (check: string, level: Finding["level"], text: string): Finding => ({ check, level, text })
/** Webhook signatures are refused five minutes off; well before that a clock is wrong. */
const skewWarnMs = 30_000
const skewFailMs = 300_000

const clockFinding = (check: string, other: string, skewMs: number | null): Finding => {
  if (skewMs === null) return finding(check, "warn", `${other} does not tell the time`)
  const seconds = Math.round(Math.abs(skewMs) / 1000)
  const text = seconds === 0 ? `in step with ${other}` : `${seconds} s ${skewMs > 0 ? "ahead of" : "behind"} ${other}`
  return finding(check, Math.abs(skewMs) >= skewFailMs ? "fail" : Math.abs(skewMs) >= skewWarnMs ? "warn" : "ok", text)
}

const messageOf = (error: { readonly message: string }) => error.message

/** Runs a group of checks; what ends it early is a finding too. */
const examine = <E extends { readonly message: string }, R>(check: string, group: Effect.Effect<ReadonlyArray<Finding>, E, R>) =>
  Effect.catch(group, (error) => Effect.succeed([finding(check, "fail", messageOf(error))]))

const examineStripe = (uses: ReadonlyArray<KeyUse>) =>
  Effect.gen(function*() {
    const options = yield* stripeConfig
    const gateway = yield* gatewayNameConfig
    const all: ReadonlyArray<KeyUse> = [gateway, ...uses]
    const report = yield* examineKey(options.key, all).pipe(Effect.provide(StripeClient.layer(options)))
    const clock = clockFinding("clock", "Stripe", report.skewMs)
    const account = options.account === undefined ? "" : ` on ${options.account}`
    if (report.unrestricted) {
      return [clock, finding("key", "warn", `an unrestricted key: it may do everything; for ${all.join(", ")} a restricted key (rk_…) is enough`)]
    }
    const findings = [
      ...report.missing.map((name) => finding("key", "fail", `${name} is missing${account}`)),
      ...report.unclear.map((text) => finding("key", "fail", `${text}${account}`)),
      ...report.tooMany.map((name) => finding("key", "warn", `${name} is granted${account} and not needed for ${all.join(", ")}`))
    ]
    return [clock, ...(findings.length === 0 ? [finding("key", "ok", `the permissions for ${all.join(", ")}${account}, and no others`)] : findings)]
  })

const examineCaps = (period: BillingPeriod | undefined) =>
  Effect.gen(function*() {
    const caps = yield* (yield* SpendCap).report(period)
    const which = period ?? "any period"
    if (caps.length === 0) {
      return [finding("cap", period === undefined ? "warn" : "fail", `no cap is open for ${which}: purser cap open, or purser run --expected-total`)]
    }
    return caps.map((cap) => {
      const money = (amount: bigint) => Money.formatMinor(amount, cap.currency)
      const text = `${cap.billingPeriod} ${cap.currency} ${cap.namespace}: ${money(cap.reservedMinor)} of ${money(cap.capMinor)} used`
      return cap.closed
        ? finding("cap", period === undefined ? "warn" : "fail", `${text}, and closed`)
        : finding("cap", cap.reservedMinor >= cap.capMinor ? "warn" : "ok", text)
    })
  }).pipe(Effect.provide(PgSpendCap.layer))

const examinePauses = Effect.gen(function*() {
  const pauses = yield* (yield* ChargePause).inForce
  return pauses.map((pause) => finding("pause", "warn", pauseText(pause)))
}).pipe(Effect.provide(PgChargePause.layer))

const runsMax = 1000

const examineRuns = Effect.gen(function*() {
  const book = yield* (yield* WorkerBook).list
  const runs = yield* (yield* RunRegistry).list({ states: ["waiting", "planned", "running", "paused", "canceling", "interrupted"], limit: runsMax })
  const found = runs.filter(({ state }) => !isRunOver(state)).flatMap((run) => {
    const text = lostText(run) ?? WorkerLife.abandoned(run, book)
    return text === null ? [] : [finding("runs", "warn", `${run.name} is ${standingOf(run)}: ${text}`)]
  })
  const { length } = WorkerLife.runners(book)
  return found.length > 0 ? found : [finding("runs", "ok", length === 0 ? "no runner is heard of, and no run waits for one" : `${length} ${length === 1 ? "runner answers" : "runners answer"}`)]
}).pipe(Effect.provide(Layer.mergeAll(PgRunRegistry.layer, PgWorkerBook.layer)))

const examineDatabase = (period: BillingPeriod | undefined) =>
  Effect.gen(function*() {
    const database = yield* Database
    const found: Array<Finding> = [finding("database", "ok", `${database.label}, PostgreSQL ${database.version}`)]
    const version = yield* Migrations.schemaVersion
    const migrates = yield* Config.Boolean("PURSER_MIGRATE").pipe(Config.withDefault(true))
    const { codeVersion } = Migrations
    if (version > codeVersion) {
      return [...found, finding("schema", "fail", `version ${version}, and this program knows ${codeVersion}: use a newer one`)]
    }
    if (version < codeVersion) {
      const words = version === 0 ? "no tables yet" : `version ${version} of ${codeVersion}`
      return [...found, finding("schema", migrates ? "warn" : "fail", `${words}${migrates ? "; the next command brings it up to date" : ", and PURSER_MIGRATE is off"}`)]
    }
    found.push(finding("schema", "ok", `version ${version}`))
    found.push(clockFinding("clock", "the database", (yield* Clock.currentTimeMillis) - (yield* DatabaseClock.nowMs)))
    found.push(...(yield* examine("pause", examinePauses)), ...(yield* examine("cap", examineCaps(period))), ...(yield* examine("runs", examineRuns)))
    found.push(...(yield* examine("ledger", Effect.map(examineRestore, ({ level, text }) => [finding("ledger", level, text)]))))
    return found
  }).pipe(
    Effect.provide(Database.layerConfig.pipe(
      // To look is not to migrate.
      Layer.provide(Layer.effect(
        ConfigProvider.ConfigProvider,
        Effect.map(ConfigProvider.ConfigProvider, (rest) => ConfigProvider.orElse(ConfigProvider.fromUnknown({ PURSER_MIGRATE: "false" }), rest))
      ))
    ))
  )

const examineSockets = Effect.gen(function*() {
  const transport = yield* Config.Literals(transportNames, "PURSER_TRANSPORT").pipe(Config.withDefault("req-rep" as const))
  if (transport === "memory") return [finding("sockets", "ok", "the transport stays in one process")]
  const endpoints = yield* Config.String("PURSER_ENDPOINT").pipe(Config.withDefault("tcp://127.0.0.1:5555"))
  return yield* Effect.forEach(endpoints.split(",").map((text) => text.trim()), (endpoint) =>
    Effect.map(examineEndpoint(endpoint), ({ level, text }) => finding("sockets", level, `${endpoint}: ${text}`)))
})

/** Looks, tells, and fails when something would stop a run. */
export const doctor = Effect.fnUntraced(function*(options: {
  readonly period: BillingPeriod | undefined
  readonly uses: ReadonlyArray<KeyUse>
  readonly json: boolean
}) {
  const findings = [
    ...(yield* examine("stripe", examineStripe(options.uses))),
    ...(yield* examine("database", examineDatabase(options.period))),
    ...(yield* examine("sockets", examineSockets))
  ]
  const failed = findings.filter(({ level }) => level === "fail").length
  yield* out(options.json
    ? JSON.stringify({ ok: failed === 0, findings })
    : table(["", "check", "found"], findings.map(({ check, level, text }) => [level, check, text])))
  if (failed > 0) return yield* new CommandFailed({ text: `${failed} of ${findings.length} checks failed`, status: exitStatus.refused })
})
