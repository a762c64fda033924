import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { parsePeriod, type Currency } from "@purser/core"
import { Effect, Fiber, FileSystem, Layer, PlatformError, Result, Stdio } from "effect"
import { execFileSync } from "node:child_process"
import { writeFile } from "node:fs/promises"
import { InputFile } from "../../src/input/InputFile.ts"
import type { InputOptions } from "../../src/input/InputOptions.ts"
import { drain, goodRow, header, read, refusalsOf, rowsOf, shorts, stdinOnly } from "./support.ts"

const expectHeader = (content: string, options: InputOptions, problem: string, columns: ReadonlyArray<string>, hint: RegExp) =>
  Effect.gen(function*() {
    const { entries, error } = yield* read(content, options)
    assert.deepStrictEqual(entries, [])
    assert.strictEqual(error?.reason._tag, "HeaderRefused")
    if (error?.reason._tag !== "HeaderRefused") return
    assert.strictEqual(error.reason.problem, problem)
    assert.deepStrictEqual(error.reason.columns, columns)
    assert.match(error.message, hint)
  })

describe("header", () => {
  it.effect("lists every column that is missing", () =>
    expectHeader("customer_id,note\na,b\n", {}, "MissingColumns",
      ["billing_period", "currency", "stripe_customer_id", "amount or amount_minor"], /^invoices\.csv: line 1: .*billing_period, currency/))

  it.effect("lists the columns that stand twice", () =>
    expectHeader(`${header},item,amount\n`, {}, "DuplicateColumns", ["item", "amount"], /"item", "amount"/))

  it.effect("refuses both kinds of amount", () =>
    expectHeader(`${header},amount_minor\n`, {}, "BothAmounts", ["amount", "amount_minor"], /never both/))

  it.effect("refuses a name that is nearly ours, since ignoring an item would change an identity", () =>
    expectHeader(header.replace(",item", ",Item"), {}, "MisspeltColumns", ["Item"], /--map "Item=item"/))

  it.effect("names the tab when the header is one column with tabs", () =>
    expectHeader(header.replaceAll(",", "\t"), {}, "WrongDelimiter", [header.replaceAll(",", "\t").slice(0, 80)], /--delimiter tab/))

  it.effect("names the comma when another delimiter was declared", () =>
    expectHeader(header, { delimiter: ";" }, "WrongDelimiter", [header.slice(0, 80)], /--delimiter ","/))

  it.effect("refuses a mapping of a column that is not there", () =>
    expectHeader(header, { map: new Map([["kunde", "customer_id"]]) }, "UnknownMapping", ["kunde"], /"kunde"/))

  it.effect("refuses a mapping onto a column that is there as well", () =>
    expectHeader(`${header},kunde`, { map: new Map([["kunde", "customer_id"]]) }, "DuplicateColumns", ["customer_id"], /customer_id/))

  it.effect("reads mapped columns, and one of ours that is mapped away", () =>
    Effect.gen(function*() {
      const content = "kunde,billing_period,amount,currency,stripe_customer_id\nacme,2026-07,1250,usd,cus_T001\n"
      const map = new Map([["kunde", "customer_id"], ["amount", "amount_minor"]] as const)
      assert.deepStrictEqual(shorts(yield* read(content, { map })), ["2 acme 2026-07 1250 usd -"])
    }))

  it.effect("is the first row that is not blank, and may hold columns that we do not know", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(shorts(yield* read(`\n,,\n${header},note,\n${goodRow},x,y`)), ["1 blank", "2 blank", "4 acme 2026-07 1250 usd base"])
    }))
})

