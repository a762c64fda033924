/** The page of the settings says of a default what the code says, wherever the code writes it beside the key. */
import { assert, it } from "@effect/vitest"
import { configurationPage, defaultsInCode, typesInCode } from "../src/Defaults.ts"
import { readText } from "../src/Pages.ts"

const page = new Map([...readText("docs/configuration.md").matchAll(/^\| `(PURSER_[A-Z0-9_]+)` \| ([^|]+) \| ([^|]+) \| ([^|]+)/gm)].map(([, key, type, value]) => [key!, { type: type!.trim(), value: value!.trim() }]))

it("defaults are those of the code", () => {
  const code = defaultsInCode()
  assert.isAbove(new Set(code.map(([key]) => key)).size, 75)
  assert.deepStrictEqual(code.filter(([key, value]) => page.get(key)?.value.replaceAll("`", "") !== value).map(([key, value]) => `${key}: ${value}, the page says ${page.get(key)?.value}`), [])
})

it("every setting has a type and a default, if it is only that it has none", () => {
  assert.deepStrictEqual([...page].filter(([, { type, value }]) => type === "" || value === "").map(([key]) => key), [])
  assert.strictEqual(page.get("PURSER_LEASE")?.value, "`15 seconds`")
})

it("types are those of the code, wherever it reads them plainly", () => {
  const forms: Readonly<Record<string, RegExp>> = { Int: /^(?:integer|number|[\d]+ to [\d]+)/, whole: /^(?:integer|[\d]+ to [\d]+)/, Redacted: /secret/ }
  const code = typesInCode()
  assert.isAbove(new Set(code.map(({ key }) => key)).size, 75)
  const problems = code.filter(({ key, kind, type }) => {
    const said = page.get(key)?.type ?? ""
    return type === undefined ? !forms[kind]!.test(said) : said !== type
  })
  assert.deepStrictEqual(problems.map(({ key, kind, type }) => `${key} is ${type ?? kind}, the page says ${page.get(key)?.type}`), [])
})

it("a type or a default that is old is written anew, and the meaning stays", () => {
  const text = readText("docs/configuration.md")
  const old = text.replace("| `PURSER_HAND_BACK` | duration | `5 seconds` |", "| `PURSER_HAND_BACK` | text | `1 hour` |").replace("| `PURSER_RUN_PAGE` | 1 to 100000 | `1000` |", "| `PURSER_RUN_PAGE` | integer | `10` |")
  assert.notStrictEqual(old, text)
  assert.strictEqual(configurationPage(old), text)
})
