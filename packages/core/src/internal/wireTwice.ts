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
  const open = [json as Record<string, unknown>]
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (Array.isArray(value)) {
      for (const element of value) if (typeof element === "object") open.push(element)
      continue
    }
    // In null there are none.
    for (const name in value) {
      names++
      const field = value[name]
      if (typeof field === "object") open.push(field as Record<string, unknown>)
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
  readonly isArray: boolean
  /** The names so far; an array has none. */
  readonly names: Set<string>
  /** The name of what is read now, in an object. */
  name: string | undefined
  /** Its place in the row. */
  index: number
}

/** Where what is read now stands; something is open. */
const placeOf = (open: ReadonlyArray<Open>): Place => open[0]!.name === "items" && open[1]?.isArray === true ? open[1].index : "frame"

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
    switch (text[at]) {
      case "{":
      case "[":
        open.push({ isArray: text[at] === "[", names: new Set(), name: undefined, index: 0 })
        break
      case "}":
      case "]":
        open.pop()
        break
      case ",":
        open.at(-1)!.index++
        break
      case "\"": {
        const end = endOfString(text, at)
        if (isName(text, end)) {
          const inside = open.at(-1)!
          const name = String(JSON.parse(text.slice(at, end + 1)))
          if (inside.names.has(name)) note(name)
          inside.names.add(name)
          inside.name = name
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
