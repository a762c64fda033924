/** A reader with a memory: what it asks for anew, and what it does not. */
import { assert, it } from "@effect/vitest"
import { remembered } from "../src/internal/remembered.ts"

it("remembers what was found, up to so many, and nothing that was not", () => {
  const asked: Array<string> = []
  const read = remembered(3, (text) => (asked.push(text), text.startsWith("no") ? undefined : { text }))
  const since = (...texts: ReadonlyArray<string>) => {
    asked.length = 0
    for (const text of texts) assert.deepStrictEqual(read(text), text.startsWith("no") ? undefined : { text })
    return asked.join(" ")
  }
  assert.strictEqual(since("a", "b", "a", "c", "b", "c"), "a b c")
  assert.strictEqual(read("a"), read("a"))
  assert.strictEqual(since("no1", "no2", "no1", "a", "b", "c"), "no1 no2 no1", "what is nothing is asked for each time, and takes no place")
  assert.strictEqual(since("d", "d", "a", "d"), "d a", "the fourth begins anew")
})
