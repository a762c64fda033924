/** The tutorial, as somebody follows it: its commands in a shell, and what it says that they print. */
import { assert, it } from "@effect/vitest"
import { StripeSim } from "@purser/stripe-sim"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { blocksOf, readText } from "../src/Pages.ts"

const blocks = blocksOf(readText("docs/tutorial.md"))
const steps = blocks.flatMap(({ language, text, title }, index) => {
  const next = blocks[index + 1]
  return language === "sh" && title === "run" ? [{ commands: text, prints: next?.language === "text" ? next.text : undefined }] : []
})

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

it.live("does what it says", () =>
  Effect.gen(function*() {
    assert.isAbove(steps.length, 6)
    const sim = yield* StripeSim
    const folder = yield* Effect.acquireRelease(Effect.sync(() => mkdtempSync(join(tmpdir(), "purser-tutorial-"))), (path) => Effect.sync(() => rmSync(path, { recursive: true })))
    const script = [
      "purser() { \"$NODE\" \"$COMMAND\" \"$@\"; }",
      ...steps.map(({ commands }) => `${commands.replace("http://127.0.0.1:12111", sim.url)}printf '\\n@@@\\n'`)
    ].join("\n")
    const printed = (yield* shell(script, { NODE: process.execPath, COMMAND: process.env["PURSER_TEST_COMMAND"]!, PURSER_PGLITE_FSYNC: "false" }, folder)).split("\n@@@\n")
    for (const [index, { commands, prints }] of steps.entries()) {
      if (prints !== undefined) assert.match(plain(printed[index] ?? ""), asPattern(prints), commands)
    }
    assert.deepStrictEqual((yield* sim.books).map(({ customer, payments }) => [customer, payments]), [["acme", 1], ["birch", 1], ["cedar", 1]])
  }).pipe(Effect.scoped, Effect.provide(StripeSim.layer())), 120_000)
