/** Bars: how a whole is made up, how it came so over time, and how far a cap is used. */
import { useId } from "react"
import type { Cap, RunSlice } from "../../src/api/Shapes.ts"
import { amount, count, moment, percent, words } from "../format.ts"
import { fillOf, Mark, Patterns, type Tone, toneOf } from "./marks.tsx"

/** A part of a bar. */
export interface Share {
  readonly name: string
  readonly tone: Tone
  readonly n: number
}

/** The ids of React's have a colon, which an address of a pattern has not. */
const usePatternId = () => `p${useId().replaceAll(/\W/g, "")}`

/** A whole in one bar. */
export const StackBar = ({ label, shares }: { readonly label: string; readonly shares: ReadonlyArray<Share> }) => {
  const id = usePatternId()
  const whole = shares.reduce((sum, { n }) => sum + n, 0)
  const text = `${label}: ${shares.filter(({ n }) => n > 0).map(({ n, name }) => `${name} ${count(n)}`).join(", ") || "nothing"}`
  let x = 0
  return (
    <svg className="stackbar" viewBox="0 0 600 12" preserveAspectRatio="none" role="img" aria-label={text}>
      <Patterns id={id} tones={shares.map(({ tone }) => tone)} />
      <rect className="rail" width="600" height="12" />
      {whole === 0 ? null : shares.map(({ n, name, tone }) => {
        const width = n / whole * 600
        const bar = <rect key={name} className="piece" fill={fillOf(id, tone)} x={x} width={width} height="12"><title>{`${name} ${count(n)}`}</title></rect>
        x += width
        return bar
      })}
    </svg>
  )
}

/** The names of a bar's parts with their marks and figures. */
export const Legend = ({ shares }: { readonly shares: ReadonlyArray<Share> }) =>
  <ul className="legend">{shares.map(({ n, name, tone }) => <li key={name}><Mark tone={tone} />{name} <b className="num">{count(n)}</b></li>)}</ul>

/** From what is over to what waits. */
const pasts = ["succeeded", "declined", "requires_action", "rejected", "canceled", "conflict", "quarantined", "processing"] as const

interface Layer {
  readonly name: string
  readonly tone: Tone
  readonly of: (slice: RunSlice) => number
}
const layers: ReadonlyArray<Layer> = [
  ...pasts.map((state): Layer => ({ name: words(state), tone: toneOf(state), of: ({ past }) => past[state] ?? 0 })),
  { name: "in work", tone: "work", of: ({ inWork }) => inWork },
  { name: "waiting", tone: "idle", of: ({ waiting }) => waiting }
]

/** Layers that a drawing names even where they are empty. */
const always = new Set(["succeeded", "in work", "waiting"])
const plot = { width: 600, height: 160 } as const

/** Where the rows of a run stood, from its plan until now. */
export const StackChart = ({ slices }: { readonly slices: ReadonlyArray<RunSlice> }) => {
  const id = usePatternId()
  const last = slices.at(-1)
  const first = slices[0]
  if (last === undefined || first === undefined) return null
  const whole = Math.max(1, layers.reduce((sum, layer) => sum + layer.of(last), 0))
  const shown = layers.filter(({ name, of }) => always.has(name) || slices.some((slice) => of(slice) > 0))
  const width = plot.width / slices.length
  const now = last.atMs
  const shares = shown.map(({ name, of, tone }) => ({ name, tone, n: of(last) }))
  return (
    <figure className="chart" aria-label="States over time">
      <div className="plot">
        <div className="axis-y num" aria-hidden="true"><span>{count(whole)}</span><span>0</span></div>
        <svg viewBox={`0 0 ${plot.width} ${plot.height}`} preserveAspectRatio="none" role="img" aria-label={`States over time; now ${shares.map(({ n, name }) => `${name} ${count(n)}`).join(", ")}`}>
          <Patterns id={id} tones={shown.map(({ tone }) => tone)} />
          {[1, 2, 3].map((quarter) => <line key={quarter} className="line" x1="0" x2={plot.width} y1={plot.height * quarter / 4} y2={plot.height * quarter / 4} />)}
          {slices.map((slice, index) => {
            let y: number = plot.height
            const pieces = shown.flatMap(({ name, of, tone }) => {
              const height = of(slice) / whole * plot.height
              y -= height
              return height === 0 ? [] : [<rect key={name} className="piece" fill={fillOf(id, tone)} x={index * width} y={y} width={width} height={height} />]
            })
            const text = shown.filter(({ of }) => of(slice) > 0).map(({ name, of }) => `${name} ${count(of(slice))}`).join(", ")
            return <g key={slice.atMs}><title>{`${moment(slice.atMs, now)}: ${text}`}</title>{pieces}</g>
          })}
        </svg>
      </div>
      <div className="axis num" aria-hidden="true"><span>{moment(first.atMs, now)}</span><span>{moment(last.atMs, now)}</span></div>
      <figcaption><Legend shares={shares} /></figcaption>
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
      <svg viewBox="0 0 100 5" preserveAspectRatio="none" role="img" aria-label={`${name}: ${percent(cap.reservedMinor, cap.capMinor)} of the cap used`}>
        <rect className="rail" width="100" height="5" />
        <rect className={`fill ${tone}`} width={Math.min(100, share * 100)} height="5" />
        <line className="tick" x1={expected} x2={expected} y1="0" y2="5" />
      </svg>
      <div className="gauge-foot num"><span>{amount(cap.reservedMinor, cap.currency)} used ({percent(cap.reservedMinor, cap.capMinor)})</span><span>cap {amount(cap.capMinor, cap.currency)} <span className="code">{cap.currency.toUpperCase()}</span></span></div>
    </div>
  )
}

/** Events of the last seconds. */
export const Spark = ({ values }: { readonly values: ReadonlyArray<number> }) => {
  const most = Math.max(1, ...values)
  const points = values.map((value, index) => `${index},${(19 - value / most * 18).toFixed(1)}`).join(" ")
  return <svg className="spark" viewBox={`0 0 ${Math.max(2, values.length)} 20`} preserveAspectRatio="none" aria-hidden="true"><polyline points={points} /></svg>
}
