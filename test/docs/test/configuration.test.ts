/** The page of the settings says of a default what the code says, wherever the code writes it beside the key. */
import { assert, it } from "@effect/vitest"
import { defaultsInCode, typesInCode } from "../src/Defaults.ts"
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
  const forms: Readonly<Record<string, RegExp>> = {
    Duration: /^duration$/, Boolean: /^switch$/, Int: /^(?:integer|number|bytes|[\d]+ to [\d]+)/, boundedInt: /^(?:integer|bytes|[\d]+ to [\d]+)/, Port: /^[\d]+ to 65535$/, Redacted: /secret/
  }
  const code = typesInCode()
  assert.isAbove(new Set(code.map(({ key }) => key)).size, 60)
  const problems = code.filter(({ key, kind, literals }) => {
    const type = page.get(key)?.type ?? ""
    return kind === "Literals" ? !literals.every((word) => type.includes(`\`${word}\``)) : !forms[kind]!.test(type)
  })
  assert.deepStrictEqual(problems.map(({ key, kind, literals }) => `${key} is ${kind} ${literals.join(", ")}, the page says ${page.get(key)?.type}`), [])
})
