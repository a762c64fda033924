/** What the threat model says is shown by a test: the file is there, has a test of that title, and is run as often as the page says. */
import { assert, describe, it } from "@effect/vitest"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { kindOf, readText, resolved, root } from "../src/Pages.ts"

const page = "docs/threat-model.md"

/** Links to tests whose file is not there, or holds no such title as a text of its own. */
const unshown = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/\[([^\]\n]+)\]\(([^)\s]+\.test\.ts)\)/g)].flatMap(({ 1: title, 2: target }) => {
    const path = resolved(page, target!)
    if (kindOf(path) !== "file") return [`${path} is not there`]
    // A title is what a test is called with, or the name of an input of a property.
    return readText(path).includes(`${JSON.stringify(title)},`) || readText(path).includes(`${JSON.stringify(title)}:`) ? [] : [`${path} has no test "${title}"`]
  })

/** Links to tests that every run leaves out, without the words that say so; and those words where they are not true. */
const wronglyMarked = (text: string, leftOut: ReadonlyArray<string>): ReadonlyArray<string> =>
  [...text.matchAll(/\]\(([^)\s]+\.test\.ts)\)( \(long run\))?/g)].flatMap(({ 1: target, 2: mark }) => {
    const path = resolved(page, target!)
    return leftOut.includes(path) === (mark !== undefined) ? [] : [`${path} is ${mark === undefined ? "in the long run alone" : "in every run"}`]
  })

describe("the threat model", () => {
  const text = readText(page)

  it("names tests that are there", () => assert.deepStrictEqual(unshown(text), []))

  it("says of a test that every run leaves out that it is in the long run", async () => {
    const config: { readonly default: { readonly test: { readonly exclude: ReadonlyArray<string> } } } = await import(pathToFileURL(join(root, "vitest.config.ts")).href)
    const leftOut = config.default.test.exclude
    assert.include(leftOut, "packages/transport-zeromq/test/kill.test.ts")
    assert.deepStrictEqual(wronglyMarked(text, leftOut), [])
    assert.deepStrictEqual(wronglyMarked("[a](../a.test.ts) [b](../b.test.ts) (long run), [c](../a.test.ts) (long run) [d](../b.test.ts)", ["a.test.ts"]), [
      "a.test.ts is in the long run alone", "b.test.ts is in every run"
    ])
  })

  it("has a test for each threat, and says of each who what is not covered", () => {
    const sections = text.split(/^## /m).slice(1)
    assert.isAbove(sections.length, 7)
    assert.deepStrictEqual(sections.filter((section) => !section.includes("Not covered:")).map((section) => section.split("\n")[0]), [])
    const rows = text.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| what he"))
    assert.isAbove(rows.length, 25)
    assert.deepStrictEqual(rows.filter((row) => !row.includes(".test.ts)")), [])
  })

  it("would tell a file that is gone, and a title that is another one now", () =>
    assert.deepStrictEqual(unshown("[x](../test/gone.test.ts) [no such title](../test/docs/test/threatModel.test.ts)"), [
      "test/gone.test.ts is not there",
      "test/docs/test/threatModel.test.ts has no test \"no such title\""
    ]))
})
