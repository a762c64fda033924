/** The checks are checked: one violation of each kind is planted in text that no disk holds, and must be found. */
import { describe, expect, it } from "vitest"
import { apiReport } from "./api.ts"
import { banViolations, bans } from "./bans.ts"
import { strip } from "./code.ts"
import { importViolations } from "./imports.ts"
import { configKeysOf, errorIdViolations, errorsOf, exportsOf, lengthViolations, serviceIdViolations } from "./names.ts"
import { errorPageViolations, exampleOf, keysOnPage, listViolations, placesOn } from "./pages.ts"
import { surfaceViolations } from "./snapshot.ts"
import type { Package, SourceFile } from "./workspace.ts"

const source = (text: string, path = "packages/engine/src/Planted.ts"): SourceFile => ({ path, text })
const engine = (...files: ReadonlyArray<SourceFile>): Package => ({
  folder: "packages/engine",
  manifest: {
    name: "@purser/engine",
    version: "1.0.0",
    exports: { ".": "./src/index.ts" },
    dependencies: { "@purser/core": "*", "@purser/stripe": "*" },
    peerDependencies: { effect: "*" },
    devDependencies: { vitest: "*" }
  },
  files
})
const allowed = { workspace: ["@purser/core"], npm: ["effect"], node: [] }
const imports = (text: string, path?: string) => importViolations(engine(source(text, path)), allowed)

describe("imports", () => {
  it.each([
    ["a driver in the engine", `import { StripeGateway } from "@purser/stripe"`, "against the arrow"],
    ["a type of a driver", `import type { StripeGateway } from "@purser/stripe"`, "against the arrow"],
    ["a re-export", `export * from "@purser/stripe"`, "against the arrow"],
    ["an import that runs late", `const load = () => import("@purser/stripe")`, "against the arrow"],
    ["an import over several lines", `import {\n  StripeGateway\n} from "@purser/stripe"`, "against the arrow"],
    ["an import inside a template", "const text = `${import(\"@purser/stripe\")}`", "against the arrow"],
    ["a package that nobody declared", `import "pg"`, "not declared"],
    ["a package that only tests may use", `import { it } from "vitest"`, "not declared"],
    ["a path out of the package", `import { Ledger } from "../../core/src/Ledger.ts"`, "leaves its package"],
    ["all of the platform", `import { NodeServices } from "@effect/platform-node"`, "import the module by its path"],
    ["a sealed module", `import { x } from "@purser/core/internal/idProblem"`, "sealed"],
    ["a built-in module", `import { readFileSync } from "node:fs"`, "built-in"],
    ["a built-in module without its prefix", `import { readFileSync } from "fs"`, "built-in"]
  ])("%s is found", (_, text, problem) => {
    expect(imports(text)).toEqual([expect.stringContaining(problem)])
  })

  it.each([
    ["what the table allows", `import { Ledger } from "@purser/core"\nimport { TestClock } from "effect/testing"`],
    ["a neighbour", `import { x } from "./internal/x.ts"`],
    ["a comment", `// import { StripeGateway } from "@purser/stripe"`],
    ["a text", `const text = "import '@purser/stripe'"\nconst more = 'from "@purser/stripe"'`]
  ])("%s is no violation", (_, text) => {
    expect(imports(text)).toEqual([])
  })

  it("a bundled command holds what it imports, and must declare it", () => {
    const bundled = (text: string) => {
      const { manifest: { exports: _, ...manifest }, ...pkg } = engine(source(text))
      return importViolations({ ...pkg, manifest }, { ...allowed, npm: ["vitest", "pg"] })
    }
    expect(bundled(`import "vitest"`)).toEqual([])
    expect(bundled(`import "pg"`)).toEqual([expect.stringContaining("not declared")])
  })

  it("tests may import more, and must declare it", () => {
    expect(imports(`import { it } from "vitest"\nimport "node:fs"\nimport "@purser/engine"`, "packages/engine/test/a.test.ts")).toEqual([])
    expect(imports(`import "pg"`, "packages/engine/test/a.test.ts")).toEqual([expect.stringContaining("not declared")])
  })
})