const cellCases: ReadonlyArray<readonly [behaviour: string, row: string, options: InputOptions, expected: string]> = [
  ["takes empty optional cells as absent", "acme,2026-07,12.50,USD,cus_T001,,", {}, "2 acme 2026-07 1250 usd -"],
  ["takes a currency in either case", "acme,2026-07,12.50,uSd,cus_T001,,", {}, "2 acme 2026-07 1250 usd -"],
  ["refuses a row with too few cells", "acme,2026-07,12.50,USD,cus_T001,pm_T001", {}, "2 refused row CellCount"],
  ["refuses a row with too many cells, empty or not", `${goodRow},`, {}, "2 refused row CellCount"],
  ["refuses an empty customer", ",2026-07,12.50,USD,cus_T001,,", {}, "2 refused customer_id#1 EmptyCell"],
  ["refuses an empty Stripe customer", "acme,2026-07,12.50,USD,,,", {}, "2 refused stripe_customer_id#5 EmptyCell"],
  ["refuses an empty period", "acme,,12.50,USD,cus_T001,,", {}, "2 refused billing_period#2 EmptyCell"],
  ["refuses an empty amount", "acme,2026-07,,USD,cus_T001,,", {}, "2 refused amount#3 EmptyCell"],
  ["refuses an empty currency even if a default is declared", "acme,2026-07,12.50,,cus_T001,,", { defaultCurrency: "usd" as Currency }, "2 refused currency#4 EmptyCell"],
  ["refuses a currency that Stripe does not charge", "acme,2026-07,12.50,XXX,cus_T001,,", {}, "2 refused currency#4 InvalidCurrency"],
  ["refuses an item of spaces", "acme,2026-07,12.50,USD,cus_T001,, ", {}, "2 refused item#7 InvalidId"],
  ["refuses zero", "acme,2026-07,0.00,USD,cus_T001,,", {}, "2 refused amount#3 NotPositive"],
  ["refuses less than Stripe's minimum", "acme,2026-07,0.49,USD,cus_T001,,", {}, "2 refused amount#3 BelowMinimum"],
  ["refuses an amount over the declared maximum", "acme,2026-07,12.50,USD,cus_T001,,", { maximumMinor: 1249 }, "2 refused amount#3 AboveMaximum"],
  ["refuses a dinar whose last digit is not zero", "acme,2026-07,1.001,KWD,cus_T001,,", {}, "2 refused amount#3 NotAMultiple"],
  ["refuses blanks around an amount", "acme,2026-07, 12.50,USD,cus_T001,,", {}, "2 refused amount#3 NotANumber"],
  ["refuses a point where the comma is the declared mark", "acme,2026-07,12.50,USD,cus_T001,,", { decimalMark: "," }, "2 refused amount#3 NotANumber"],
  ["refuses a free label unless labels are declared opaque", "acme,summer,12.50,USD,cus_T001,,", {}, "2 refused billing_period#2 InvalidPeriod"],
  ["takes a free label when labels are declared opaque", "acme,summer,12.50,USD,cus_T001,,", { periodLabels: "opaque" }, "2 acme summer 1250 usd -"]
]

describe("cells", () => {
  for (const [behaviour, row, options, expected] of cellCases) {
    it.effect(behaviour, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(shorts(yield* read(`${header}\n${row}\n`, options)), [expected])
      }))
  }

  it.effect("refuses rows of another period, in whatever spelling", () =>
    Effect.gen(function*() {
      const onlyPeriod = Result.getOrThrow(parsePeriod("Q3-2026"))
      const content = `${header}\n${goodRow}\n${goodRow.replace("2026-07", "2026Q3")}\n`
      assert.deepStrictEqual(shorts(yield* read(content, { onlyPeriod })), [
        "2 refused billing_period#2 WrongPeriod", "3 acme Q3-2026 1250 usd base"
      ])
    }))

  it.effect("uses the default currency when there is no such column", () =>
    Effect.gen(function*() {
      const content = "customer_id,billing_period,amount_minor,stripe_customer_id\nacme,2026-07,1250,cus_T001\n"
      assert.deepStrictEqual(shorts(yield* read(content, { defaultCurrency: "eur" as Currency })), ["2 acme 2026-07 1250 eur -"])
      assert.deepStrictEqual(shorts(yield* read(content)), ["error HeaderRefused"])
    }))

  it.effect("reads minor units as plain digits only", () =>
    Effect.gen(function*() {
      const content = ["1250", "12.50", "+1250", "-1250", "1e3", "0x10", "1 250", "99999999999999999999", "0"].map((amount) =>
        `acme,2026-07,${amount},usd,cus_T001`).join("\n")
      const result = yield* read(`customer_id,billing_period,amount_minor,currency,stripe_customer_id\n${content}`)
      assert.deepStrictEqual(shorts(result), [
        "2 acme 2026-07 1250 usd -",
        ...[3, 4, 5, 6, 7, 8, 9].map((line) => `${line} refused amount_minor#3 NotANumber`),
        "10 refused amount_minor#3 NotPositive"
      ])
    }))

  it.effect("takes the namespace of the cell before that of the options", () =>
    Effect.gen(function*() {
      const result = yield* read(`${header},namespace\n${goodRow},\n${goodRow},own\n`, { namespace: "run" })
      assert.deepStrictEqual(rowsOf(result).map((row) => row.request.namespace), ["run", "own"])
      assert.deepStrictEqual(rowsOf(yield* read(`${header}\n${goodRow}`)).map((row) => row.request.namespace), ["zmq-billing"])
    }))

  it.effect("hints at the decimal mark, cuts long cells and escapes what a terminal would obey", () =>
    Effect.gen(function*() {
      const content = `${header}\nacme,2026-07,"12,50",EUR,cus_T001,,\n"a\u001b[2J${"x".repeat(200)}",2026-07,12.50,EUR,cus_T001,,\n`
      const [comma, control] = refusalsOf(yield* read(content))
      assert.match(comma!.message, /line 2, column amount \(3\): "12,50": .*--decimal ","/)
      assert.strictEqual(control!.cell.length, 80)
      assert.include(control!.message, "\\u{1b}[2J")
      assert.notInclude(control!.message, "\u001b")
    }))

  it.effect("refuses ids that read as others, and says where", () =>
    Effect.gen(function*() {
      const refused = refusalsOf(yield* read(`${header}\nac\u202eme,2026-07,12.50,USD,cus_T001,pm_T001,base\nacme,2026-07,12.50,USD,cus_\u2066T001,pm_T001,base\n`))
      assert.deepStrictEqual(refused.map(({ message }) => message.replace(/^[^:]*: /, "")), [
        "line 2, column customer_id (1): \"ac\\u{202e}me\": must not contain line separators or characters that change the direction of reading",
        "line 3, column stripe_customer_id (5): \"cus_\\u{2066}T001\": must not contain line separators or characters that change the direction of reading"
      ])
    }))
})

