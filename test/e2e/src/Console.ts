/** The console as a process, and a browser in front of it. */
import { Effect } from "effect"
import { existsSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { type Browser, chromium, type Page } from "playwright-core"
import type { Desk } from "./Desk.ts"

/** `purser console` at a desk, on a free port; answers its address. */
export const startConsole = Effect.fnUntraced(function*(at: Desk, args: ReadonlyArray<string> = [], env: Readonly<Record<string, string>> = {}) {
  const running = yield* at.start(["console", "--port", "0", ...args], env)
  const said = yield* running.says("console on ")
  return { running, url: /console on (http:\/\/\S+?),/.exec(said)![1]! }
})

/** Debian's Chromium, or the one that is named. */
const executablePath = process.env["PURSER_TEST_CHROMIUM"] ?? "/usr/bin/chromium"

/** A browser without a window. */
export const browser = Effect.acquireRelease(
  Effect.promise(() => {
    if (!existsSync(executablePath)) throw new Error(`there is no browser at ${executablePath}; PURSER_TEST_CHROMIUM names another`)
    return chromium.launch({
      executablePath,
      args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
    })
  }),
  (opened: Browser) => Effect.promise(() => opened.close())
)

/** Where pictures of a test are kept. */
const pictures = fileURLToPath(new URL("../../../node_modules/.cache/console-pictures/", import.meta.url))

/** Keeps a picture of the whole page. */
export const picture = (page: Page, name: string): Promise<unknown> => {
  mkdirSync(pictures, { recursive: true })
  return page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true })
}
