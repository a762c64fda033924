/**
 * Fields that are written twice in one JSON object. `JSON.parse` keeps the last of them without a word, others the first, so
 * that two programs read two amounts in one message; here such a message is none.
 *
 * That there are any is told by counting: a text writes as many names as its value has, or one is gone. Only then is the
 * text read by name. Texts are those that `JSON.parse` took, which is relied upon.
 */

const quote = 0x22
const backslash = 0x5c
const colon = 0x3a

/** Where the string that begins at `from` ends: the place of its closing quote. */
const endOfString = (text: string, from: number): number => {
  for (let at = text.indexOf("\"", from + 1);; at = text.indexOf("\"", at + 1)) {
    let slashes = 0
    while (text.charCodeAt(at - 1 - slashes) === backslash) slashes++
    if (slashes % 2 === 0) return at
  }
}

/** Whether the string that ends at `end` is a name. */
const isName = (text: string, end: number): boolean => {
  let at = end + 1
  // Tab, line feed, carriage return and blank are all that JSON has between two tokens.
  while (text.charCodeAt(at) <= 0x20) at++
  return text.charCodeAt(at) === colon
}

/** Colons outside of strings: each stands behind a name. One character after the other is quicker than `indexOf` for strings as short as ours. */
const namesWritten = (text: string): number => {
  let names = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === colon) names++
    if (code !== quote) continue
    for (let inside = text.charCodeAt(++at); inside !== quote; inside = text.charCodeAt(++at)) if (inside === backslash) at++
  }
  return names
}

const namesKept = (json: object): number => {
  let names = 0
  // No recursion: what is read may be as deep as it is long.
  const open: Array<object> = [json]
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (Array.isArray(value)) {
      for (const element of value) if (typeof element === "object" && element !== null) open.push(element)
      continue
    }
    for (const name in value) {
      names++
      const field: unknown = (value as Record<string, unknown>)[name]
      if (typeof field === "object" && field !== null) open.push(field)
    }
  }
  return names
}

/** The item of a frame, or what is around the items. */
export type Place = number | "frame"

/** What stands twice. */
export interface Twice {
  /** The first name that does. */
  readonly name: string
  /** The names of the item itself, or of the frame itself, that do: nobody knows which of two ids is meant. */
  readonly own: ReadonlySet<string>
}

/** An object or array that is being read. */
interface Open {
  /** The names so far; an array has none. */
  readonly names: Set<string> | undefined
  /** The name or the index of what is read now. */
  at: string | number
}

const placeOf = ([frame, items, item]: ReadonlyArray<Open>): Place =>
  item !== undefined && frame?.at === "items" && typeof items?.at === "number" ? items.at : "frame"

const findTwice = (text: string): ReadonlyMap<Place, Twice> => {
  const found = new Map<Place, { readonly name: string; readonly own: Set<string> }>()
  const open: Array<Open> = []
  const note = (name: string) => {
    const place = placeOf(open)
    const twice = found.get(place) ?? { name, own: new Set() }
    found.set(place, twice)
    if (open.length === (place === "frame" ? 1 : 3)) twice.own.add(name)
  }
  for (let at = 0; at < text.length; at++) {
    const inside = open.at(-1)
    switch (text[at]) {
      case "{":
        open.push({ names: new Set(), at: "" })
        break
      case "[":
        open.push({ names: undefined, at: 0 })
        break
      case "}":
      case "]":
        open.pop()
        break
      case ",":
        if (typeof inside?.at === "number") inside.at += 1
        break
      case "\"": {
        const end = endOfString(text, at)
        if (inside?.names !== undefined && isName(text, end)) {
          const name = String(JSON.parse(text.slice(at, end + 1)))
          if (inside.names.has(name)) note(name)
          inside.names.add(name)
          inside.at = name
        }
        at = end
      }
    }
  }
  return found
}

/** What stands twice in each item, and in what is around them; `undefined` when nothing does. */
export const writtenTwice = (text: string, json: object): ReadonlyMap<Place, Twice> | undefined =>
  namesWritten(text) === namesKept(json) ? undefined : findTwice(text)
