/** What stands on the pages is so: links, commands, flags, settings, programs; and what is made of the code is up to date. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Language, Parser } from "web-tree-sitter"
import { parseAllDocuments } from "yaml"
import { commandHelp } from "../src/CliHelp.ts"
import { knownKeys, shellCommands, shellProblems, unknownKeys } from "../src/Commands.ts"
import { generated } from "../src/Generated.ts"
import { outsideLinks } from "../src/Links.ts"
import { blocksOf, filesIn, kindOf, pagePaths, readText, resolved, root } from "../src/Pages.ts"
import { buildSite, deadLinks, slugOf } from "../src/Site.ts"

const pages = pagePaths().map((path) => ({ path, text: readText(path), blocks: blocksOf(readText(path)) }))
const blocks = (...languages: ReadonlyArray<string>) =>
  pages.flatMap(({ blocks, path }) => blocks.filter(({ language }) => languages.includes(language)).map((block) => ({ ...block, where: `${path}:${block.line}` })))
const squeeze = (text: string) => text.replaceAll(/\s+/g, " ").trim()

describe("the site", () => {
  const site = buildSite()

  it("has every page, and no link leads to nothing", () => {
    assert.isAbove(pages.length, 40)
    assert.deepStrictEqual(deadLinks(site), [])
  })

  it("would tell a dead link, and a heading that is not there", () => {
    const broken = new Map(site).set("more.html", "<main><a href=\"docs/nowhere.html\">x</a><a href=\"docs/protocol.html#nothing\">y</a><a href=\"docs/protocol.html#the-promise\">z</a></main>")
    assert.deepStrictEqual(deadLinks(broken), ["more.html: docs/nowhere.html leads to nothing", "more.html: docs/protocol.html#nothing names no heading there"])
    assert.strictEqual(slugOf("`charges`: the weaker guarantee"), "charges-the-weaker-guarantee")
  })

  it("knows which links lead out, for pnpm docs:links to ask them", () => {
    const links = outsideLinks([
      ["a.md", "[x](https://one.test/a#b) `[y](https://two.test)` <https://three.test>\n```sh\n[z](https://four.test)\n```\n"],
      ["b.md", "[x](https://one.test/a) [y](http://127.0.0.1:4242/) [z](docs/a.md)"]
    ])
    assert.deepStrictEqual([...links], [["https://one.test/a", ["a.md", "b.md"]], ["https://three.test", ["a.md"]]])
    assert.isAbove(outsideLinks(pages.map(({ path, text }) => [path, text])).size, 3)
  })

  it("writes a diagram of states as a table", () => {
    assert.include(site.get("docs/protocol.html"), "<tr><td><code>attached</code></td><td><code>succeeded</code></td><td>evidence of the payment</td></tr>")
    assert.deepStrictEqual(blocks("mermaid").filter(({ text }) => !text.startsWith("stateDiagram")).map(({ where }) => where), [])
  })

  it("is listed whole: each page of docs/ is on the first one", () => {
    const listed = readText("docs/index.md")
    const missing = pages.map(({ path }) => path).filter((path) => path.startsWith("docs/") && !/^docs\/(?:index\.md|decisions\/\d)/.test(path)).filter((path) => !listed.includes(`](${path.slice(5)})`))
    assert.deepStrictEqual(missing, [])
  })
})

describe("the pages", () => {
  it.effect("name commands, flags and settings that exist", () =>
    Effect.gen(function*() {
      const commands = yield* commandHelp()
      const keys = knownKeys()
      assert.isAbove(keys.size, 80)
      const problems = pages.flatMap(({ blocks, path, text }) => [
        ...blocks.filter(({ language }) => language === "sh").flatMap((block) => shellProblems(block.text, commands).map((problem) => `${path}:${block.line}: ${problem}`)),
        ...[...text.replaceAll(/^```[^]*?^```$/gm, "").matchAll(/`(purser [a-z][^`\n]*)`/g)].flatMap((match) => shellProblems(match[1]!, commands).map((problem) => `${path}: ${problem}`)),
        ...unknownKeys(text, keys).map((problem) => `${path}: ${problem}`)
      ])
      assert.deepStrictEqual(problems, [])
      // The check itself sees what is wrong.
      assert.deepStrictEqual(
        ["A=1 purser rnu x", "x | purser run f --expected-totl 1", "purser cap opne 2026", "PURSER_STRIPE_KEY=x purser status --json # --nothing"].flatMap((text) => shellProblems(text, commands)),
        ["purser rnu x: there is no such command", "purser run f --expected-totl 1: there is no flag --expected-totl", "purser cap opne 2026: there is no such command"]
      )
      assert.deepStrictEqual(unknownKeys("PURSER_STRIPE_KEY PURSER_STRIPE_KEI PURSER_RUNNER_*", keys), ["there is no setting PURSER_STRIPE_KEI"])
      assert.deepStrictEqual(shellCommands("a 'b c' && x=1 d \\\n e # f\ncat <<'Z'\npurser no\nZ\n"), [["a", "b c"], ["x=1", "d", "e"], ["cat"]])
    }), 60_000)

  it("name files that are there", () => {
    const named = pages.flatMap(({ path, text }) => [...text.matchAll(/`((?:packages|apps|test|scripts|examples|docs|ops)\/[\w./-]+)`/g)].map((match) => [path, match[1]!] as const))
    assert.isAbove(named.length, 50)
    const made = /NNNN|^docs\/site|^ops\/docker\/(?:keys|data)/
    // From the root, or from the page's own package.
    assert.deepStrictEqual(named.filter(([page, path]) => !made.test(path) && kindOf(path) === undefined && kindOf(resolved(page, path)) === undefined), [])
  })

  it("say the language of what is typed or compiled, so that it is looked at", () => {
    // Each of these has a test of its own; what has no language is a picture or what was printed.
    const checked = ["sh", "ts", "go", "python", "json", "csv", "ndjson", "mermaid", "text", ""]
    const all = pages.flatMap(({ blocks, path }) => blocks.map((block) => ({ ...block, where: `${path}:${block.line}` })))
    assert.deepStrictEqual(all.filter(({ language }) => !checked.includes(language)).map(({ where }) => where), [])
    const typed = /^(?:purser|npm|pnpm|node|curl|docker|kubectl|export) /m
    assert.deepStrictEqual(all.filter(({ language, text }) => language === "" && typed.test(text)).map(({ where }) => where), [])
  })

  it("show programs that are files, or marked parts of files, which tests run", () => {
    const files = ["examples", "packages", "apps"].flatMap(filesIn).filter((path) => /(?:^|\/)examples\/.*\.ts$/.test(path)).map(readText)
    const parts = new Set(files.flatMap((text) => [text, ...[...text.matchAll(/^ *\/\/ #region\n([^]*?)^ *\/\/ #endregion$/gm)].map((match) => match[1]!)]).map(squeeze))
    const shown = blocks("ts")
    assert.isAbove(shown.length, 15)
    assert.deepStrictEqual(shown.filter(({ text }) => !parts.has(squeeze(text))).map(({ where }) => where), [])
  })

  it("show Go that keeps its grammar", async () => {
    await Parser.init()
    const parser = new Parser().setLanguage(await Language.load(fileURLToPath(import.meta.resolve("@vscode/tree-sitter-wasm/wasm/tree-sitter-go.wasm"))))
    const isWhole = (text: string) => parser.parse(text)?.rootNode.hasError === false
    const go = blocks("go")
    assert.isAbove(go.length, 0)
    assert.deepStrictEqual(go.filter(({ text }) => !isWhole(text)).map(({ where }) => where), [])
    assert.isFalse(isWhole(go[0]!.text.replace("}", "")))
  })

  it("show shell, Python and data that can be read", () => {
    const shell = blocks("sh").filter(({ text }) => spawnSync("bash", ["-n"], { input: text }).status !== 0)
    assert.deepStrictEqual(shell.map(({ where }) => where), [])
    const python = blocks("python")
    assert.isAbove(python.length, 1)
    if (kindOf("/usr/bin/python3") !== undefined || spawnSync("python3", ["--version"]).status === 0) {
      // Those that need no peer are run.
      const read = "import ast, json, sys\nfor block in json.load(sys.stdin):\n  ast.parse(block['text'])\n  if block['title'] == 'run': exec(block['text'], {})"
      assert.isAbove(python.filter(({ title }) => title === "run").length, 0)
      assert.strictEqual(spawnSync("python3", ["-c", read], { input: JSON.stringify(python), encoding: "utf8" }).stderr, "")
    }
    for (const { text, where } of blocks("json").filter(({ title }) => title === "")) assert.doesNotThrow(() => JSON.parse(text), where)
    assert.deepStrictEqual(blocks("yaml", "yml").flatMap(({ text, where }) => [...parseAllDocuments(text)].flatMap(({ errors }) => errors.map(() => where))), [])
  })
})

describe("what is made of the code", () => {
  it("says of every export what it is", () => {
    const rows = readText("docs/reference/api.md").split("\n").filter((line) => line.startsWith("| [`"))
    assert.isAbove(rows.length, 500)
    assert.deepStrictEqual(rows.filter((row) => /\|\s*\|$/.test(row)), [])
  })

  it.effect("is up to date: pnpm docs:write", () =>
    Effect.gen(function*() {
      const files = yield* generated
      if (process.env["UPDATE_EXPORTS"] !== undefined) for (const [path, text] of files) writeFileSync(join(root, path), text)
      const old = [...files].filter(([path, text]) => kindOf(path) === undefined || readText(path) !== text).map(([path]) => path)
      assert.deepStrictEqual(old, [], "made anew by pnpm docs:write, or UPDATE_EXPORTS=1 vitest run test/docs")
    }), 60_000)
})
