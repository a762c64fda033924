/**
 * Asks every address outside that the pages link to whether it is still there: `pnpm docs:links`. It is no part of a test run, since
 * networks fail; links inside are held by `test/pages.test.ts`.
 */
import { outsideLinks } from "../src/Links.ts"
import { pagePaths, readText } from "../src/Pages.ts"

const patienceMs = 20_000
const atOnce = 8

/** What is wrong with an address, or nothing. A server that wants nothing to do with programs is no dead link. */
const problemOf = async (address: string): Promise<string | undefined> => {
  const ask = (method: "HEAD" | "GET") =>
    fetch(address, { method, redirect: "follow", signal: AbortSignal.timeout(patienceMs), headers: { "user-agent": "purser-docs-links" } })
  try {
    const head = await ask("HEAD")
    const { status } = head.ok ? head : await ask("GET")
    return status < 400 || status === 401 || status === 403 || status === 429 ? undefined : String(status)
  } catch (error) {
    const cause = error instanceof Error ? error.cause ?? error : error
    return cause instanceof Error ? cause.message : String(cause)
  }
}

const queue = [...outsideLinks(pagePaths().map((path) => [path, readText(path)]))]
const count = queue.length
let dead = 0
const work = async () => {
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    const [address, pages] = next
    const problem = await problemOf(address)
    if (problem === undefined) continue
    dead += 1
    console.error(`${address}: ${problem} (${pages.join(", ")})`)
  }
}
await Promise.all(Array.from({ length: atOnce }, work))
console.log(`${count} addresses, ${dead} dead`)
process.exitCode = dead === 0 ? 0 : 1