describe("bans", () => {
  const planted: Readonly<Record<string, string>> = {
    "Date.now": "const at = Date.now()",
    "new Date()": "const at = new Date()",
    "Math.random": "const x = Math.random()",
    setTimeout: "setInterval(f, 10)",
    console: "console.log(1)",
    "process.env": `const x = process.env["X"]`,
    async: "const f = async () => 1",
    try: "try { f() } catch {}",
    "as any": "const x = y as any",
    "ts-ignore": "// @ts-expect-error because\nf()",
    "skipped test": `it.skip("x", f)`
  }

  it.each(bans)("$name is found, with what to do instead", ({ instead, name, scope }) => {
    const file = source(planted[name] ?? "", scope === "tests" ? "packages/engine/test/a.test.ts" : undefined)
    expect(banViolations([file], [])).toEqual([expect.stringContaining(`${name} is banned; use ${instead}`)])
  })

  it("comments, texts, arguments and methods of the same name are no violations", () => {
    const text = [
      "// Date.now() and async",
      "const text = \"console.log\" + `try { ${1} } await` + 'Math.random'",
      "const at = new Date(nowMs)",
      "const x = yield* Deferred.await(done)",
      "const pattern = /async \"/.test(text)"
    ].join("\n")
    expect(banViolations([source(text)], [])).toEqual([])
  })

  it("an exception holds for its file and its ban alone, and is found when nothing needs it", () => {
    const file = source("const at = Date.now()")
    const exception = { path: file.path, bans: ["Date.now"], reason: "planted" }
    expect(banViolations([file], [exception])).toEqual([])
    expect(banViolations([source("", file.path)], [exception])).toEqual([expect.stringContaining("not needed")])
    expect(banViolations([source("console.log(Date.now())", file.path)], [exception])).toEqual([expect.stringContaining("console is banned")])
  })
})

describe("reading code", () => {
  it.each([
    ["a regular expression with a quote", `const a = /"/.test(b); console.log(1)`],
    ["a division", `const a = b / c; console.log(1) / 2`],
    ["a class with a slash", `const a = /[/"]/.exec(b); console.log(1)`],
    ["a template in a template", "const a = `x ${`y ${z}`} \"`; console.log(1)"],
    ["braces in a template", "const a = `x ${f({ a: 1 })} \"`; console.log(1)"],
    ["an escaped quote", `const a = "\\""; console.log(1)`],
    ["a comment with a quote", `/* " */ console.log(1)`]
  ])("%s hides nothing behind it", (_, text) => {
    expect(strip(text).code).toContain("console.log(1)")
    expect(strip(text).code).toHaveLength(text.length)
  })
})

describe("names", () => {
  it("a file of too many lines is found", () => {
    expect(lengthViolations([source("x\n".repeat(400))])).toEqual([])
    expect(lengthViolations([source("x\n".repeat(401))])).toEqual([expect.stringContaining("401 lines")])
  })

  it.each([
    ["a wrong id", `export class Planted extends Context.Service<Planted, { readonly a: () => number }>()("@purser/core/Planted") {}`, "must be"],
    ["a service in another file", `export class Other extends Context.Service<Other, {}>()("@purser/engine/Other") {}`, "belongs into Other.ts"],
    ["a wrong id of a reference", `export const Planted = Context.Reference<Hook>("planted", { defaultValue })`, "must be"],
    ["a service that cannot be read", `const make = Context.Service<Planted>("x")`, "could be read"]
  ])("%s is found", (_, text, problem) => {
    expect(serviceIdViolations([source(text)])).toEqual([expect.stringContaining(problem)])
  })

  it("a right id is no violation", () => {
    expect(serviceIdViolations([source(`export class Planted extends Context.Service<Planted, {}>()("@purser/engine/Planted") {}`)])).toEqual([])
  })

  it.each([
    [`class A extends Schema.TaggedError<A>("@purser/core/A")("A", {}) {}`],
    [`class A extends Schema.TaggedError<A>("@purser/engine/B")("A", {}) {}`],
    ["const id = (name: string) => `@purser/core/E/${name}`\nclass A extends Schema.TaggedError<A>(id(\"A\"))(\"A\", {}) {}"]
  ])("a wrong id of an error is found: %s", (text) => {
    expect(errorIdViolations([source(text)])).toEqual([expect.stringContaining("of A must begin")])
  })

  it("exports are read through every star, with types and aliases", () => {
    const files = [
      source(`export * from "./A.ts"\nexport * as B from "./B.ts"`, "packages/x/src/index.ts"),
      source("export const a = 1\nexport type T = 1\nexport interface I {}\nconst c = 1\nexport { c as d, type E }\n// export const no = 1", "packages/x/src/A.ts")
    ]
    expect(exportsOf(files, "packages/x/src/index.ts")).toEqual(["B", "E", "I", "T", "a", "d"])
    expect(surfaceViolations({ x: ["a", "b"] }, { x: ["a", "c"] })).toEqual(["x exports c, which is new", "x does not export b any more"])
  })

  it("an API report holds what users see, through sealed modules, and no comment", () => {
    const report = (sealed: string) =>
      apiReport(new Map([
        ["index.d.ts", `/** Words. */\nexport * from "./A.ts";\n`],
        ["A.d.ts", `import type { T } from "./internal/b.ts";\nexport declare const a: T;\n//# sourceMappingURL=A.d.ts.map`],
        ["internal/b.d.ts", sealed],
        ["internal/c.d.ts", "export type Unseen = 1;"]
      ]))
    expect(report("export type T = \"// no comment\";")).toBe([
      "// A.d.ts", `import type { T } from "./internal/b.ts";`, "export declare const a: T;", "",
      "// index.d.ts", `export * from "./A.ts";`, "",
      "// internal/b.d.ts", "export type T = \"// no comment\";", ""
    ].join("\n"))
  })

  it("keys of the configuration are read from sources alone", () => {
    expect(configKeysOf([source(`Config.Int("PURSER_A_B")\n// see PURSER_C`), source(`"PURSER_D"`, "packages/engine/test/a.test.ts")])).toEqual(["PURSER_A_B", "PURSER_C"])
    expect(listViolations("page", keysOnPage("| `PURSER_A` | x |\n| `PURSER_B` | x |"), ["PURSER_A", "PURSER_C"])).toEqual([
      "page does not list PURSER_C",
      "page lists PURSER_B, which does not exist"
    ])
  })
})

