import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Latch, Layer } from "effect"
import { live, makeScreen, Screen } from "../../src/ui/Screen.ts"
import { Tty } from "../../src/ui/Tty.ts"

const tokens = new RegExp(`${"\u001b"}\\[(?:\\?25[lh]|\\d*[A-Z])|[\\s\\S]`, "g")

/** A terminal that knows the few sequences that the screen uses. */
const terminal = () => {
  let lines: Array<string> = [""]
  let row = 0
  let column = 0
  let cursor = true
  const write = (text: string) => {
    for (const [token] of text.matchAll(tokens)) {
      if (token === "\u001b[?25l") cursor = false
      else if (token === "\u001b[?25h") cursor = true
      else if (token === "\u001b[0J") lines = [...lines.slice(0, row), lines[row]!.slice(0, column)]
      else if (token === "\u001b[K") lines[row] = lines[row]!.slice(0, column)
      else if (token.startsWith("\u001b[")) row -= Number(token.slice(2, -1))
      else if (token === "\r") column = 0
      else if (token === "\n") {
        row += 1
        column = 0
        lines[row] ??= ""
      } else {
        lines[row] = lines[row]!.slice(0, column) + token + lines[row]!.slice(column + 1)
        column += 1
      }
    }
  }
  return { write, seen: () => lines.join("\n"), cursor: () => cursor }
}

describe("the screen", () => {
  it("writes plain text while nothing is drawn", () => {
    let written = ""
    const screen = makeScreen((text) => void (written += text))
    screen.print("a")
    screen.end(true)
    screen.print("b\nc")
    assert.strictEqual(written, "a\nb\nc\n")
  })

  it("keeps what is said above what is drawn, and draws anew in place, longer or shorter", () => {
    const { cursor, seen, write } = terminal()
    const screen = makeScreen(write)
    screen.print("first")
    screen.show(["one long line", "two"])
    assert.isFalse(cursor())
    screen.show(["one", "two", "three"])
    screen.print("said meanwhile\nin two lines")
    screen.show(["1", ""])
    assert.strictEqual(seen(), "first\nsaid meanwhile\nin two lines\n1\n\n")
    screen.end(true)
    screen.print("after")
    assert.deepStrictEqual([seen(), cursor()], ["first\nsaid meanwhile\nin two lines\n1\n\nafter\n", true])
  })

  it("takes the block away when it is not to be kept", () => {
    const { cursor, seen, write } = terminal()
    const screen = makeScreen(write)
    screen.print("first")
    screen.show(["one", "two"])
    screen.end(false)
    screen.print("last")
    assert.deepStrictEqual([seen(), cursor()], ["first\nlast\n", true])
  })
})

describe("a live view", () => {
  it.live("is drawn until its scope closes, no higher than the window, and its last look stays", () => {
    const { cursor, seen, write } = terminal()
    const window = Context.make(Tty, { interactive: false, live: true, output: true, columns: 80, rows: 3, color: false }).pipe(Context.add(Screen, makeScreen(write)))
    return Effect.gen(function*() {
      let looks = 0
      const looked = yield* Latch.make(false)
      const look = Effect.gen(function*() {
        if (++looks === 3) yield* looked.open
        return [`look ${looks}`, "two", "three", "four"]
      })
      yield* Effect.scoped(Effect.andThen(live(look), looked.await))
      assert.deepStrictEqual([seen(), cursor()], [`look ${looks}\ntwo\n`, true])
    }).pipe(Effect.provide(Layer.succeedContext(window)))
  })
})
