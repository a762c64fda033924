/**
 * Texts that one person writes and another reads on a screen: who acts, and why. What moves a terminal's cursor, breaks its line or turns
 * its reading direction round has no place in them: it is refused where a text comes in, and escaped where one is shown, since books may
 * hold older ones.
 */
import { turning } from "./internal/idProblem.ts"

/** Control characters, the line breaks of Unicode, what turns the direction of reading, and halves of characters. */
const hidden = new RegExp(`[\\p{Cc}\\p{Cs}]|${turning.source}`, "u")
const everyHidden = new RegExp(hidden.source, "gu")

/** Why a text cannot be shown as it is, or `undefined` when it can. */
export const plainTextProblem = (text: string): string | undefined =>
  hidden.test(text) ? "must not contain control characters, line breaks or characters that change the direction of reading" : undefined

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`

/** The text with what cannot be shown escaped, as JSON does it. */
export const plainText = (text: string): string => text.replaceAll(everyHidden, escaped)

/** The same for a text of several lines, whose line breaks and tabs stay. Inside JSON nothing changes its meaning. */
export const plainLines = (text: string): string => text.replaceAll(everyHidden, (character) => character === "\n" || character === "\t" ? character : escaped(character))
