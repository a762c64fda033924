/** Billing files, as bytes. Whatever is read as a row is what a second, strict reader finds on that line; where the bytes are cut makes no difference. */
import { assert, it } from "@effect/vitest"
import { makeInputReader } from "@purser/cli/src/input/InputReader.ts"
import type { InputOptions } from "@purser/cli/src/input/InputOptions.ts"
import type { InputEntry, InputRow } from "@purser/cli/src/input/InputRow.ts"
import { chargeKeyOf, type Currency, currencyRule, defaultNamespace, parsePeriod } from "@purser/core"
import { Arbitrary, Effect, Result } from "effect"
import { fuzz } from "../src/fuzz.ts"
import { between, mutated, noise, oneOf } from "../src/Mutation.ts"
import { strictCsv } from "../src/strictCsv.ts"

interface Read {
  readonly entries: ReadonlyArray<InputEntry>
  readonly failure: string | undefined
}

const readAll = (bytes: Buffer, format: "csv" | "ndjson", options: InputOptions, pieceLength: number): Read => {
  const reader = makeInputReader("bills", format, options)
  const entries: Array<InputEntry> = []
  for (let at = 0; at < bytes.length; at += pieceLength) {
    const piece = reader.push(bytes.subarray(at, at + pieceLength))
    entries.push(...piece.entries)
    if (piece.failure !== undefined) return { entries, failure: piece.failure._tag }
  }
  const last = reader.end()
  return { entries: [...entries, ...last.entries], failure: last.failure?._tag }
}

/** Reads whole and in pieces, which must say the same; the rows. */
const rowsOf = (bytes: Buffer, format: "csv" | "ndjson", options: InputOptions): ReadonlyArray<InputRow> => {
  const whole = readAll(bytes, format, options, Math.max(1, bytes.length))
  for (const pieceLength of [1, 1 + bytes.length % 7]) assert.deepStrictEqual(readAll(bytes, format, options, pieceLength), whole)
  for (const entry of whole.entries) if (entry._tag === "Refusal") assert.isAbove(entry.message.length, 0)
  return whole.entries.filter((entry) => entry._tag === "Row")
}

/** Minor units by the digits alone. */
const minorOf = (decimal: string, mark: string, currency: Currency): bigint => {
  assert.match(decimal, mark === "." ? /^[0-9]+(\.[0-9]+)?$/ : /^[0-9]+(,[0-9]+)?$/)
  const [units = "", decimals = ""] = decimal.split(mark)
  const { exponent } = currencyRule(currency)
  assert.isAtMost(decimals.replace(/0+$/, "").length, exponent)
  return BigInt(units + decimals.slice(0, exponent).padEnd(exponent, "0"))
}

/** The row says what these cells say. */
const sameAs = (cell: (name: string) => string | undefined, { chargeKey, request }: InputRow, mark: string) => {
  const given = (name: string) => cell(name) === "" ? undefined : cell(name)
  assert.strictEqual(request.customerId, given("customer_id"))
  assert.strictEqual(request.stripeCustomerId, given("stripe_customer_id"))
  assert.strictEqual(request.paymentMethod, given("payment_method"))
  assert.strictEqual(request.item, given("item"))
  assert.strictEqual(request.namespace, given("namespace") ?? defaultNamespace)
  assert.match(given("currency") ?? "", /^[A-Za-z]{3}$/)
  assert.strictEqual(request.currency, given("currency")!.toLowerCase())
  assert.strictEqual(request.billingPeriod, Result.getOrThrow(parsePeriod(given("billing_period")!)))
  const [decimal, minor] = [given("amount"), given("amount_minor")]
  assert.isTrue((decimal === undefined) !== (minor === undefined))
  if (minor !== undefined) assert.match(minor, /^[0-9]+$/)
  assert.strictEqual(BigInt(request.amountMinor), minor === undefined ? minorOf(decimal!, mark, request.currency) : BigInt(minor))
  assert.strictEqual(chargeKey, chargeKeyOf(request))
}

const bill = Arbitrary.all({
  customer: oneOf(["acme", "Müller", "a;b", "名", "=cmd", "0042"]),
  period: oneOf(["2026-07", "Q3-2026", "2026"]),
  hundreds: between(4, 900),
  currency: oneOf(["usd", "EUR", "KES", "jpy", "kwd", "isk"]),
  item: oneOf(["", "seat", "a b"])
})


interface Bill {
  readonly customer: string
  readonly period: string
  readonly hundreds: number
  readonly currency: string
  readonly item: string
}
const bills = Arbitrary.array(bill, { minLength: 1, maxLength: 4 })
const line = (dialect: { readonly delimiter: string; readonly mark: string }) => (bill: Bill) =>
  [bill.customer, bill.period, `${bill.hundreds}00${bill.currency === "jpy" ? "" : `${dialect.mark}00`}`, bill.currency, "cus_1", "pm_1", bill.item]
    .map((cell) => cell.includes(dialect.delimiter) || cell.includes(" ") ? `"${cell}"` : cell).join(dialect.delimiter)

const header = "customer_id,billing_period,amount,currency,stripe_customer_id,payment_method,item"
const english = { delimiter: ",", mark: "." } as const
const german = { delimiter: ";", mark: "," } as const
const csvText = (dialect: { readonly delimiter: string; readonly mark: string }, end: string) =>
  Arbitrary.map(bills, (rows) => [header.replaceAll(",", dialect.delimiter), ...rows.map(line(dialect))].map((text) => text + end).join(""))
