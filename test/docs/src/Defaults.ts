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

/** Key, kind and, of literals, the words that are let in: for each place that reads a setting by one of Effect's own readers. */
export const typesInCode = (): ReadonlyArray<{ readonly key: string; readonly kind: string; readonly literals: ReadonlyArray<string> }> =>
  ["packages", "apps"].flatMap(filesIn).filter((path) => /^(?:packages|apps)\/[^/]+\/src\/.*\.ts$/.test(path)).map(readText).flatMap((text) => [
    ...[...text.matchAll(/\b(?:Config\.)?(Duration|Boolean|Int|boundedInt|Redacted|Port)\("(PURSER_[A-Z0-9_]+)"/g)].map(([, kind, key]) => ({ key: key!, kind: kind!, literals: [] })),
    ...[...text.matchAll(/\bConfig\.Literals\(\[([^\]]*)\], "(PURSER_[A-Z0-9_]+)"/g)].map(([, list, key]) => ({ key: key!, kind: "Literals", literals: [...list!.matchAll(/"([^"]*)"/g)].map((match) => match[1]!) }))
  ])
