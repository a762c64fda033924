/**
 * Who comes in: nobody has to sign in at a loopback address without tokens; with tokens, by a cookie that a sign-in sets or by
 * the token itself. It keeps no sessions: a cookie bears its own proof and its own end, and the process keeps those alone that were given back before it.
 */
import { Clock, Context, Duration, Effect, Layer, Option, RcMap, Redacted, Schema, Semaphore } from "effect"
import type { Cookies, HttpServerRequest } from "effect/http"
import { actorHeader, cookiePrefix, csrfHeader, type Role, type VisitorInfo } from "./api/Visitor.ts"
import { randomUUID } from "node:crypto"
import { isSame, proofOf, seal, sealingKey, unseal } from "./internal/seal.ts"

/** How the doors stand. */
export interface AccessOptions {
  /** Whoever has it may act. */
  readonly operatorToken?: Redacted.Redacted | undefined
  /** Whoever has it may look. */
  readonly viewerToken?: Redacted.Redacted | undefined
  /** Who acts where nobody has to sign in; only for a server that no other machine reaches. */
  readonly open?: { readonly actor: string; readonly role: Role } | undefined
  /** The server that this console is mounted in tells who it is; undefined for a stranger. */
  readonly identify?: ((request: HttpServerRequest.HttpServerRequest) => Effect.Effect<{ readonly actor: string; readonly role: Role } | undefined>) | undefined
  /**
   * A secret of at least 32 random characters that proofs are made with, beside the tokens. Without tokens and without it the
   * proofs of one process are not those of another: several that serve the same pages need it.
   */
  readonly proofSecret?: Redacted.Redacted | undefined
  /** Every browser comes over TLS: cookies travel over nothing else. Without it they do where a request says that it came over TLS. */
  readonly secureCookie: boolean
  /** Host names that a request may be addressed to; others are refused, so that no page elsewhere reaches a loopback console by a name of its own. */
  readonly hosts?: ReadonlyArray<string> | undefined
}

/** A sign-in is good for so long. */
const goodFor = Duration.hours(12)
/** The wait after a wrong token, one after the other at an address; the right one never stands in that line. */
const afterWrong = Duration.millis(300)
/** So many wrong ones wait at an address; the others are answered at once, and hold no memory. */
const wrongMax = 16
/** Sign-ins that were ended before their time, and so few that nobody fills the memory with them. */
const endedMax = 10_000

const Ticket = Schema.Struct({ actor: Schema.NonEmptyString, role: Schema.Literals(["operator", "viewer"]), untilMs: Schema.Finite })
const decodeTicket = Schema.decodeUnknownOption(Schema.fromJsonString(Ticket))

