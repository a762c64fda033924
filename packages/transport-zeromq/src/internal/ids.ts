/**
 * Ids of requests: the maker's own random part and a number. An answer finds its request by the id alone where sockets have
 * no identity, and a return address can come to another client later: so the random part tells clients apart, and the
 * number the requests of one. They are shorter than a UUID for each, which is a third of a small request's text.
 */
import { randomBytes } from "node:crypto"

/** Makes the part of its ids that no other maker's ids have. */
const makeOwnPart = (): string =>
  // 72 random bits.
  `${randomBytes(9).toString("base64url")}.`

/** Makes a maker of ids: no two are alike, of one maker or of two. */
export const makeIds = (): () => string => {
  const own = makeOwnPart()
  let count = 0
  return () => `${own}${count++}`
}

/** The place among so many that an id of `makePlaces` names, whoever made it: by the number behind its last point. -1 where it names none. */
export const placeIn = (id: string, limit: number): number => {
  const from = id.lastIndexOf(".") + 1
  if (id.length === from) return -1
  let number = 0
  for (let at = from; at < id.length; at++) {
    const digit = id.charCodeAt(at) - 48
    if (digit < 0 || digit > 9) return -1
    number = number * 10 + digit
  }
  return number % limit
}

/** What waits for answers by its id. */
export interface Places<A extends { id: string }> {
  /** Gives an item a place and an id that none of this maker or another one had. */
  readonly put: (item: A) => void
  readonly get: (id: string) => A | undefined
  /** Tells whether it was there. */
  readonly remove: (item: A) => boolean
  readonly all: () => ReadonlyArray<A>
  readonly size: () => number
}

/**
 * Places for as many as the limit, which the ids name. A map by ids would do; but whenever one is built anew for what came
 * and went, the old one holds for long what was in it then, and thousands of requests a second outlive their time.
 */
export const makePlaces = <A extends { id: string }>(limit: number): Places<A> => {
  const own = makeOwnPart()
  const places: Array<A | undefined> = []
  const free: Array<number> = []
  let count = 0
  const placeOf = (id: string): number => id.startsWith(own) ? placeIn(id, limit) : -1
  const get = (id: string) => {
    const item = places[placeOf(id)]
    return item?.id === id ? item : undefined
  }
  return {
    put: (item) => {
      const place = free.pop() ?? places.push(undefined) - 1
      item.id = own + (count++ * limit + place)
      places[place] = item
    },
    get,
    remove: (item) => {
      if (get(item.id) !== item) return false
      const place = placeOf(item.id)
      places[place] = undefined
      free.push(place)
      return true
    },
    all: () => places.filter((item) => item !== undefined),
    size: () => places.length - free.length
  }
}
