/** A reader of JSON that keeps every name, by recursion over the grammar: where names stand twice. For texts that `JSON.parse` takes. */

/** Names and indexes that lead to a name that stands twice; the name itself is the last. */
export type Path = ReadonlyArray<string | number>

const token = /\s*(?:("(?:[^"\\]|\\.)*")|([{}[\],:])|([^\s{}[\],:"]+))/y

/** All that stand twice, in the order of their repetitions. */
export const standsTwice = (text: string): ReadonlyArray<Path> => {
  const found: Array<Path> = []
  token.lastIndex = 0
  const next = (): string => {
    const match = token.exec(text)
    if (match === null) throw new Error("not JSON")
    return match[1] ?? match[2] ?? match[3]!
  }
  const value = (path: Path, first: string): void => {
    if (first === "[") {
      let index = 0
      for (let one = next(); one !== "]"; one = next()) {
        if (one === ",") index += 1
        else value([...path, index], one)
      }
    }
    if (first === "{") {
      const names: Array<string> = []
      for (let one = next(); one !== "}"; one = next()) {
        if (one === ",") continue
        const name = JSON.parse(one) as string
        if (names.includes(name)) found.push([...path, name])
        names.push(name)
        next()
        value([...path, name], next())
      }
    }
  }
  value([], next())
  return found
}
