/** How numbers, money and times are written. */
import { percentOf } from "@purser/core/CapFigures"
import { currencyRule, parseCurrency } from "@purser/core/Currency"
import { Money } from "@purser/core/Money"

const grouped = (digits: string) => digits.replaceAll(/\B(?=(\d{3})+(?!\d))/g, ",")

/** A whole number with its thousands apart. */
export const count = (n: number | bigint): string => grouped(String(n))

/** An amount in the form of its currency, as many decimals as Stripe counts in; minor units of a currency that nobody knows. */
export const amount = (minor: number | bigint, code: string): string => {
  const currency = parseCurrency(code)
  if (currency === undefined) return `${count(minor)} minor`
  const text = Money.formatMinor(minor, currency)
  const negative = text.startsWith("-")
  const [units = "", decimals] = text.replace("-", "").split(".")
  return `${negative ? "−" : ""}${grouped(units)}${decimals === undefined ? "" : `.${decimals}`}`
}

/** How many decimals the currency has. */
export const decimalsOf = (code: string): number => {
  const currency = parseCurrency(code)
  return currency === undefined ? 0 : currencyRule(currency).exponent
}

/** A share in percent, as the command says it too. */
export const percent = (part: number | bigint, whole: number | bigint): string => {
  const share = percentOf(part, whole)
  return share === "–" ? share : `${share} %`
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" })
const day = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "2-digit" })

/** A moment: the time alone where it is of today. */
export const moment = (ms: number, nowMs: number): string => {
  const at = new Date(ms)
  return at.toDateString() === new Date(nowMs).toDateString() ? clock.format(at) : `${day.format(at)}, ${clock.format(at).slice(0, 5)}`
}

/** A span of time in its two largest units. */
export const span = (ms: number): string => {
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return `${hours} h ${minutes % 60} min`
  return `${Math.floor(hours / 24)} days`
}

/** A speed. */
export const rate = (perSecond: number): string => perSecond === 0 ? "0 /s" : perSecond < 10 ? `${perSecond.toFixed(1)} /s` : `${count(Math.round(perSecond))} /s`

/** An id that is too long for its place, by its beginning and end. */
export const short = (id: string, head = 10, tail = 4): string => id.length <= head + tail + 1 ? id : `${id.slice(0, head)}…${id.slice(-tail)}`

/** A charge as people speak of it. */
export const chargeName = ({ billingPeriod, customerId, item }: { readonly customerId: string; readonly billingPeriod: string; readonly item: string | null }): string =>
  `${customerId}, ${billingPeriod}${item === null ? "" : ` · ${item}`}`

/** A cap as people speak of it. */
export const capName = ({ billingPeriod, currency, namespace }: { readonly billingPeriod: string; readonly currency: string; readonly namespace: string }): string =>
  `${billingPeriod} ${currency.toUpperCase()}, ${namespace}`

/** Words of the ledger as people write them. */
export const words = (state: string): string => state.replaceAll("_", " ")
