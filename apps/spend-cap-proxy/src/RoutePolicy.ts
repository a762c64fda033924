/**
 * What a call does to money, by its method and path, and which calls a vault lists.
 *
 * A path is made canonical before anything looks at it, and the canonical path is what is forwarded, so that no spelling
 * of a path passes as another. What the proxy can neither count nor call harmless is closed, whatever a vault lists.
 */
import { Result } from "effect"

/**
 * - `charge`, `intent`: ask for an amount. `confirm`: moves the money of an intent. `refund`: gives money back.
 * - `cancel`, `adjust`: touch an intent without moving money.
 * - `read`: GET. `plain`: a write that moves no money.
 * - `closed`: everything else.
 */
export type RouteKind = "charge" | "intent" | "confirm" | "cancel" | "adjust" | "refund" | "read" | "plain" | "closed"

/** A call's route. `intentId` for those that name one. */
export interface Route {
  readonly kind: RouteKind
  readonly path: string
  /** With its question mark, or "". */
  readonly query: string
  readonly intentId: string | null
}

/** Kinds that need an idempotency key and a plain form, and whose answers are read. */
export const movesMoney = (kind: RouteKind): boolean => kind === "charge" || kind === "intent" || kind === "confirm" || kind === "refund"

/** The longest path; none of Stripe's comes near it. */
const pathMax = 1024

const decodePath = (raw: string): string | undefined => {
  if (raw.length > pathMax) return undefined
  const decoded = Result.getOrUndefined(Result.try(() => decodeURIComponent(raw)))
  // What is still encoded was encoded twice.
  return decoded === undefined || !/^\/[A-Za-z0-9_.:/-]*$/.test(decoded) ? undefined : decoded
}

/** One path for all its spellings; `undefined` when it is no path of an API. */
export const canonicalPath = (raw: string): string | undefined => {
  const decoded = decodePath(raw)
  if (decoded === undefined) return undefined
  const segments: Array<string> = []
  for (const segment of decoded.split("/")) {
    if (segment === "" || segment === ".") continue
    if (segment === "..") segments.pop()
    else segments.push(segment)
  }
  return `/${segments.join("/")}`
}

const plainRoutes: ReadonlyArray<RegExp> = [
  /^POST \/v1\/customers$/,
  /^POST \/v1\/payment_methods$/,
  /^POST \/v1\/payment_methods\/[^/]+(?:\/(?:attach|detach))?$/,
  /^POST \/v1\/setup_intents$/,
  /^POST \/v1\/setup_intents\/[^/]+\/(?:confirm|cancel)$/,
  /^POST \/v1\/files$/
]

/** The kind of a canonical path. */
export const kindOf = (method: string, path: string): RouteKind => {
  if (!path.startsWith("/v1/")) return "closed"
  if (method === "GET") return "read"
  const route = `${method} ${path}`
  if (route === "POST /v1/charges") return "charge"
  if (route === "POST /v1/payment_intents") return "intent"
  if (route === "POST /v1/refunds") return "refund"
  const action = /^POST \/v1\/payment_intents\/[^/]+(?:\/(\w+))?$/.exec(route)
  if (action !== null) return action[1] === undefined ? "adjust" : action[1] === "confirm" || action[1] === "cancel" ? action[1] : "closed"
  return plainRoutes.some((plain) => plain.test(route)) ? "plain" : "closed"
}

/** The route of a request line; everything that is no plain path of the API is closed. */
export const routeOf = (method: string, target: string): Route => {
  const at = target.indexOf("?")
  const path = canonicalPath(at === -1 ? target : target.slice(0, at))
  const query = at === -1 ? "" : target.slice(at)
  if (path === undefined || /[\s#]/.test(query)) return { kind: "closed", path: "/", query: "", intentId: null }
  return { kind: kindOf(method, path), path, query, intentId: /^\/v1\/payment_intents\/([^/]+)/.exec(path)?.[1] ?? null }
}

/** What a vault allows when nothing is listed: what a charge needs, and looking. */
export const defaultAllow: ReadonlyArray<string> = [
  "POST:/v1/payment_intents",
  "POST:/v1/payment_intents/*/confirm",
  "POST:/v1/payment_intents/*/cancel",
  "POST:/v1/charges",
  "GET:/v1/**"
]

/**
 * The pattern that the store matches `METHOD PATH` with, or why the entry may not be listed. `*` is one segment; `**` at
 * the end of a GET is everything below.
 */
export const allowPattern = (entry: string): Result.Result<string, string> => {
  const match = /^(GET|POST|DELETE):(\/v[12](?:\/(?:[A-Za-z0-9_.-]+|\*))*(?:\/\*\*)?)$/.exec(entry)
  if (match === null) return Result.fail(`"${entry}" is no METHOD:PATH, such as POST:/v1/charges or GET:/v1/charges/*`)
  const [, method = "", path = ""] = match
  if (path.endsWith("/**") && method !== "GET") return Result.fail(`"${entry}": ** is for GET alone`)
  if (kindOf(method, path) === "closed") {
    return Result.fail(`"${entry}" cannot be listed: the proxy can neither count the money that it moves nor tell that it moves none`)
  }
  const body = path.replace(/\/\*\*$/, "").split("/").map((segment) => segment === "*" ? "[^/]+" : segment.replaceAll(".", "\\.")).join("/")
  return Result.succeed(`^${method} ${body}${path.endsWith("/**") ? "(/.*)?" : ""}$`)
}
