/** Charges: a search whose pages are read as one scrolls, however many there are. */
import { useVirtualizer } from "@tanstack/react-virtual"
import { type FormEvent, type KeyboardEvent, useCallback, useEffect, useMemo, useRef, useState } from "react"
import { type ChargeLine, State as States } from "../../src/api/Shapes.ts"
import { call, type Failed, isPassing } from "../client.ts"
import { againMs, useData } from "../data.ts"
import { count, words } from "../format.ts"
import { Legend, type Share, StackBar } from "../parts/charts.tsx"
import { toneOf } from "../parts/marks.tsx"
import { Amount, Head, Id, orderOf, Problem, State, Time } from "../parts/show.tsx"
import { go, to, useRoute } from "../route.ts"

interface Query {
  readonly customer: string
  readonly match: "prefix" | "whole"
  readonly period: string
  readonly state: string
  readonly paymentIntent: string
}

const pageSize = 200
/** Where few rows fit, the search looks through this many pages before it asks whether to go on. */
const emptyPagesMax = 25

const stateOf = (text: string) => text === "" ? undefined : text as (typeof States.literals)[number] | "quarantined"

interface Found {
  readonly rows: ReadonlyArray<ChargeLine>
  readonly next: string | null
  readonly looked: number
  readonly busy: boolean
  readonly failed: Failed | undefined
}

/** The rows that were found so far, and how to get more. */
const useSearch = (query: Query) => {
  const key = JSON.stringify(query)
  const [found, setFound] = useState<Found>({ rows: [], next: null, looked: 0, busy: true, failed: undefined })
  const asked = useRef("")
  const busy = useRef(false)
  const load = useCallback(async (after: string | null, before: Found) => {
    busy.current = true
    const mine = asked.current
    // What went wrong stands until there is an answer.
    let state: Found = { ...before, busy: true }
    setFound(state)
    let next = after
    for (let pages = 0; pages < emptyPagesMax; pages++) {
      const { customer, match, paymentIntent, period, state: wanted } = query
      const here = next
      const called = await call((client) => client.charges.find({
        query: { customer, match, period, state: stateOf(wanted), paymentIntent, limit: pageSize, after: here ?? undefined }
      }))
      if (mine !== asked.current) return
      if (!called.ok) {
        // It goes on from there when it is asked again.
        state = { ...state, failed: called.failed, next: here }
        break
      }
      const { charges, looked, next: place } = called.value
      state = { ...state, rows: [...state.rows, ...charges], next: place, looked: state.looked + looked, failed: undefined }
      if (charges.length > 0 || place === null) break
      next = place
      setFound(state)
    }
    busy.current = false
    setFound({ ...state, busy: false })
  }, [key])
  useEffect(() => {
    asked.current = key
    void load(null, { rows: [], next: null, looked: 0, busy: true, failed: undefined })
  }, [key, load])
  const more = useCallback(() => {
    if (!busy.current && found.next !== null) void load(found.next, found)
  }, [found, load])
  useEffect(() => {
    if (found.busy || found.failed === undefined || !isPassing(found.failed)) return
    const timer = setTimeout(() => void load(found.next, found), againMs)
    return () => clearTimeout(timer)
  }, [found, load])
  return { found, more }
}

const Totals = ({ period }: { readonly period: string }) => {
  const { value } = useData(`totals ${period}`, (client) => client.charges.totals({ query: { period: period === "" ? undefined : period } }), "moves")
  if (value === undefined || value.totals.length === 0) return <div className="totals" />
  const rows = new Map<string, number>()
  for (const { charges, state } of value.totals) rows.set(state, (rows.get(state) ?? 0) + charges)
  const shares: ReadonlyArray<Share> = [...rows].toSorted(([a], [b]) => orderOf(a) - orderOf(b)).map(([name, n]) => ({ name: words(name), tone: toneOf(name), n }))
  return (
    <div className="totals">
      <StackBar label={period === "" ? "All charges by state" : `Charges of ${period} by state`} shares={shares} />
      <Legend shares={shares} />
    </div>
  )
}

const Filters = ({ query }: { readonly query: Query }) => {
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const text = (name: string) => String(form.get(name) ?? "").trim()
    const what = text("what")
    const isObject = /^(?:pi|in|ch|py)_\w+$/.test(what) || what.startsWith("charges:")
    if (/^[0-9a-f]{32}$/.test(what)) {
      go(to("charges", what))
      return
    }
    go(to("charges", undefined, {
      ...(isObject ? { paymentIntent: what } : { customer: what, match: form.get("whole") === null ? undefined : "whole" }),
      period: text("period"),
      state: text("state")
    }))
  }
  return (
    <form className="filters" role="search" onSubmit={submit} key={JSON.stringify(query)}>
      <label className="field grow"><span>Customer, PaymentIntent or charge key</span>
        <input name="what" data-search defaultValue={query.paymentIntent === "" ? query.customer : query.paymentIntent} placeholder="cust_… or pi_…" autoComplete="off" spellCheck={false} />
      </label>
      <label className="check"><input type="checkbox" name="whole" defaultChecked={query.match === "whole"} /><span>whole id</span></label>
      <label className="field"><span>Period</span><input name="period" size={9} defaultValue={query.period} placeholder="2026-07" autoComplete="off" /></label>
      <label className="field"><span>State</span>
        <select name="state" defaultValue={query.state}>
          <option value="">any</option>
          {[...States.literals, "quarantined"].map((state) => <option key={state} value={state}>{words(state)}</option>)}
        </select>
      </label>
      <button type="submit" className="button main">Find</button>
    </form>
  )
}

