/** What the threat model says is shown by a test: the file is there, and has a test of that title. */
import { assert, describe, it } from "@effect/vitest"
import { kindOf, readText, resolved } from "../src/Pages.ts"

const page = "docs/threat-model.md"

/** Links to tests whose file is not there, or holds no such title as a text of its own. */
const unshown = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/\[([^\]\n]+)\]\(([^)\s]+\.test\.ts)\)/g)].flatMap(({ 1: title, 2: target }) => {
    const path = resolved(page, target!)
    if (kindOf(path) !== "file") return [`${path} is not there`]
    // A title is what a test is called with, or the name of an input of a property.
    return readText(path).includes(`${JSON.stringify(title)},`) || readText(path).includes(`${JSON.stringify(title)}:`) ? [] : [`${path} has no test "${title}"`]
  })

describe("the threat model", () => {
  const text = readText(page)

  it("names tests that are there", () => assert.deepStrictEqual(unshown(text), []))

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
