/**
 * Ids of requests: the maker's own random part and a count. An answer finds its request by the id alone where sockets have
 * no identity, and a return address can come to another client later: so the random part tells clients apart, and the
 * count the requests of one. They are shorter than a UUID for each, which is a third of a small request's text.
 */
import { randomBytes } from "node:crypto"

/** Makes a maker of ids: no two are alike, of one maker or of two. */
export const makeIds = (): () => string => {
  // 72 random bits.
  const own = randomBytes(9).toString("base64url")
  let count = 0
  return () => `${own}.${(count++).toString(36)}`
}
