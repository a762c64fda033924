/** The flags of `purser run`. The work is in `handlers/run.ts`, loaded when the command runs so that `--help` is quick. */
import { parseCurrency, parsePeriod } from "@purser/core"
import { Config, Effect, Option, Result } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { refused } from "../CommandFailed.ts"
import { periodLabels } from "./periodLabels.ts"
import { columnNamed, columns, type Column, type Delimiter, type InputOptions } from "../input/InputOptions.ts"
import type { RunOptions } from "../handlers/planFile.ts"
import { inTelemetry } from "./inTelemetry.ts"
import { checkName, optionFlags } from "./runsCommand.ts"
import { actorFlag } from "./recordFlags.ts"

const flags = {
  file: Argument.String("FILE").pipe(
    Argument.withDescription("A billing file: CSV, or NDJSON (.ndjson, .jsonl); - reads standard input")
  ),
  expectedTotal: Flag.String("expected-total").pipe(
    Flag.withDescription("What the rows should add up to: 1000.00, usd=1000.00 or 2026-07:usd=1000.00; may be repeated"),
    Flag.withMetavar("[[PERIOD:]CUR=]AMOUNT"),
    Flag.atLeast(0)
  ),
  headroom: Flag.String("headroom").pipe(
    Flag.withDescription("The cap is the expected total times this factor (default: 1.10)"),
    Flag.withDefault("1.10")
  ),
  period: Flag.String("period").pipe(Flag.withDescription("Refuse rows of any other period"), Flag.optional),
  allowPeriod: Flag.String("allow-period").pipe(
    Flag.withDescription("Bill this period though it has not begun, is not over, or is over for more than a year; may be repeated"),
    Flag.atLeast(0)
  ),
  transport: Flag.Literals("transport", ["req-rep", "router-dealer", "push-pull", "pub-sub", "majordomo", "pair", "memory"]).pipe(
    Flag.withDescription("How requests travel to workers (default: PURSER_TRANSPORT, else req-rep)"),
    Flag.optional
  ),
  endpoint: Flag.String("endpoint").pipe(
    Flag.withDescription("With --workers 0: where workers, or the broker, are found (default: PURSER_ENDPOINT, else tcp://127.0.0.1:5555); '@' in front binds instead of connecting"),
    Flag.optional
  ),
  workers: Flag.Int("workers").pipe(
    Flag.withDescription("Workers in this process (default: 1); 0 only dispatches to `purser worker` elsewhere"),
    Flag.withDefault(1)
  ),
  concurrency: Flag.Int("concurrency").pipe(Flag.withDescription("Requests in flight (default: 128)"), Flag.withDefault(128)),
  paused: Flag.Boolean("paused").pipe(
    Flag.withDescription("Plan, and charge nothing until `purser resume stripe`; all other charging of the database rests too"),
    Flag.withDefault(false)
  ),
  detach: Flag.Boolean("detach").pipe(
    Flag.withDescription("Plan here, and hand the run over to runners (purser runner) instead of charging in this process"),
    Flag.withDefault(false)
  ),
  name: Flag.String("name").pipe(
    Flag.withDescription("With --detach: the run's name (default: the file's); the same name again charges nobody"),
    Flag.optional
  ),
  reconcile: optionFlags.reconcile.pipe(Flag.withDescription("With --detach: compare the periods with Stripe at the end (--no-reconcile leaves it out)")),
  repair: optionFlags.repair.pipe(Flag.withDescription("With --detach: repair what that comparison finds (--no-repair tells it alone)")),
  dryRun: Flag.Boolean("dry-run").pipe(Flag.withDescription("Read and check only; plan and send nothing"), Flag.withDefault(false)),
  json: Flag.Boolean("json").pipe(Flag.withDescription("Print one JSON object as the last line"), Flag.withDefault(false)),
  yes: Flag.Boolean("yes").pipe(Flag.withAlias("y"), Flag.withDescription("Answer every question with yes"), Flag.withDefault(false)),
  delimiter: Flag.Literals("delimiter", [",", ";", "tab"]).pipe(Flag.withDescription("Between the cells of a CSV file"), Flag.withDefault(",")),
  decimal: Flag.Literals("decimal", [".", ","]).pipe(Flag.withDescription("The decimal mark of amounts"), Flag.withDefault(".")),
  map: Flag.String("map").pipe(
    Flag.withDescription(`A column of the file and ours, theirs=ours; may be repeated. Ours: ${columns.join(", ")}`),
    Flag.withMetavar("THEIRS=OURS"),
    Flag.atLeast(0)
  ),
  format: Flag.Literals("format", ["csv", "ndjson"]).pipe(Flag.withDescription("The format, when the file's name does not tell"), Flag.optional),
  currency: Flag.String("currency").pipe(Flag.withDescription("The currency of a file without a currency column"), Flag.optional),
  skipInvalid: Flag.Boolean("skip-invalid").pipe(
    Flag.withDescription("Leave rows out that cannot be charged, and report them, instead of refusing the file"),
    Flag.withDefault(false)
  ),
  overCap: Flag.Literals("over-cap", ["refuse", "fits"]).pipe(
    Flag.withDescription("When the total does not fit under the cap: refuse the file, or charge what fits and reject the rest"),
    Flag.withDefault("refuse")
  ),
  retry: Flag.Literals("retry", ["declined", "rejected"]).pipe(
    Flag.withDescription("Try charges of this file again that were declined or rejected, if there is room under the cap; may be repeated"),
    Flag.atLeast(0)
  ),
  actor: actorFlag,
  report: Flag.String("report").pipe(Flag.withDescription("Write one line per row with its state to this CSV file"), Flag.withMetavar("FILE"), Flag.optional)
} as const

