/**
 * The cells of one row to a charge request. Each cell is checked by the rule of `@purser/core` for its kind; a row is
 * refused at its first bad cell, in the order in which the columns are documented.
 */
import {
  type BillingPeriod, chargeKeyOf, checkedRequest, type Currency, defaultNamespace, idProblem, type InvalidAmount,
  Money, parseCurrency, parsePeriod
} from "@purser/core"
import { Result } from "effect"
import type { Cells, Column, InputOptions } from "./InputOptions.ts"
import type { RefusalCode } from "./InputRefusal.ts"
import type { InputRow } from "./InputRow.ts"

/** What is wrong with which cell. */
export interface BadCell {
  readonly column: Column
  readonly cell: string
  readonly code: RefusalCode
  readonly hint: string
}

/** Reads rows of one file. */
export type RowReader = (line: number, cells: Cells) => Result.Result<InputRow, BadCell>

const bad = (column: Column, cell: string | undefined, code: RefusalCode, hint: string): Result.Result<never, BadCell> =>
  Result.fail({ column, cell: cell ?? "", code, hint })

const ids = ["customer_id", "stripe_customer_id", "payment_method", "item", "namespace"] as const
const required = new Set<Column>(["customer_id", "stripe_customer_id"])
/** Files hold few periods and many rows: the texts that were read last are kept. */
const rememberedPeriods = 256

/** A reader with these options. */
export const makeRowReader = (options: InputOptions): RowReader => {
  const moneyOptions = {
    decimalMark: options.decimalMark ?? ".",
    ...(options.maximumMinor === undefined ? {} : { maximumMinor: options.maximumMinor })
  } as const
  const periods = new Map<string, Result.Result<BillingPeriod, BadCell>>()

  const readPeriod = (text: string): Result.Result<BillingPeriod, BadCell> => {
    const parsed = parsePeriod(text, { labels: options.periodLabels ?? "calendar" })
    if (Result.isFailure(parsed)) return bad("billing_period", text, "InvalidPeriod", parsed.failure.hint)
    if (options.onlyPeriod !== undefined && parsed.success !== options.onlyPeriod) {
      return bad("billing_period", text, "WrongPeriod", `is not ${options.onlyPeriod}, the period that this run bills`)
    }
    return Result.succeed(parsed.success)
  }

  const periodOf = (text: string | undefined): Result.Result<BillingPeriod, BadCell> => {
    if (text === undefined) return bad("billing_period", text, "EmptyCell", "must not be empty")
    const known = periods.get(text)
    if (known !== undefined) return known
    if (periods.size >= rememberedPeriods) periods.clear()
    const read = readPeriod(text)
    periods.set(text, read)
    return read
  }

  const currencyOf = (cells: Cells): Result.Result<Currency, BadCell> => {
    if (!("currency" in cells) && options.defaultCurrency !== undefined) return Result.succeed(options.defaultCurrency)
    if (cells.currency === undefined) return bad("currency", undefined, "EmptyCell", "must not be empty")
    const currency = parseCurrency(cells.currency)
    return currency === undefined
      ? bad("currency", cells.currency, "InvalidCurrency", "is not a currency that Stripe charges")
      : Result.succeed(currency)
  }

  const amountOf = (cells: Cells, currency: Currency): Result.Result<Money, BadCell> => {
    const { amount, amount_minor: minor } = cells
    if (amount !== undefined && minor !== undefined) {
      return bad("amount_minor", minor, "BothAmounts", "a row has amount or amount_minor, never both")
    }
    if (minor !== undefined) {
      return /^\d{1,18}$/.test(minor)
        ? Result.mapError(Money.fromMinor(BigInt(minor), currency, moneyOptions), (error) => badAmount("amount_minor", minor, error))
        : bad("amount_minor", minor, "NotANumber", "expected plain digits: an integer of Stripe's minor units")
    }
    if (amount === undefined) return bad("amount_minor" in cells ? "amount_minor" : "amount", undefined, "EmptyCell", "must not be empty")
    return Result.mapError(Money.fromDecimal(amount, currency, moneyOptions), (error) => badAmount("amount", amount, error))
  }

  const badAmount = (column: Column, cell: string, error: InvalidAmount): BadCell => ({
    column,
    cell,
    code: error.reason,
    hint: error.reason === "NotANumber" && moneyOptions.decimalMark === "." && /^\d+,\d+$/.test(cell)
      ? `${error.hint}; if the comma is the decimal mark, declare --decimal ","`
      : error.hint
  })

  return (line, cells) => {
    for (const column of ids) {
      const cell = cells[column]
      if (cell === undefined) {
        if (required.has(column)) return bad(column, cell, "EmptyCell", "must not be empty")
        continue
      }
      const problem = idProblem(cell)
      if (problem !== undefined) return bad(column, cell, "InvalidId", problem)
    }
    const period = periodOf(cells.billing_period)
    if (Result.isFailure(period)) return Result.fail(period.failure)
    const currency = currencyOf(cells)
    if (Result.isFailure(currency)) return Result.fail(currency.failure)
    const money = amountOf(cells, currency.success)
    if (Result.isFailure(money)) return Result.fail(money.failure)

    // Every field has just passed the very check of its schema; a second pass would be most of the time of reading.
    const request = checkedRequest({
      namespace: cells.namespace ?? options.namespace ?? defaultNamespace,
      customerId: cells.customer_id!,
      billingPeriod: period.success,
      item: cells.item,
      amountMinor: money.success.amountMinor,
      currency: currency.success,
      stripeCustomerId: cells.stripe_customer_id!,
      paymentMethod: cells.payment_method
    })
    return Result.succeed({ _tag: "Row", line, chargeKey: chargeKeyOf(request), request })
  }
}
