/** Pages that somebody follows: their commands (`sh run`) in a shell, and what they say that these print. */
import { assert, it } from "@effect/vitest"
import { StripeSim } from "@purser/stripe-sim"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { blocksOf, readText } from "../src/Pages.ts"

/** The steps of a page: commands, and what the block after them says. */
const stepsOf = (page: string) => {
  const blocks = blocksOf(readText(page))
  return blocks.flatMap(({ language, text, title }, index) => {
    const next = blocks[index + 1]
    return language === "sh" && title === "run" ? [{ commands: text, prints: next?.language === "text" ? next.text : undefined }] : []
  })
}

const plain = (text: string) => text.split("\n").map((line) => line.trimEnd()).join("\n").trim()

/** A page's `…` stands for anything. */
const asPattern = (text: string) => new RegExp(`^${plain(text).split("…").map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("[^]*")}$`)

const shell = (script: string, env: Readonly<Record<string, string>>, cwd: string): Effect.Effect<string> =>
  Effect.callback((resume) => {
    const own = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("PURSER_")))
    const child = spawn("bash", ["-c", script], { cwd, env: { ...own, ...env }, stdio: ["ignore", "pipe", "ignore"] })
    let out = ""
    child.stdout.on("data", (data) => out += String(data))
    child.on("close", () => resume(Effect.succeed(out)))
  })

const followed = Effect.fnUntraced(function*(page: string) {
  const steps = stepsOf(page)
  const sim = yield* StripeSim
  const folder = yield* Effect.acquireRelease(Effect.sync(() => mkdtempSync(join(tmpdir(), "purser-page-"))), (path) => Effect.sync(() => rmSync(path, { recursive: true })))
  const script = [
    "purser() { \"$NODE\" \"$COMMAND\" \"$@\"; }",
    ...steps.map(({ commands }) => `${commands.replace("http://127.0.0.1:12111", sim.url)}printf '\\n@@@\\n'`)
  ].join("\n")
  const printed = (yield* shell(script, { NODE: process.execPath, COMMAND: process.env["PURSER_TEST_COMMAND"]!, PURSER_PGLITE_FSYNC: "false" }, folder)).split("\n@@@\n")
  for (const [index, { commands, prints }] of steps.entries()) {
    if (prints !== undefined) assert.match(plain(printed[index] ?? ""), asPattern(prints), commands)
  }
  return { steps: steps.length, books: (yield* sim.books).map(({ customer, payments }) => [customer, payments]).sort() }
})

it.live("the tutorial does what it says", () =>
  Effect.gen(function*() {
    assert.deepStrictEqual(yield* followed("docs/tutorial.md"), { steps: 8, books: [["acme", 1], ["birch", 1], ["cedar", 1]] })
  }).pipe(Effect.scoped, Effect.provide(StripeSim.layer())), 180_000)

it.live("the keys are made as the guide says", () =>
  Effect.gen(function*() {
    assert.deepStrictEqual(yield* followed("docs/how-to/curve-keys.md"), { steps: 2, books: [] })
  }).pipe(Effect.scoped, Effect.provide(StripeSim.layer())), 60_000)