/** The doors. */
export class Access extends Context.Service<Access, {
  /** Whoever made the request; undefined for a stranger. */
  readonly identify: (request: HttpServerRequest.HttpServerRequest) => Effect.Effect<VisitorInfo | undefined>
  /** Whether the request brings the proof that an act needs. */
  readonly provesItself: (request: HttpServerRequest.HttpServerRequest, visitor: VisitorInfo) => boolean
  /** The value of the cookie for whoever has a token; undefined for a wrong one. `from`: the address that asks. */
  readonly signIn: (token: Redacted.Redacted, actor: string, from: string) => Effect.Effect<string | undefined>
  /** Ends the sign-in of the request's cookie in this process: a copy of it opens nothing more here. */
  readonly signOut: (request: HttpServerRequest.HttpServerRequest) => Effect.Effect<void>
  /** How the cookie is given to, and taken from, whoever makes the request. */
  readonly cookie: (request: HttpServerRequest.HttpServerRequest) => Cookies.Cookie["options"]
  readonly cookieName: string
  /** Whether a request may be addressed to this host. */
  readonly isHost: (host: string | undefined) => boolean
}>()("@purser/console/Access") {
  /** Doors as they are told. */
  static readonly layer = (options: AccessOptions): Layer.Layer<Access> =>
    Layer.effect(Access, Effect.gen(function*() {
      const tokens = [
        ...(options.operatorToken === undefined ? [] : [{ role: "operator" as const, token: options.operatorToken }]),
        ...(options.viewerToken === undefined ? [] : [{ role: "viewer" as const, token: options.viewerToken }])
      ]
      const key = sealingKey([...tokens.map(({ token }) => token), ...(options.proofSecret === undefined ? [] : [options.proofSecret])])
      const lines = yield* RcMap.make({ lookup: (_from: string) => Effect.map(Semaphore.make(1), (turn) => ({ turn, waiting: 0 })) })
      /** Cookies that were given back, until they would have ended anyway. */
      const ended = new Map<string, number>()
      // A browser sends a host's cookies to all of its ports: consoles of other tokens have cookies of other names.
      // No other name of the site, and no answer without TLS, can set one that begins so.
      const cookieName = `${options.secureCookie ? "__Host-" : ""}${cookiePrefix}_${proofOf(key, "cookie name", "").slice(0, 8)}`
      const csrfOf = (of: string) => proofOf(key, "csrf", of)
      // Every token is compared, so that the time tells nothing about which was nearly right.
      const roleOf = (given: string): Role | undefined =>
        tokens.reduce<Role | undefined>((found, { role, token }) => isSame(given, Redacted.value(token)) ? found ?? role : found, undefined)

      /** What a cookie says that is ours, is not over, and was not given back. */
      const ticketOf = Effect.fnUntraced(function*(value: string): Effect.fn.Return<typeof Ticket.Type | undefined> {
        const text = unseal(key, value)
        const ticket = text === undefined ? Option.none() : decodeTicket(text)
        if (Option.isNone(ticket) || ticket.value.untilMs <= (yield* Clock.currentTimeMillis) || ended.has(value)) return undefined
        return ticket.value
      })
      const byCookie = Effect.fnUntraced(function*(value: string): Effect.fn.Return<VisitorInfo | undefined> {
        const ticket = yield* ticketOf(value)
        return ticket === undefined ? undefined : { actor: ticket.actor, role: ticket.role, via: "cookie", csrf: csrfOf(value) }
      })
      /** The wait of a wrong token. */
      const held = (from: string) =>
        Effect.scoped(Effect.flatMap(RcMap.get(lines, from), (line) => {
          if (line.waiting >= wrongMax) return Effect.void
          line.waiting += 1
          return Effect.ensuring(line.turn.withPermits(1)(Effect.sleep(afterWrong)), Effect.sync(() => line.waiting -= 1))
        }))

      return Access.of({
        cookieName,
        identify: Effect.fnUntraced(function*(request) {
          if (options.identify !== undefined) {
            const known = yield* options.identify(request)
            return known === undefined ? undefined : { ...known, via: "host" as const, csrf: csrfOf(known.actor) }
          }
          const bearer = /^Bearer +(\S+)$/i.exec(request.headers["authorization"] ?? "")?.[1]
          if (bearer !== undefined && tokens.length > 0) {
            const role = roleOf(bearer)
            const actor = request.headers[actorHeader]?.trim().slice(0, 80)
            return role === undefined ? undefined : { actor: actor === undefined || actor === "" ? `api ${role}` : actor, role, via: "bearer" as const, csrf: null }
          }
          const cookie = request.cookies[cookieName]
          const visitor = cookie === undefined || tokens.length === 0 ? undefined : yield* byCookie(cookie)
          if (visitor !== undefined) return visitor
          return options.open === undefined ? undefined : { ...options.open, via: "open" as const, csrf: csrfOf("open") }
        }),
        provesItself: (request, visitor) => visitor.csrf === null || isSame(request.headers[csrfHeader] ?? "", visitor.csrf),
        signIn: Effect.fnUntraced(function*(token, actor, from) {
          const role = roleOf(Redacted.value(token))
          if (role === undefined) return yield* Effect.as(held(from), undefined)
          const untilMs = (yield* Clock.currentTimeMillis) + Duration.toMillis(goodFor)
          return seal(key, JSON.stringify({ actor, role, untilMs, id: randomUUID() }))
        }),
        signOut: Effect.fnUntraced(function*({ cookies }) {
          const value = cookies[cookieName]
          const ticket = value === undefined ? undefined : yield* ticketOf(value)
          if (value === undefined || ticket === undefined) return
          const nowMs = yield* Clock.currentTimeMillis
          for (const [cookie, untilMs] of ended) if (untilMs <= nowMs || ended.size >= endedMax) ended.delete(cookie)
          ended.set(value, ticket.untilMs)
        }),
        // Whoever makes such a header up spoils the cookie of nobody else.
        cookie: ({ headers }) => ({ httpOnly: true, sameSite: "strict", secure: options.secureCookie || headers["x-forwarded-proto"] === "https", path: "/", maxAge: goodFor }),
        isHost: (host) => {
          if (options.hosts === undefined) return true
          const name = /^(\[[^\]]+\]|[^:]+)(?::\d+)?$/.exec(host ?? "")?.[1]?.toLowerCase()
          return name !== undefined && options.hosts.includes(name)
        }
      })
    }))
}