describe("sources", () => {
  it.effect("reads standard input when the path is a dash", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(shorts(yield* drain(InputFile.rows("-"))), ["2 acme 2026-07 1250 usd base"])
    }).pipe(Effect.provide(stdinOnly(`${header}\n${goodRow}\n`))))

  it.effect("says so when the file may not be read", () => {
    const denied = PlatformError.systemError({ _tag: "PermissionDenied", module: "FileSystem", method: "stat" })
    return Effect.gen(function*() {
      const { error } = yield* drain(InputFile.rows("secret.csv"))
      assert.strictEqual(error?.message, "secret.csv: no permission to read this file")
    }).pipe(Effect.provide(Layer.mergeAll(FileSystem.layerNoop({ stat: () => Effect.fail(denied) }), Stdio.layerTest({}))))
  })

  it.effect("counts blank rows when there is nothing to charge", () =>
    Effect.gen(function*() {
      const { error } = yield* read(`${header}\n\n,,\n`)
      assert.strictEqual(error?.reason._tag === "NothingToCharge" ? error.reason.blankRows : -1, 2)
    }))

  it.effect("does not call a file of refused rows empty", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(shorts(yield* read(`${header}\nx\n`)), ["2 refused row CellCount"])
    }))

  const atPipe = <E>(test: (path: string) => Effect.Effect<void, E, FileSystem.FileSystem | Stdio.Stdio>) =>
    Effect.gen(function*() {
      const path = `${yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped()}/pipe`
      execFileSync("mkfifo", [path])
      yield* test(path)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))

  it.live("reads a pipe to its end, however long it is and however late it begins", () =>
    atPipe((path) =>
      Effect.gen(function*() {
        const rows = 20_000
        const reading = yield* Effect.forkChild(drain(InputFile.rows(path)), { startImmediately: true })
        yield* Effect.promise(() => writeFile(path, `${header}\n${`${goodRow}\n`.repeat(rows)}`))
        const { entries, error } = yield* Fiber.join(reading)
        assert.deepStrictEqual([entries.length, error], [rows, undefined])
      })))

  it.live("a pipe that nobody writes to is left when the reading is broken off", () =>
    atPipe((path) =>
      Effect.gen(function*() {
        const reading = yield* Effect.forkChild(drain(InputFile.rows(path)), { startImmediately: true })
        yield* Effect.yieldNow
        yield* Fiber.interrupt(reading)
        // Nothing holds it: who comes later has the pipe for himself.
        const again = yield* Effect.forkChild(drain(InputFile.rows(path)), { startImmediately: true })
        yield* Effect.promise(() => writeFile(path, `${header}\n${goodRow}\n`))
        assert.deepStrictEqual(shorts(yield* Fiber.join(again)), ["2 acme 2026-07 1250 usd base"])
      })))
})
