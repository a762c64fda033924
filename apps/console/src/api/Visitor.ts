/** Who made a request, as far as the console lets them in. */
import { Context } from "effect"
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import { Away, BadRequest, NotAllowed, SignInNeeded } from "./ConsoleError.ts"

/** What somebody may do: look, or act as well. */
export type Role = "operator" | "viewer"

/** Somebody who was let in. */
export interface VisitorInfo {
  readonly actor: string
  readonly role: Role
  /** How: nobody has to sign in here, by the cookie of a sign-in, by a token, or by the server that the console is mounted in. */
  readonly via: "open" | "cookie" | "bearer" | "host"
  /** What an act has to bring in its header; null for a bearer token, which no other site can send. */
  readonly csrf: string | null
}

/** The visitor of the request at hand. */
export class Visitor extends Context.Service<Visitor, VisitorInfo>()("@purser/console/Visitor") {}

/** How the name of the cookie that a sign-in sets begins; its end tells consoles of one host apart. */
export const cookiePrefix = "purser_console"

/** The header that proves that a request comes from the console's own page. */
export const csrfHeader = "x-purser-csrf"

/** The header in which a program with a bearer token says who acts. */
export const actorHeader = "x-purser-actor"

/** Lets in who may come in, and lets act who may act: a viewer may only read, and every act needs its proof. */
export class Door extends HttpApiMiddleware.Service<Door, { provides: Visitor; requires: never }>()("@purser/console/Door", {
  security: {
    cookie: HttpApiSecurity.apiKey({ key: cookiePrefix, in: "cookie" }).pipe(
      HttpApiSecurity.annotate(OpenApi.Description, "The cookie that a sign-in sets; its name has an end that the console chooses, and __Host- before it where every browser comes over TLS.")
    ),
    bearer: HttpApiSecurity.bearer
  },
  error: [SignInNeeded, NotAllowed, Away]
}) {}

/** Says what is wrong with a request that cannot be read. */
export class Legible extends HttpApiMiddleware.Service<Legible>()("@purser/console/Legible", { error: BadRequest }) {}
