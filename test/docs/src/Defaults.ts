/** Defaults of settings, as the sources give them: those that are written beside their key. */
import { filesIn, readText } from "./Pages.ts"

const named = (sources: ReadonlyArray<string>, name: string): string | undefined => {
  const form = new RegExp(`\\bconst ${name}(?:: [^=]+)? = "([^"]*)"`)
  return sources.map((text) => form.exec(text)?.[1]).find((value) => value !== undefined)
}

/** A default as the page writes it: `Duration.seconds(30)` is `30 seconds`, `10_000` is `10000`. */
const written = (code: string, sources: ReadonlyArray<string>): string | undefined => {
  const text = code.replace(/ as const$/, "").trim()
  const duration = /^Duration\.(\w+)\(([\d_]+)\)$/.exec(text)
  if (duration !== null) {
    const count = duration[2]!.replaceAll("_", "")
    return `${count} ${count === "1" ? duration[1]!.replace(/s$/, "") : duration[1]!}`
  }
  if (/^[\d_.]+$/.test(text)) return text.replaceAll("_", "")
  if (text === "true" || text === "false") return text
  return /^"([^"]*)"$/.exec(text)?.[1] ?? (/^\w+$/.test(text) ? named(sources, text) : undefined)
}

/** Key and default, for each place that writes one beside the other. An empty text stands for none. */
export const defaultsInCode = (): ReadonlyArray<readonly [string, string]> => {
  const sources = ["packages", "apps"].flatMap(filesIn).filter((path) => /^(?:packages|apps)\/[^/]+\/src\/.*\.ts$/.test(path)).map(readText)
  return sources.flatMap((text) =>
    [...text.matchAll(/"(PURSER_[A-Z0-9_]+)"/g)].flatMap((match) => {
      const [, key] = match
      // What is beside the key ends at the next one.
      const beside = text.slice(match.index + match[0].length, match.index + 240).split("\"PURSER_")[0]!
      const code = /withDefault\(((?:[^()]|\([^()]*\))*)\)/.exec(beside)?.[1] ?? /^, \{[^}]*\bdefault: ([\w."]+)/.exec(beside)?.[1]
      const value = code === undefined ? undefined : written(code, sources)
      return value === undefined ? [] : [[key!, value === "" ? "none" : value] as const]
    })
  )
}

/** How a key is read: the reader's name, and the type as the page writes it where the reader says all of it. */
export interface ReadAs {
  readonly key: string
  readonly kind: string
  readonly type: string | undefined
}

const number = (code: string) => code.replaceAll("_", "")
const range = (minimum: string, maximum: string) => `${number(minimum)} to ${number(maximum)}`
const plainTypes: Readonly<Record<string, string>> = { Duration: "duration", Boolean: "switch", Port: "1 to 65535" }

/** For each place that reads a setting by one of Effect's own readers, or by one of the few that the packages have. */
export const typesInCode = (): ReadonlyArray<ReadAs> =>
  ["packages", "apps"].flatMap(filesIn).filter((path) => /^(?:packages|apps)\/[^/]+\/src\/.*\.ts$/.test(path)).map(readText).flatMap((text): ReadonlyArray<ReadAs> => [
    ...[...text.matchAll(/\b(?:Config\.)?(Duration|Boolean|Int|Redacted|Port|whole)\("(PURSER_[A-Z0-9_]+)"/g)].map(([, kind, key]) => ({ key: key!, kind: kind!, type: plainTypes[kind!] })),
    ...[...text.matchAll(/\bboundedInt\("(PURSER_[A-Z0-9_]+)", \{ minimum: ([\d_]+), maximum: ([\d_]+)/g)].map(([, key, minimum, maximum]) => ({ key: key!, kind: "range", type: range(minimum!, maximum!) })),
    ...[...text.matchAll(/isBetween\(\{ minimum: ([\d_]+), maximum: ([\d_]+) \}\)\), "(PURSER_[A-Z0-9_]+)"/g)].map(([, minimum, maximum, key]) => ({ key: key!, kind: "range", type: range(minimum!, maximum!) })),
    ...[...text.matchAll(/isGreaterThanOrEqualTo\(\d+\)\), "(PURSER_[A-Z0-9_]+)"/g)].map(([, key]) => ({ key: key!, kind: "whole", type: undefined })),
    ...[...text.matchAll(/\bConfig\.Literals\(\[([^\]]*)\], "(PURSER_[A-Z0-9_]+)"/g)].map(([, list, key]) => ({
      key: key!, kind: "Literals", type: [...list!.matchAll(/"([^"]*)"/g)].map((match) => `\`${match[1]!}\``).join(", ")
    }))
  ])

/**
 * The page of the settings with types and defaults as the code has them; meanings, and what the code computes or reads as text, are as the
 * page has them.
 */
export const configurationPage = (page: string): string => {
  const defaults = new Map(defaultsInCode())
  const types = new Map(typesInCode().flatMap(({ key, type }) => type === undefined ? [] : [[key, type]]))
  return page.replaceAll(/^\| `(PURSER_[A-Z0-9_]+)` \| ([^|]+) \| ([^|]+) \|/gm, (_, key: string, type: string, value: string) => {
    const inCode = defaults.get(key)
    return `| \`${key}\` | ${types.get(key) ?? type} | ${inCode === undefined ? value : inCode === "none" ? inCode : `\`${inCode}\``} |`
  })
}
