/** Standard error as a screen: lines that stay, and below them a block of lines that is drawn again and again. */
import { Context, Effect, type Scope } from "effect"
import { Tty } from "./Tty.ts"

/** The screen. */
export interface Screen {
  /** Writes text that stays, above the block. */
  readonly print: (text: string) => void
  /** Draws these lines in place of those that are there. */
  readonly show: (lines: ReadonlyArray<string>) => void
  /** Takes the block away; `keep` leaves its last lines where they are. */
  readonly end: (keep: boolean) => void
}

const hideCursor = "\u001b[?25l"
const showCursor = "\u001b[?25h"
const eraseDown = "\u001b[0J"
const eraseRight = "\u001b[K"

/** A screen on whatever writes to a terminal. Without a block it writes what it is given and no control sequence. */
export const makeScreen = (write: (text: string) => void): Screen => {
  let block: ReadonlyArray<string> | undefined
  const home = () => block === undefined ? hideCursor : block.length === 0 ? "" : `\r\u001b[${block.length}A`
  const text = (lines: ReadonlyArray<string>) => lines.map((line) => `${line}${eraseRight}\n`).join("")
  return {
    print: (said) => write(block === undefined ? `${said}\n` : `${home()}${eraseDown}${said}\n${text(block)}`),
    show: (lines) => {
      write(`${home()}${text(lines)}${eraseDown}`)
      block = lines
    },
    end: (keep) => {
      if (block === undefined) return
      write(keep ? showCursor : `${home()}${eraseDown}${showCursor}`)
      block = undefined
    }
  }
}

/** The program's own. */
export const Screen = Context.Reference<Screen>("@purser/cli/Screen", {
  defaultValue: () => makeScreen((text) => void process.stderr.write(text))
})

/** Draws what a look gives, several times a second, until the scope closes; the last look stays. */
export const live = (look: Effect.Effect<ReadonlyArray<string>>): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function*() {
    const screen = yield* Screen
    const tty = yield* Tty
    // What is above the window cannot be drawn again.
    const draw = Effect.map(look, (lines) => screen.show(lines.slice(0, Math.max(1, tty.rows - 1))))
    yield* Effect.addFinalizer(() => Effect.andThen(draw, Effect.sync(() => screen.end(true))))
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(draw, Effect.sleep(250))))
  })
