/** The marks of states: each has a colour, a shape and, where it fills an area, a pattern of its own, so that no two are told apart by colour alone. */

/** What a mark stands for; the word stands beside it always. */
export type Tone = "good" | "bad" | "warn" | "refused" | "void" | "clash" | "held" | "later" | "work" | "made" | "idle" | "rest"

/** Which mark a state has. */
export const toneOf = (state: string): Tone => {
  switch (state) {
    case "succeeded":
    case "finished":
    case "beating":
    case "done":
      return "good"
    case "declined":
    case "failed":
    case "silent":
      return "bad"
    case "requires_action":
    case "paused":
    case "canceling":
      return "warn"
    case "rejected":
      return "refused"
    case "canceled":
    case "stopped":
      return "void"
    case "conflict":
    case "interrupted":
      return "clash"
    case "quarantined":
      return "held"
    case "processing":
      return "later"
    case "claimed":
    case "in work":
    case "running":
      return "work"
    case "attached":
      return "made"
    default:
      return "idle"
  }
}

const shapes: Readonly<Record<Tone, string>> = {
  good: "M5 .5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9z",
  bad: "M5 0L10 5L5 10L0 5z",
  warn: "M5 .5L10 9.5H0z",
  refused: "M3 .5H7L9.5 3V7L7 9.5H3L.5 7V3z",
  void: "M2 0L5 3L8 0L10 2L7 5L10 8L8 10L5 7L2 10L0 8L3 5L0 2z",
  clash: "M0 .5H10L5 9.5z",
  held: "M1 1H4V9H1zM6 1H9V9H6z",
  later: "M5 .5a4.5 4.5 0 0 0 0 9z M6.2 .8a4.5 4.5 0 0 1 0 8.4z",
  work: "M1 1H9V9H1z",
  made: "M1 1H9V3.2H1zM1 4.2H9V6.4H1zM1 7.4H9V9.6H1z",
  idle: "M.5 .5H9.5V9.5H.5zM2 2V8H8V2z",
  rest: "M0 4H10V6H0z"
}

/** The mark. */
export const Mark = ({ tone }: { readonly tone: Tone }) =>
  <svg className={`mark ${tone}`} viewBox="0 0 10 10" aria-hidden="true"><path fillRule="evenodd" d={shapes[tone]} /></svg>

/** Strokes over the colour, in a square of eight. What is paid and what is in work is plain, and what waits is hardly more than the ground. */
const strokes: Readonly<Partial<Record<Tone, string>>> = {
  bad: "M-2 6L6-2M2 10L10 2",
  warn: "M0 4H8",
  refused: "M-2 2L6 10M2-2L10 6",
  void: "M0 0L8 8M8 0L0 8",
  clash: "M4 0V8",
  held: "M2 0V8M6 0V8",
  later: "M0 2H8M0 6H8",
  made: "M0 7H8"
}

/** The patterns of a drawing; an id stands before each, so that drawings do not share them. */
export const Patterns = ({ id, tones }: { readonly id: string; readonly tones: ReadonlyArray<Tone> }) => (
  <defs>
    {[...new Set(tones)].map((tone) => (
      <pattern key={tone} id={`${id}-${tone}`} width="8" height="8" patternUnits="userSpaceOnUse">
        <rect className={`fill ${tone}`} width="8" height="8" />
        {strokes[tone] === undefined ? null : <path className={`stroke ${tone}`} d={strokes[tone]} />}
      </pattern>
    ))}
  </defs>
)

/** What an area is filled with. */
export const fillOf = (id: string, tone: Tone): string => `url(#${id}-${tone})`
