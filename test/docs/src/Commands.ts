/** Commands and settings as pages and files for operators write them, held against the program and the page of settings. */
import { type CommandHelp, flagsOf } from "./CliHelp.ts"
import { readText } from "./Pages.ts"

/** Words of one simple command, quotes taken off. */
type Words = ReadonlyArray<string>

/** The simple commands of a shell text. It knows quotes, comments, continued lines, `;`, `&`, `|` and `$(…)`, and leaves here-documents out. */
export const shellCommands = (text: string): ReadonlyArray<Words> => {
  const plain = text.replaceAll(/<<-?\s*'?(\w+)'?([^\n]*)\n[^]*?^\s*\1$/gm, "$2").replaceAll(/\\\n\s*/g, " ")
  const commands: Array<Array<string>> = [[]]
  for (const [token] of plain.matchAll(/#[^\n]*|\$\(|[;&|()\n]|(?:'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^\s;&|()'"])+/g)) {
    if (/^(?:[;&|()\n]|\$\()$/.test(token)) commands.push([])
    else if (!token.startsWith("#")) commands.at(-1)!.push(token.replaceAll(/['"]/g, ""))
  }
  return commands.filter((words) => words.length > 0)
}

const assignment = /^[A-Z_]+=/

/** What stands behind `purser`: at the beginning of a command, or where it names an image that is told a command. */
const pursersOf = (words: Words, known: (word: string) => boolean): ReadonlyArray<Words> => {
  const first = words.findIndex((word) => !assignment.test(word) && word !== "export")
  return words.flatMap((word, index) =>
    word === "purser" && (index === first || known(words[index + 1] ?? "")) ? [words.slice(index + 1)] : [])
}

/** What is wrong with these words behind `purser`. */
export const argumentProblems = (words: Words, commands: ReadonlyArray<CommandHelp>): ReadonlyArray<string> => {
  const named = commands.toSorted((a, b) => b.path.length - a.path.length).find(({ path }) => path.every((word, index) => words[index] === word))!
  const shown = ["purser", ...words].join(" ")
  const rest = words.slice(named.path.length)
  const below = commands.some(({ path }) => path.length === named.path.length + 1 && named.path.every((word, index) => path[index] === word))
  if (named.path.length === 0 && rest[0] !== undefined && !rest[0].startsWith("-") && !/^[A-Z…]/.test(rest[0])) return [`${shown}: there is no such command`]
  if (below && rest[0] !== undefined && /^[a-z-]+$/.test(rest[0]) && !rest[0].startsWith("-") && !named.text.includes(`${named.path.at(-1)} [flags]`)) return [`${shown}: there is no such command`]
  const flags = flagsOf(named)
  return rest.filter((word) => /^--?[a-z]/.test(word)).flatMap((word) => {
    const flag = word.split("=")[0]!
    return flags.includes(flag) || flags.includes(flag.replace(/^--no-/, "--")) ? [] : [`${shown}: there is no flag ${flag}`]
  })
}

/** What is wrong with the commands of a shell text. */
export const shellProblems = (text: string, commands: ReadonlyArray<CommandHelp>): ReadonlyArray<string> => {
  const known = (word: string) => commands.some(({ path }) => path[0] === word)
  return shellCommands(text).flatMap((words) => pursersOf(words, known)).flatMap((words) => argumentProblems(words, commands))
}

/** Settings on the page of the configuration. */
export const knownKeys = (): ReadonlySet<string> => new Set([...readText("docs/configuration.md").matchAll(/^\| `(PURSER_[A-Z0-9_]+)`/gm)].map((match) => match[1]!))

/** Settings that a text speaks of and that do not exist. Those of test runs (`PURSER_TEST_…`, `PURSER_FUZZ_…`) are no settings of the program. */
export const unknownKeys = (text: string, known: ReadonlySet<string>): ReadonlyArray<string> =>
  [...new Set(text.match(/\bPURSER_[A-Z0-9_]*[A-Z0-9]\b(?![_*])/g) ?? [])].filter((key) => !known.has(key) && !/^PURSER_(?:TEST|FUZZ)_/.test(key)).map((key) => `there is no setting ${key}`)
