/** What the command says of itself: the help of every command, read from the program. */
import { program } from "@purser/cli/src/Cli.ts"
import { Effect } from "effect"
import { stripVTControlCharacters } from "node:util"

/** One command: its words behind `purser`, and its help. */
export interface CommandHelp {
  readonly path: ReadonlyArray<string>
  readonly text: string
}

/** The program reads `process.argv` and writes to the global console: both are lent for as long as it runs. */
const helpOf = (path: ReadonlyArray<string>): Effect.Effect<string> =>
  Effect.suspend(() => {
    const [argv, log] = [process.argv, console.log]
    const lines: Array<string> = []
    process.argv = [...argv.slice(0, 2), ...path, "--help"]
    console.log = (...words: ReadonlyArray<unknown>) => void lines.push(words.join(" "))
    return program.pipe(
      Effect.ignore,
      Effect.ensuring(Effect.sync(() => {
        process.argv = argv
        console.log = log
      })),
      Effect.map(() => stripVTControlCharacters(lines.join("\n")).split("\n").map((line) => line.trimEnd()).join("\n").trim())
    )
  })

const sectionOf = (help: string, title: string): ReadonlyArray<string> => {
  const lines = help.split("\n")
  const at = lines.indexOf(title)
  const length = lines.slice(at + 1).findIndex((line) => /^\S/.test(line))
  return at < 0 ? [] : lines.slice(at + 1, length < 0 ? undefined : at + 1 + length)
}

const namesBelow = (help: string) => sectionOf(help, "SUBCOMMANDS").flatMap((line) => /^ {2}([a-z][a-z-]*)/.exec(line)?.[1] ?? [])

/** The flags that a command takes, `--currency` and `-h`, those of every command among them. */
export const flagsOf = ({ text }: CommandHelp): ReadonlyArray<string> =>
  [...sectionOf(text, "FLAGS"), ...sectionOf(text, "GLOBAL FLAGS")].flatMap((line) => /^ {2}(-.*?)(?: {2}|$)/.exec(line)?.[1]?.match(/--?[a-z][a-z-]*/g) ?? [])

/** The command and all that are below it, in the order of their help. */
export const commandHelp = Effect.fnUntraced(function*(path: ReadonlyArray<string> = []): Effect.fn.Return<ReadonlyArray<CommandHelp>> {
  const text = yield* helpOf(path)
  const below = yield* Effect.forEach(namesBelow(text), (name) => commandHelp([...path, name]))
  return [{ path, text }, ...below.flat()]
})
