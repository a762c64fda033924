/** What is wrong with a setting, in one sentence that names its key. */
import type { Config } from "effect"

/** The sentence for a configuration that cannot be read. */
export const settingProblem = ({ message }: Config.ConfigError): string => {
  const key = /at \["([A-Z_]+)"\]/.exec(message)?.[1]
  const problem = message.replaceAll(/\s*at \["[A-Z_]+"\]/g, "").replace(/^SchemaError\((.*)\)$/s, "$1").trim()
  return key === undefined ? `configuration: ${problem}` : `${key} is not set, or its value is not valid: ${problem} (see docs/configuration.md)`
}
