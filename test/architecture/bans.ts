/** What sources do not do, each with what to do instead, and the few places that must. */
import { lineAt, strip } from "./code.ts"
import { isSource, type SourceFile } from "./workspace.ts"

/** `scope`: where the ban holds. `raw` looks at comments and strings too. */
export interface Ban {
  readonly name: string
  readonly pattern: RegExp
  readonly instead: string
  readonly scope: "sources" | "tests" | "all"
  readonly raw?: boolean
}

/** The bans. */
export const bans: ReadonlyArray<Ban> = [
  { name: "Date.now", pattern: /\bDate\.now\b/, instead: "Clock.currentTimeMillis, so that tests can move time", scope: "sources" },
  { name: "new Date()", pattern: /\bnew Date\(\s*\)/, instead: "Clock.currentTimeMillis, so that tests can move time", scope: "sources" },
  { name: "Math.random", pattern: /\bMath\.random\b/, instead: "Random, so that a run can be repeated", scope: "sources" },
  { name: "setTimeout", pattern: /\bset(?:Timeout|Interval)\(/, instead: "Effect.sleep or a Schedule, which are interrupted with their fiber", scope: "sources" },
  { name: "console", pattern: /\bconsole\./, instead: "Effect.log…, or Output in the command", scope: "sources" },
  { name: "process.env", pattern: /\bprocess\.env\b/, instead: "Config, so that a program can give settings without an environment", scope: "sources" },
  { name: "async", pattern: /\basync\b|(?<!\.)\bawait\b/, instead: "Effect.gen; Effect.tryPromise around a foreign promise", scope: "sources" },
  { name: "try", pattern: /\btry\s*\{/, instead: "Effect.try, Result.try or a typed error", scope: "sources" },
  { name: "as any", pattern: /\bas any\b/, instead: "a schema, a guard or a narrower type", scope: "all" },
  { name: "ts-ignore", pattern: /@ts-(?:ignore|nocheck|expect-error)/, instead: "a type that is right", scope: "all", raw: true },
  { name: "skipped test", pattern: /\.(?:skip|skipIf|only|todo|fails)\(/, instead: "a test that runs, or none", scope: "tests" }
]

/** A place where banned things are right, and why. */
export interface Exception {
  readonly path: string
  readonly bans: ReadonlyArray<string>
  readonly reason: string
}

/** The places. One that nothing needs any more is itself a violation. */
export const exceptions: ReadonlyArray<Exception> = [
  { path: "packages/purser/src/Purser.ts", bans: ["async"], reason: "the object for programs without Effect speaks promises" },
  { path: "packages/stripe-sim/src/internal/server.ts", bans: ["setTimeout"], reason: "the far side of a socket lives in real time, whatever a test's clock says" },
  { path: "packages/postgres/src/internal/postgresProcess.ts", bans: ["process.env"], reason: "a child process inherits the environment, less what would mislead PostgreSQL" },
  { path: "apps/cli/src/ui/Tty.ts", bans: ["process.env"], reason: "TERM describes the terminal and is no setting of ours" },
  { path: "apps/demo/src/main.ts", bans: ["process.env"], reason: "it hands the environment on to the programs that it starts" },
  { path: "apps/demo/src/naiveRun.ts", bans: ["Date.now", "process.env", "async", "try"], reason: "it is the naive program that the demo compares with" },
  { path: "apps/demo/src/naiveWorker.ts", bans: ["process.env", "async"], reason: "it is the naive worker that the demo compares with" }
]

const holds = (ban: Ban, file: SourceFile): boolean => {
  switch (ban.scope) {
    case "sources":
      return isSource(file)
    case "tests":
      return !isSource(file)
    case "all":
      return true
  }
}

/** Every banned thing outside the exceptions, and every exception without its thing. */
export const banViolations = (
  files: ReadonlyArray<SourceFile>,
  allowed: ReadonlyArray<Exception> = exceptions
): ReadonlyArray<string> => {
  const unused = new Set(allowed.flatMap(({ bans: names, path }) => names.map((name) => `${path}: the exception for ${name} is not needed any more`)))
  const found = files.flatMap((file) => {
    const { code } = strip(file.text)
    return bans.filter((ban) => holds(ban, file)).flatMap(({ instead, name, pattern, raw }) => {
      const match = pattern.exec(raw === true ? file.text : code)
      if (match === null) return []
      const excepted = allowed.some((exception) => exception.path === file.path && exception.bans.includes(name))
      if (!excepted) return [`${file.path}:${lineAt(file.text, match.index)}: ${name} is banned; use ${instead}`]
      unused.delete(`${file.path}: the exception for ${name} is not needed any more`)
      return []
    })
  })
  return [...found, ...unused]
}
