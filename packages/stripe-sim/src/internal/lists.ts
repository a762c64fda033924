/**
 * Lists as Stripe pages them: newest first, by cursor.
 *
 * Defines the filters every list shares (`created`, `limit`, `starting_after`, `ending_before`). Refuses filters on
 * metadata, which Stripe's lists do not have either.
 */
import type { Stripe } from "stripe"
import { type Answer, invalid, missing, ok } from "./answer.ts"
import { inHash, integer, type Params, text } from "./params.ts"

interface Listed {
  readonly id: string
  readonly seq: number
  readonly createdS: number
}

/** What can be paged: a collection, or the log of events. */
export interface Listing<A> {
  /** True when each object is no older than those that follow in `newestFirst`. */
  readonly inOrder: boolean
  readonly get: (id: string) => A | undefined
  readonly newestFirst: (group?: string, belowSeq?: number) => Iterable<A>
}

const bound = (params: Params, key: string): number | undefined => {
  const value = inHash(params, "created", key)
  return value === undefined ? undefined : Number(value)
}

/** The page that the parameters ask for. */
export const page = <A extends Listed>(
  items: Listing<A>,
  params: Params,
  options: {
    readonly url: string
    readonly what: string
    readonly show: (item: A) => unknown
    /** The group to list; the customer that the parameters name when left out. */
    readonly group?: string | undefined
    readonly where?: (item: A) => boolean
  }
): Answer => {
  const limit = integer(params, "limit") ?? 10
  if (limit < 1) return invalid("This value must be greater than or equal to 1.", "limit", "parameter_invalid_integer")
  if (limit > 100) return invalid("This value must be less than or equal to 100.", "limit", "parameter_invalid_integer")
  const after = text(params, "starting_after")
  const before = text(params, "ending_before")
  const cursorId = after ?? before
  const cursor = cursorId === undefined ? undefined : items.get(cursorId)
  if (cursorId !== undefined && cursor === undefined) {
    return missing(options.what, cursorId, after === undefined ? "ending_before" : "starting_after", false)
  }
  const exactS = integer(params, "created")
  const fromS = Math.max(exactS ?? 0, bound(params, "gte") ?? 0, (bound(params, "gt") ?? -1) + 1)
  const toS = Math.min(exactS ?? Infinity, bound(params, "lte") ?? Infinity, (bound(params, "lt") ?? Infinity) - 1)
  const found: Array<A> = []
  const group = "group" in options ? options.group : text(params, "customer")
  for (const item of items.newestFirst(group, after === undefined ? undefined : cursor?.seq)) {
    if (item.createdS < fromS) {
      // Where time never ran backwards, everything further on is older still.
      if (items.inOrder) break
      continue
    }
    if (after !== undefined && cursor !== undefined && item.seq >= cursor.seq) continue
    if (after === undefined && cursor !== undefined && item.seq <= cursor.seq) continue
    if (item.createdS > toS || options.where?.(item) === false) continue
    found.push(item)
    // A page backwards wants the oldest of what is newer than the cursor, so it reads on.
    if (found.length > limit && before === undefined) break
  }
  const more = found.length > limit
  const data = before === undefined ? found.slice(0, limit) : found.slice(-limit)
  return ok((): Stripe.ApiList<unknown> => ({
    object: "list",
    data: data.map(options.show),
    has_more: more,
    url: options.url
  }))
}

/** The page of objects that no collection holds, oldest first. */
export const pageOf = <A extends { readonly id: string; readonly createdS: number }>(
  objects: ReadonlyArray<A>,
  params: Params,
  options: { readonly url: string; readonly what: string; readonly show: (item: A) => unknown }
): Answer => {
  const items = objects.map((item, seq) => ({ id: item.id, createdS: item.createdS, seq, item }))
  const listing: Listing<(typeof items)[number]> = {
    inOrder: false,
    get: (id) => items.find((item) => item.id === id),
    newestFirst: () => items.toReversed()
  }
  return page(listing, params, { ...options, group: undefined, show: ({ item }) => options.show(item) })
}
