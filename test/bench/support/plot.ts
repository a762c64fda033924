/** Bars with their least and greatest value, as a plain SVG that reads on light and dark pages. */
import type { Figure } from "./Suite.ts"
import { figure, spread } from "./spread.ts"

const width = 760
const labelWidth = 290
const barWidth = 320
const rowHeight = 24

const escaped = (text: string): string => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`)

/** By the name: what is compared with us. */
const isTheirs = (program: string): boolean => /^(?:post|by-hand|graphile|pg-boss|dbos|restate|ideal|pre-built|pgbench|two bare|csv-parse|bare|off)|, raw(?: with charges)?$/.test(program)

const bars = (figures: ReadonlyArray<Figure>, top: number): string => {
  const greatest = Math.max(...figures.flatMap(({ values }) => values))
  const x = (value: number) => labelWidth + barWidth * Math.max(0, value) / (greatest || 1)
  return figures.map(({ program, values }, index) => {
    const { max, median, min } = spread(values)
    const y = top + index * rowHeight
    const middle = y + rowHeight / 2 - 2
    return `<text class="label" x="${labelWidth - 8}" y="${middle + 4}" text-anchor="end">${escaped(program)}</text>` +
      `<rect class="${isTheirs(program) ? "theirs" : "ours"}" x="${labelWidth}" y="${y + 2}" width="${(x(median) - labelWidth).toFixed(1)}" height="${rowHeight - 8}" rx="2"/>` +
      (max > min ? `<path class="spread" d="M${x(min).toFixed(1)} ${middle}H${x(max).toFixed(1)}M${x(min).toFixed(1)} ${middle - 4}v8M${x(max).toFixed(1)} ${middle - 4}v8"/>` : "") +
      `<text class="value" x="${(x(max) + 8).toFixed(1)}" y="${middle + 4}">${escaped(figure(median))}</text>`
  }).join("\n")
}

/** One group of bars for each unit. */
export const plotOf = (title: string, figures: ReadonlyArray<Figure>): string => {
  const units = [...new Set(figures.map(({ what }) => what))]
  const parts: Array<string> = []
  let top = 46
  for (const unit of units) {
    const own = figures.filter(({ values, what }) => what === unit && values.length > 0)
    parts.push(`<text class="unit" x="${labelWidth}" y="${top}">${escaped(unit)}</text>`, bars(own, top + 8))
    top += own.length * rowHeight + 36
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${top}" viewBox="0 0 ${width} ${top}" role="img" aria-label="${escaped(title)}">
<style>
text { font: 13px system-ui, sans-serif; fill: #1f2933 }
.title { font-size: 16px; font-weight: 600 } .unit { font-size: 12px; fill: #52606d } .value { font-variant-numeric: tabular-nums }
.ours { fill: #2b6cb0 } .theirs { fill: #a0aec0 } .spread { stroke: #1f2933; fill: none }
@media (prefers-color-scheme: dark) { text { fill: #e4e7eb } .unit { fill: #9aa5b1 } .ours { fill: #63b3ed } .theirs { fill: #718096 } .spread { stroke: #e4e7eb } }
</style>
<text class="title" x="8" y="22">${escaped(title)}</text>
${parts.join("\n")}
</svg>
`
}