const maximumMinor = Config.option(Config.Int("PURSER_MAX_AMOUNT_MINOR"))

const columnMap = Effect.fnUntraced(function*(texts: ReadonlyArray<string>) {
  const map = new Map<string, Column>()
  for (const text of texts) {
    const at = text.lastIndexOf("=")
    const ours = columnNamed(text.slice(at + 1))
    if (at <= 0 || ours === undefined) return yield* refused(`--map ${text}: expected THEIRS=OURS with one of ${columns.join(", ")}`)
    map.set(text.slice(0, at), ours)
  }
  return map
})

/** `purser run` */
export const runCommand = Command.make("run", flags, Effect.fnUntraced(function*(given) {
  const labels = yield* periodLabels
  const period = Option.map(given.period, (text) => parsePeriod(text, { labels }))
  if (Option.isSome(period) && Result.isFailure(period.value)) return yield* refused(`--period: ${period.value.failure.message}`)
  const currency = Option.map(given.currency, parseCurrency)
  if (Option.isSome(currency) && currency.value === undefined) return yield* refused("--currency is not a currency that Stripe charges")
  if (given.workers < 0 || given.workers > 64) return yield* refused("--workers must be from 0 to 64")
  if (given.concurrency < 1 || given.concurrency > 10_000) return yield* refused("--concurrency must be from 1 to 10000")
  const allowPeriods: Array<string> = []
  for (const text of given.allowPeriod) {
    const allowed = parsePeriod(text, { labels })
    if (Result.isFailure(allowed)) return yield* refused(`--allow-period: ${allowed.failure.message}`)
    allowPeriods.push(allowed.success)
  }
  if (Option.isSome(given.name) && !given.detach) return yield* refused("--name is of runs that are handed over: it wants --detach")
  if (Option.isSome(given.name)) yield* checkName("a run's name", given.name.value)
  if (!given.detach && !(given.reconcile && given.repair)) return yield* refused("--no-reconcile and --no-repair are of runs that are handed over, with --detach: a run of this process leaves that to purser reconcile")
  if (given.detach && (given.dryRun || given.paused || given.retry.length > 0 || Option.isSome(given.report))) {
    return yield* refused("--detach hands the run over: --dry-run, --paused, --retry and --report are for runs of this process")
  }
  const input: InputOptions = {
    format: Option.getOrUndefined(given.format),
    delimiter: (given.delimiter === "tab" ? "\t" : given.delimiter) satisfies Delimiter,
    decimalMark: given.decimal,
    map: yield* columnMap(given.map),
    periodLabels: labels,
    onlyPeriod: Option.isSome(period) && Result.isSuccess(period.value) ? period.value.success : undefined,
    maximumMinor: Option.getOrUndefined(yield* maximumMinor),
    defaultCurrency: Option.getOrUndefined(currency)
  }
  const { parseExpectedTotal, parseHeadroom } = yield* Effect.promise(() => import("../handlers/expectedTotals.ts"))
  const options: RunOptions = {
    file: given.file,
    input,
    expectedTotals: yield* Effect.forEach(given.expectedTotal, (text) => parseExpectedTotal(text, labels)),
    headroomPercent: yield* parseHeadroom(given.headroom),
    allowPeriods,
    skipInvalid: given.skipInvalid,
    overCap: given.overCap,
    retry: given.retry,
    transport: Option.getOrUndefined(given.transport),
    endpoint: Option.getOrUndefined(given.endpoint),
    workers: given.workers,
    concurrency: given.concurrency,
    dryRun: given.dryRun,
    paused: given.paused,
    json: given.json,
    yes: given.yes,
    actor: given.actor,
    report: Option.getOrUndefined(given.report)
  }
  if (given.detach) {
    const { detach } = yield* Effect.promise(() => import("../handlers/detach.ts"))
    const { reconcile, repair } = given
    return yield* detach(options, Option.getOrElse(given.name, () => given.file.split("/").at(-1)!), { reconcile, repair })
  }
  const { run } = yield* Effect.promise(() => import("../handlers/run.ts"))
  return yield* inTelemetry("run", run(options))
})).pipe(
  Command.withDescription("Bill every row of a file exactly once"),
  Command.withExamples([
    { command: "purser run invoices-2026-07.csv --expected-total 12345.67", description: "Bill a file whose total you know" },
    { command: "purser run invoices.csv --dry-run", description: "Read and check only" },
    { command: "purser run rechnungen.csv --delimiter ';' --decimal , --map kunde=customer_id", description: "A file in another dialect" }
  ])
)
