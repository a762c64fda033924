/**
 * Source text without what is not code, so that a search meets no comment and no string. It tells comments, strings,
 * templates and regular expressions apart and nothing else; line breaks stay, so that line numbers do too.
 */

/** What is left: `code` has neither comments nor the insides of strings, `strings` has strings whole. */
export interface Stripped {
  readonly code: string
  readonly strings: string
}

const blank = (text: string) => text.replaceAll(/[^\n]/g, " ")
// After one of these a slash begins a regular expression; after a name or a closing bracket it divides.
const beforeRegExp = /(?:^|[([{},;=:?!&|+\-*%<>~]|\b(?:return|typeof|case|in|of))\s*$/

/** Where the literal that begins at `at` ends; a template ends at its `${` or its backtick. */
const literalEnd = (text: string, at: number, end: RegExp): number => {
  for (let i = at; i < text.length; i++) {
    if (text[i] === "\\") i += 1
    else if (end.test(text.slice(i, i + 2))) return i
  }
  return text.length
}

const regExpEnd = (text: string, at: number): number => {
  let inClass = false
  for (let i = at; i < text.length && text[i] !== "\n"; i++) {
    if (text[i] === "\\") i += 1
    else if (text[i] === "[") inClass = true
    else if (text[i] === "]") inClass = false
    else if (text[i] === "/" && !inClass) return i
  }
  // A line ends before it does: this slash divided.
  return at
}

/** Blanks comments, and in `code` the insides of literals too. */
export const strip = (text: string): Stripped => {
  let code = ""
  let strings = ""
  // One entry for each template that is open: how many braces of its `${…}` are.
  const templates: Array<number> = []
  const keep = (piece: string, inCode = piece) => {
    strings += piece
    code += inCode
  }
  let at = 0
  const literal = (end: number, opened: string) => {
    const piece = text.slice(at + opened.length, end)
    keep(opened + piece, opened + blank(piece))
    at = end
  }
  const template = (opened: string) => {
    literal(literalEnd(text, at + opened.length, /^(?:`|\$\{)/), opened)
    const closed = text[at] === "`" ? "`" : text.slice(at, at + 2)
    if (closed === "${") templates.push(0)
    keep(closed)
    at += closed.length
  }
  while (at < text.length) {
    const char = text[at]!
    const two = text.slice(at, at + 2)
    if (two === "//" || two === "/*") {
      const found = two === "//" ? text.indexOf("\n", at) : text.indexOf("*/", at) + 2
      const end = found < at + 2 && two === "/*" || found === -1 ? text.length : found
      keep(blank(text.slice(at, end)))
      at = end
    } else if (char === "\"" || char === "'") {
      literal(literalEnd(text, at + 1, char === "\"" ? /^"/ : /^'/), char)
      keep(char)
      at += 1
    } else if (char === "`") {
      template("`")
    } else if (char === "}" && templates.at(-1) === 0) {
      templates.pop()
      template("}")
    } else if (char === "/" && beforeRegExp.test(code.slice(-40))) {
      literal(regExpEnd(text, at + 1), "/")
      keep("/")
      at += 1
    } else {
      if (templates.length > 0 && char === "{") templates[templates.length - 1]! += 1
      if (templates.length > 0 && char === "}") templates[templates.length - 1]! -= 1
      keep(char)
      at += 1
    }
  }
  return { code, strings }
}

/** The line, from 1, of a position. */
export const lineAt = (text: string, position: number): number => text.slice(0, position).split("\n").length