const csvWords = ["amount_minor", "namespace", ",,", "\"\"\"", "\"a\nb\"", "\"12.50\"", "12,50", "12.5", ".5", "1 000", "1'000", "USD", "\u212aES", "2026-7", "\"\r\n\""]

const csv = (options: InputOptions) => (bytes: Buffer) =>
  Effect.sync(() => {
    const rows = rowsOf(bytes, "csv", options)
    if (rows.length === 0) return false
    // A file that goes wrong later has been read as far as it was right.
    const text = bytes.toString("utf8").replace(/^\ufeff/, "").split("\0")[0]!
    const records = strictCsv(text, options.delimiter ?? ",")
    const head = records.find(({ cells }) => cells.some((cell) => cell.trim() !== ""))!
    const byLine = new Map(records.map((record) => [record.line, record.cells]))
    for (const row of rows) {
      const cells = byLine.get(row.line)
      assert.isDefined(cells, `nothing is on line ${row.line}`)
      assert.strictEqual(cells!.length, head.cells.length)
      sameAs((name) => {
        const at = head.cells.indexOf(name)
        return at < 0 ? undefined : cells![at]
      }, row, options.decimalMark ?? ".")
    }
    return true
  })

fuzz(it, "csv", {
  runs: 400,
  inputs: { "a file with LF": mutated(csvText(english, "\n"), csvWords), "a file with CRLF": mutated(csvText(english, "\r\n"), csvWords), "noise": noise },
  property: csv({})
})
fuzz(it, "csv", {
  runs: 400,
  inputs: { "semicolons and decimal commas": mutated(csvText(german, "\n"), csvWords) },
  property: csv({ delimiter: ";", decimalMark: "," })
})

const jsonLine = (bill: Bill, index: number) =>
  JSON.stringify({
    customer_id: bill.customer, billing_period: bill.period, currency: bill.currency, stripe_customer_id: "cus_1", payment_method: null, ...(bill.item === "" ? {} : { item: bill.item }),
    ...(index % 2 === 0 ? { amount_minor: bill.hundreds * 100 } : { amount: `${bill.hundreds}00` })
  })
const every = (rows: ReadonlyArray<Bill>, text: string, format: "csv" | "ndjson", options: InputOptions) =>
  assert.deepStrictEqual(rowsOf(Buffer.from(text), format, options).map(({ request }) => request.customerId), rows.map(({ customer }) => customer))

it.prop("every row of a file that nobody has changed is read", [bills], ([rows]) => {
  every(rows, [header, ...rows.map(line(english))].join("\r\n"), "csv", {})
  every(rows, [header.replaceAll(",", ";"), ...rows.map(line(german))].join("\n"), "csv", { delimiter: ";", decimalMark: "," })
  every(rows, rows.map(jsonLine).join("\n"), "ndjson", {})
})

const ndjsonText = Arbitrary.map(bills, (rows) => rows.map((bill, index) => jsonLine(bill, index) + "\n").join(""))
const jsonWords = ["\"amount_minor\":100,", "\"amount\":\"1.00\",", "\"amount_minor\":1e3,", "\"amount_minor\":\"0100\",", "\"customer_id\":\"evil\",", "\"customer_\\u0069d\":\"evil\",", "\"Customer ID\":\"x\",", "\"x\":{\"customer_id\":\"y\"},", "[1,2]", "\"x\":\"}\\\"{\","]

/** The keys of the outermost object in the order of the text, by a parser's own report. */
const keysOf = (text: string): ReadonlyArray<string> => {
  const keys: Array<string> = []
  let depth = 0
  for (const [token, string] of text.matchAll(/("(?:[^"\\]|\\.)*")\s*(?::)?|[{}[\]]/g)) {
    if (token === "{" || token === "[") depth++
    else if (token === "}" || token === "]") depth--
    else if (depth === 1 && token.endsWith(":")) keys.push(JSON.parse(string!) as string)
  }
  return keys
}

fuzz(it, "ndjson", {
  runs: 400,
  inputs: { "a file": mutated(ndjsonText, jsonWords), "noise": noise },
  property: (bytes) =>
    Effect.sync(() => {
      const rows = rowsOf(bytes, "ndjson", {})
      const lines = bytes.toString("utf8").replace(/^\ufeff/, "").split(/\r\n|\r|\n/)
      for (const row of rows) {
        const text = lines[row.line - 1]!
        const fields = JSON.parse(text) as Readonly<Record<string, unknown>>
        const known = keysOf(text).filter((key) => ["customer_id", "billing_period", "amount", "amount_minor", "currency", "stripe_customer_id", "payment_method", "item", "namespace"].includes(key))
        assert.strictEqual(new Set(known).size, known.length, "a field stands twice")
        if (typeof fields["amount_minor"] === "number") assert.match(text, new RegExp(`:\\s*${fields["amount_minor"]}\\s*[,}]`))
        sameAs((name) => {
          const value = Object.hasOwn(fields, name) ? fields[name] : undefined
          if (value === undefined || value === null) return undefined
          if (name === "amount_minor" && typeof value === "number") return String(value)
          assert.isString(value)
          return String(value)
        }, row, ".")
      }
      return rows.length > 0
    })
})
