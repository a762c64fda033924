/** Where the page is: behind the hash, so that it needs nothing of the server that it is mounted in. */
import { useSyncExternalStore } from "react"

/** A place: the page, what it shows, and how. */
export interface Route {
  readonly page: string
  readonly id: string | undefined
  readonly query: URLSearchParams
}

/** A name as it was meant; one that is written wrongly is the name of nothing, and is shown as it stands. */
const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The place that a hash names. */
export const routeOf = (hash: string): Route => {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?")
  const [page = "", ...rest] = path.split("/")
  const id = rest.join("/")
  return { page: page === "" ? "runs" : page, id: id === "" ? undefined : decoded(id), query: new URLSearchParams(query) }
}

let at = ""
let route: Route | undefined
const listeners = new Set<() => void>()
const tell = () => {
  for (const listener of listeners) listener()
}
const subscribe = (listener: () => void) => {
  if (listeners.size === 0) addEventListener("hashchange", tell)
  listeners.add(listener)
  return () => {
    listeners.delete(listener)
    if (listeners.size === 0) removeEventListener("hashchange", tell)
  }
}
const now = () => {
  if (route === undefined || location.hash !== at) {
    at = location.hash
    route = routeOf(at)
  }
  return route
}

/** The place. */
export const useRoute = (): Route => useSyncExternalStore(subscribe, now, now)

/** The address of a place. */
export const to = (page: string, id?: string, query: Readonly<Record<string, string | undefined>> = {}): string => {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== "")
  const search = new URLSearchParams(given).toString()
  return `#/${page}${id === undefined ? "" : `/${encodeURIComponent(id)}`}${search === "" ? "" : `?${search}`}`
}

/** Goes there, before the next key is pressed. */
export const go = (href: string): void => {
  location.hash = href
  tell()
}
