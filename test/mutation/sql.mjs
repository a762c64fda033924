/**
 * `pnpm mutation sql [NAME …]`: takes the guards of `guards.mjs` out of the statements, one at a time, and shows each mutilated program to the
 * tests that are meant to hold it. Prints a table of what noticed, and ends with 1 when something that is no twin of another guard was noticed by none.
 * NAMEs are those of statements, or parts of "FILE STATEMENT GUARD".
 *
 * Nothing on the disk is changed: a module is changed on its way into the test.
 */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { startVitest } from "vitest/node"
import { guards } from "./guards.mjs"

const root = fileURLToPath(new URL("../../", import.meta.url))
const sources = `${root}packages/postgres/src/`

/** The text of a statement's definition: from its name to the next definition, or to the end. */
const placeOf = (text, statement) => {
  const begin = new RegExp(`^(?:export )?const ${statement}\\b`, "m").exec(text)?.index ?? text.indexOf(`create function purser.${statement}(`)
  if (begin < 0) return undefined
  const next = /\n(?:export )?(?:const|default|type|interface) |\n {2}`create /.exec(text.slice(begin + 1))
  return { begin, end: next === null ? text.length : begin + 1 + next.index }
}

/** The module without the guard. */
export const without = (text, { guard, instead, statement }) => {
  const place = placeOf(text, statement)
  if (place === undefined) throw new Error(`there is no ${statement}`)
  const definition = text.slice(place.begin, place.end)
  const parts = definition.split(guard)
  if (parts.length !== 2) throw new Error(`${statement} has "${guard}" ${parts.length - 1} times`)
  return text.slice(0, place.begin) + parts.join(instead) + text.slice(place.end)
}

/** Names the server on which the tests make their databases; those of one schema are copies of one that is made first. */
const server = "PURSER_TEST_DATABASE_URL"
delete process.env[server]
const { default: startServer } = await import(`${root}test/support/postgres.global.ts`)
const stopServer = await startServer()
const url = process.env[server]

/** Runs test files, with a change or without; answers the title of a test that failed, if one did. */
const run = async (tests, change) => {
  const ownServer = change?.file.startsWith("migrations/") === true
  if (ownServer) delete process.env[server]
  else process.env[server] = url
  let applied = false
  const plugin = {
    name: "without-a-guard",
    enforce: "pre",
    // What is kept of this module would be kept without its guard.
    configureVitest: ({ defineCacheKeyGenerator }) => defineCacheKeyGenerator(({ id }) => change !== undefined && id === sources + change.file ? false : undefined),
    transform: (code, id) => {
      if (change === undefined || id !== sources + change.file) return undefined
      applied = true
      return { code: without(code, change), map: null }
    }
  }
  const vitest = await startVitest([], {
    root,
    config: false,
    watch: false,
    include: tests,
    fsModuleCachePath: `${root}test/mutation/node_modules/.cache/modules`,
    globalSetup: ownServer ? [`${root}test/support/postgres.global.ts`] : [],
    // What has one connection shows nothing of this, and takes its time.
    testNamePattern: "[Pp]ostgre",
    bail: 1,
    pool: "forks",
    maxWorkers: 1,
    testTimeout: 20_000,
    hookTimeout: 30_000,
    reporters: [{}]
  }, { plugins: [plugin], logLevel: "silent" })
  const modules = vitest.state.getTestModules()
  const failed = modules.flatMap((module) => [...module.children.allTests("failed")]).map((test) => ({ title: test.fullName, errors: test.result().errors }))
  const fallen = modules.flatMap((module) => [module, ...module.children.allSuites()]).flatMap((part) => part.errors()).concat(vitest.state.getUnhandledErrors())
  const passed = modules.flatMap((module) => [...module.children.allTests("passed")]).length
  await vitest.close()
  if (change !== undefined && !applied) throw new Error(`no test of ${tests.join(", ")} reads ${change.file}`)
  const [first] = failed
  if (first === undefined && fallen.length > 0) throw new Error(`the tests fell over: ${fallen[0].message}`)
  if (first === undefined && passed === 0) throw new Error(`no test of ${tests.join(", ")} was run`)
  const words = first?.errors?.map(({ message, stack }) => `${message} ${stack}`).join(" ") ?? ""
  // A statement that the server does not understand shows nothing.
  if (/\b42(?:601|703|P01|P02|P18|883|804|702)\b|syntax error/.test(words)) throw new Error(`the change is no SQL: ${words.slice(0, 400)}`)
  return first === undefined ? undefined : { title: first.title.replaceAll(" > ", ": "), late: /timed out/i.test(words) }
}

const names = process.argv.slice(2)
const chosen = guards.filter(({ file, guard, statement }) => names.length === 0 || names.some((name) => statement === name || `${file} ${statement} ${guard}`.includes(name)))
const cell = (text) => text.replaceAll("\n", " ").replaceAll(/\s+/g, " ").replaceAll("|", "\\|")

for (const guard of chosen) without(readFileSync(sources + guard.file, "utf8"), guard)
const outcomes = { noticed: 0, same: 0, open: 0 }
const said = async (change) => {
  try {
    for (const tests of change.tests) {
      const found = await run([tests], change)
      if (found === undefined) continue
      outcomes.noticed += 1
      return `${found.title}${found.late ? " (waits for ever)" : ""}`
    }
  } catch (error) {
    outcomes.open += 1
    return `**not tried**: ${error.message}`
  }
  outcomes[change.why === undefined ? "open" : "same"] += 1
  return change.why === undefined ? "**nobody**" : `nobody: ${change.why}`
}
try {
  const broken = await run([...new Set(chosen.flatMap(({ tests }) => tests))])
  if (broken !== undefined) throw new Error(`fails as it is: ${broken.title}`)
  console.log("| statement | without | noticed by |\n|---|---|---|")
  for (const change of chosen) console.log(`| \`${change.statement}\` | \`${cell(change.guard.trim())}\` | ${cell(await said(change))} |`)
} finally {
  await stopServer()
}
console.log(`\n${chosen.length} guards: ${outcomes.noticed} noticed, ${outcomes.same} that mean nothing beside another one, ${outcomes.open} that nobody noticed`)
// Each guard that was noticed has failed a run of tests, which says 1.
process.exitCode = outcomes.open > 0 ? 1 : 0