const Row = ({ charge, now }: { readonly charge: ChargeLine; readonly now: number }) => (
  <>
    <span role="gridcell" className="c-state"><State state={charge.quarantine === null ? charge.state : "quarantined"} /></span>
    <span role="gridcell" className="c-customer">{charge.customerId}{charge.item === null ? null : <span className="dim"> · {charge.item}</span>}{charge.revision === 0 ? null : <span className="dim"> · r{charge.revision}</span>}</span>
    <span role="gridcell" className="c-period">{charge.billingPeriod}</span>
    <span role="gridcell" className="c-amount"><Amount minor={charge.amountMinor} code={charge.currency} /></span>
    <span role="gridcell" className="c-object"><Id id={charge.paymentIntentId} head={14} /></span>
    <span role="gridcell" className="c-detail" title={charge.quarantine ?? charge.detail ?? ""}>{charge.quarantine ?? charge.detail}</span>
    <span role="gridcell" className="c-time"><Time ms={charge.updatedAtMs} now={now} /></span>
  </>
)

const names = ["State", "Customer", "Period", "Amount", "Object", "Detail", "Changed"] as const
const classes = ["c-state", "c-customer", "c-period", "c-amount", "c-object", "c-detail", "c-time"] as const

/** The page. */
export const Charges = () => {
  const route = useRoute()
  const query = useMemo<Query>(() => ({
    customer: route.query.get("customer") ?? "",
    match: route.query.get("match") === "whole" ? "whole" : "prefix",
    period: route.query.get("period") ?? "",
    state: route.query.get("state") ?? "",
    paymentIntent: route.query.get("paymentIntent") ?? ""
  }), [route])
  const { found, more } = useSearch(query)
  const { rows } = found
  const [at, setAt] = useState(0)
  const list = useRef<HTMLDivElement>(null)
  const narrow = typeof matchMedia === "function" && matchMedia("(max-width: 720px)").matches
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => list.current, estimateSize: () => narrow ? 66 : 32, overscan: 12 })
  const items = virtual.getVirtualItems()
  const lastShown = items.at(-1)?.index ?? 0
  useEffect(() => {
    if (!found.busy && found.failed === undefined && found.next !== null && lastShown >= rows.length - 40 && rows.length > 0) more()
  }, [lastShown, rows.length, found.busy, found.failed, found.next, more])
  useEffect(() => setAt(0), [query])

  const move = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity }[event.key]
    const row = rows[at]
    if (event.key === "Enter" && row !== undefined) go(to("charges", row.chargeKey))
    if (step === undefined || rows.length === 0) return
    event.preventDefault()
    const next = Math.min(rows.length - 1, Math.max(0, at + step))
    setAt(next)
    virtual.scrollToIndex(next)
  }
  const again = found.failed !== undefined && isPassing(found.failed)
  const now = Date.now()
  const active = rows[at]
  return (
    <>
      <Head title="Charges" />
      <Filters query={query} />
      <Totals period={query.period} />
      <Problem failed={found.failed} />
      <div className="grid" role="grid" aria-label="Charges" aria-rowcount={found.next === null ? rows.length + 1 : -1} aria-busy={found.busy}
        ref={list} tabIndex={0} onKeyDown={move} aria-activedescendant={active === undefined ? undefined : `row-${active.chargeKey}`}>
        <div className="grid-row grid-head" role="row">{names.map((name, index) => <span key={name} role="columnheader" className={classes[index]}>{name}</span>)}</div>
        <div className="grid-space" role="rowgroup" style={{ height: virtual.getTotalSize() }}>
          {items.map((item) => {
            const charge = rows[item.index]!
            return (
              <div key={charge.chargeKey} id={`row-${charge.chargeKey}`} className="grid-row" role="row" aria-rowindex={item.index + 2} aria-selected={item.index === at}
                style={{ transform: `translateY(${item.start}px)` }} onClick={() => go(to("charges", charge.chargeKey))}>
                <Row charge={charge} now={now} />
              </div>
            )
          })}
        </div>
      </div>
      <p className="foot dim" role="status">
        {rows.length > 0 ? `${count(rows.length)} shown` : found.failed !== undefined ? "Nothing could be read" : found.busy || found.next !== null ? "0 shown" : "No charge fits."}
        {found.looked > rows.length ? `, ${count(found.looked)} looked at` : ""}{found.busy ? ", reading …" : again ? ", asked again by itself" : found.next === null ? "" : ", more below"}
        {!found.busy && found.failed === undefined && found.next !== null && found.looked > rows.length ? <> <button type="button" className="button small" onClick={more}>Look further</button></> : null}
      </p>
    </>
  )
}
