/** The one rule for every opaque text that goes into a charge key: ids, items, namespaces and free period labels. */
const utf8 = new TextEncoder()

/** Printable ASCII without outer blanks: nearly every id, and free of every problem below. */
const plainId = /^[!-~](?:[ -~]{0,253}[!-~])?$/

/** The line breaks of Unicode, and what turns the direction of reading. */
export const turning = /[\u061C\u200E\u200F\u2028\u2029\u202A-\u202E\u2066-\u2069]/u

/** Why a text cannot be an id, or `undefined` when it can. */
export const idProblem = (id: string): string | undefined => {
  if (plainId.test(id)) return undefined
  if (id === "") return "must not be empty"
  if (/^[\s\uFEFF]|[\s\uFEFF]$/u.test(id)) return "must not start or end with white space"
  if (/\p{Cc}/u.test(id)) return "must not contain control characters or line breaks"
  // On a screen such an id reads as another one.
  if (turning.test(id)) return "must not contain line separators or characters that change the direction of reading"
  // A lone surrogate has no UTF-8 form: two such ids would be hashed alike.
  if (!id.isWellFormed()) return "must be well-formed Unicode"
  if (utf8.encode(id).length > 255) return "must not be longer than 255 bytes of UTF-8"
}