describe("pages", () => {
  it("places are found in backticks and in links", () => {
    expect(placesOn("`packages/core/src/a.ts` and `purser run`, [b](../b.md#c), [d](https://d.example), `packages/x/NNNN_y.ts`", "docs/x")).toEqual([
      "packages/core/src/a.ts",
      "docs/b.md"
    ])
  })

  const errors = errorsOf([source(`
    export class A extends Schema.TaggedError<A>("@purser/engine/E/A")("A", {}) { get isRetryable() { return true }
      get outcome() { return "not_charged" as const } }
    export class E extends Schema.TaggedError<E>("@purser/engine/E")(
      "E", { reason: Schema.Union([A]) }) {}
    class F extends Data.TaggedError("F")<{}> {}`)])
  const page = (row: string, more = "| `F` | x | – | – | x |") => `## \`@purser/engine\`\n### \`E\`\n${row}\n${more}\n## Other\n| \`Z\` | x |`
  const right = "| `A` | text | not charged | yes | act |"

  it.each([
    ["a right page", page(right), []],
    ["a tag that is missing", page(""), ["the page does not list @purser/engine A"]],
    ["a tag too much", page(right, "| `F` | x | – | – | x |\n| `G` | x | – | – | x |"), ["the page lists @purser/engine G, which does not exist"]],
    ["a tag twice", page(`${right}\n${right}`), ["the page lists @purser/engine A twice"]],
    ["a wrong word on retrying", page("| `A` | text | not charged | no | act |"), [expect.stringContaining("says again")]],
    ["a wrong word on the money", page("| `A` | text | unknown | yes | act |"), [expect.stringContaining("says money")]]
  ])("%s", (_, text, violations) => {
    expect(errorPageViolations(text, errors)).toEqual(violations)
  })

  it.each([
    ["no README", undefined, "no README"],
    ["no program", "text", "no program"],
    ["another program", "```ts\nother()\n```\n", "no file of examples/"]
  ])("%s is found", (_, readme, problem) => {
    expect(exampleOf(readme, [{ path: "examples/a.ts", text: "run()\n" }])).toContain(problem)
  })

  it("a program is found whatever its white space, and its output with it", () => {
    expect(exampleOf("```ts\nrun( )\n```\n\n```text\nok\n```\n", [{ path: "examples/a.ts", text: "run(  )\n" }])).toEqual({ path: "examples/a.ts", output: "ok\n" })
    expect(exampleOf("```ts\nrun()\n```\n\n## More\n", [{ path: "examples/a.ts", text: "run()" }])).toEqual({ path: "examples/a.ts", output: undefined })
  })
})
