/** Options of the bench's programs: help where it is asked for, and a sentence instead of a stack where one is not understood. */
import { parseArgs, type ParseArgsOptionsConfig } from "node:util"

/** What was given. Ends the process with 0 after the usage, with 1 after a complaint. */
export const optionsOf = <const O extends ParseArgsOptionsConfig>(options: O, usage: string) => {
  const complain = (text: string): never => {
    console.error(`${text}; --help shows what there is`)
    process.exit(1)
  }
  if (process.argv.slice(2).some((argument) => argument === "--help" || argument === "-h")) {
    console.log(usage)
    process.exit(0)
  }
  const parse = () => {
    try {
      return parseArgs({ options })
    } catch (error) {
      // The first sentence says what, and the others what a program with arguments of its own would do.
      return complain(error instanceof Error ? error.message.split(/\.\s|\n/)[0]!.replace(/\.$/, "") : String(error))
    }
  }
  return { values: parse().values, complain }
}
