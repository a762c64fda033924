/** Bars: how a whole is made up, how it came so over time, and how far a cap is used. */
import type { Cap, RunSlice } from "../../src/api/Shapes.ts"
import { amount, count, moment, percent } from "../format.ts"

/** A part of a bar. */
export interface Share {
  readonly name: string
  readonly tone: string
  readonly n: number
}

/** A whole in one bar. */
export const StackBar = ({ label, shares }: { readonly label: string; readonly shares: ReadonlyArray<Share> }) => {
  const whole = shares.reduce((sum, { n }) => sum + n, 0)
  const text = `${label}: ${shares.filter(({ n }) => n > 0).map(({ n, name }) => `${name} ${count(n)}`).join(", ") || "nothing"}`
  let x = 0
  return (
    <svg className="stackbar" viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label={text}>
      <rect className="rail" width="100" height="4" />
      {whole === 0 ? null : shares.map(({ n, name, tone }) => {
        const width = n / whole * 100
        const bar = <rect key={name} className={`fill ${tone}`} x={x} width={width} height="4" />
        x += width
        return bar
      })}
    </svg>
  )
}

const layers = [
  { name: "succeeded", tone: "good", of: (slice: RunSlice) => slice.succeeded },
  { name: "declined", tone: "bad", of: (slice: RunSlice) => slice.declined },
  { name: "other ends", tone: "other", of: (slice: RunSlice) => slice.other },
  { name: "in work", tone: "work", of: (slice: RunSlice) => slice.inWork },
  { name: "waiting", tone: "idle", of: (slice: RunSlice) => slice.waiting }
] as const

/** Where the rows of a run stood, from its plan until now. */
export const StackChart = ({ slices }: { readonly slices: ReadonlyArray<RunSlice> }) => {
  const last = slices.at(-1)
  const first = slices[0]
  if (last === undefined || first === undefined) return null
  const whole = Math.max(1, layers.reduce((sum, layer) => sum + layer.of(last), 0))
  const width = 100 / slices.length
  const now = last.atMs
  return (
    <figure className="chart">
      <svg viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label={`States over time; now ${layers.map(({ name, of }) => `${name} ${count(of(last))}`).join(", ")}`}>
        {[10, 20, 30].map((y) => <line key={y} className="grid" x1="0" x2="100" y1={y} y2={y} />)}
        {slices.map((slice, index) => {
          let y = 40
          return (
            <g key={slice.atMs}>
              {layers.map(({ name, of, tone }) => {
                const height = of(slice) / whole * 40
                y -= height
                return height === 0 ? null : <rect key={name} className={`fill ${tone}`} x={index * width} y={y} width={width * 0.86} height={height} />
              })}
            </g>
          )
        })}
      </svg>
      <div className="axis num" aria-hidden="true"><span>{moment(first.atMs, now)}</span><span>{moment(last.atMs, now)}</span></div>
      <figcaption>
        <ul className="legend">{layers.map(({ name, of, tone }) => <li key={name}><i className={`mark ${tone}`} aria-hidden="true" />{name} <b className="num">{count(of(last))}</b></li>)}</ul>
      </figcaption>
    </figure>
  )
}

/** How far a cap is used, and where the expected total lies. */
export const CapGauge = ({ cap }: { readonly cap: Cap }) => {
  const whole = Number(cap.capMinor)
  const used = Number(cap.reservedMinor)
  const share = whole === 0 ? 1 : used / whole
  const expected = whole === 0 ? 0 : Math.min(100, Number(cap.expectedMinor) / whole * 100)
  const tone = share > 1 ? "bad" : share > 0.95 ? "warn" : "work"
  const name = `${cap.billingPeriod} ${cap.currency.toUpperCase()}`
  return (
    <div className="gauge">
      <div className="gauge-head"><b>{name}</b> <span className="dim">{cap.namespace}{cap.closed ? ", closed" : ""}</span></div>
      <svg viewBox="0 0 100 5" preserveAspectRatio="none" role="img" aria-label={`${name}: ${percent(used, whole)} of the cap used`}>
        <rect className="rail" width="100" height="5" />
        <rect className={`fill ${tone}`} width={Math.min(100, share * 100)} height="5" />
        <line className="tick" x1={expected} x2={expected} y1="0" y2="5" />
      </svg>
      <div className="gauge-foot num"><span>{amount(cap.reservedMinor, cap.currency)} used ({percent(used, whole)})</span><span>cap {amount(cap.capMinor, cap.currency)} <span className="code">{cap.currency.toUpperCase()}</span></span></div>
    </div>
  )
}

/** Events of the last seconds. */
export const Spark = ({ values }: { readonly values: ReadonlyArray<number> }) => {
  const most = Math.max(1, ...values)
  const points = values.map((value, index) => `${index},${(19 - value / most * 18).toFixed(1)}`).join(" ")
  return <svg className="spark" viewBox={`0 0 ${Math.max(2, values.length)} 20`} preserveAspectRatio="none" aria-hidden="true"><polyline points={points} /></svg>
}
