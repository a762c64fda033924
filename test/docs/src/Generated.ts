/** Every file that is made of the code: the reference of the command, of the API and of the settings, and the shelf of the wire. */
import { Effect } from "effect"
import { apiPage } from "./ApiPage.ts"
import { type CommandHelp, commandHelp } from "./CliHelp.ts"
import { configurationPage } from "./Defaults.ts"
import { readText } from "./Pages.ts"
import { wireFiles } from "./WireShelf.ts"

/** The sections that each command has alike are shown once. */
const ownText = ({ path, text }: CommandHelp) => path.length === 0 ? text : text.replace(/\n\nGLOBAL FLAGS\n(?: .*\n?)*/, "\n").replaceAll(/\n{3,}/g, "\n\n").trimEnd()

const cliPage = (commands: ReadonlyArray<CommandHelp>): string => `# The command

The help of every command, as \`purser COMMAND --help\` prints it. This page is generated (\`pnpm docs:write\`), and a test compares it with the program. Settings, which flags go
before, are in [Configuration](../configuration.md).

The exit status is 0 when all is well, 2 when something was done and not all is as it should be (rows that are not paid, differences that remain), 1 when
the input or the configuration was refused and nothing was sent, 130 when you stopped it.

${commands.map((command) => `## \`${["purser", ...command.path].join(" ")}\`\n\n\`\`\`text\n${ownText(command)}\n\`\`\`\n`).join("\n")}`

/** Files by their path from the root. */
export const generated: Effect.Effect<ReadonlyMap<string, string>> = Effect.map(commandHelp(), (commands) =>
  new Map([["docs/reference/cli.md", cliPage(commands)], ["docs/reference/api.md", apiPage()], ["docs/configuration.md", configurationPage(readText("docs/configuration.md"))], ...wireFiles()]))
