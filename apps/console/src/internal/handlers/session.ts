/** Signing in, who looks, what moves, and what people did. */
import { OperatorTrail } from "@purser/core"
import { Database } from "@purser/postgres"
import { Effect, Layer, Option } from "effect"
import { HttpEffect, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Access } from "../../Access.ts"
import { ConsoleApi } from "../../api/ConsoleApi.ts"
import { SignInNeeded } from "../../api/ConsoleError.ts"
import { Visitor } from "../../api/Visitor.ts"
import { LiveFeed } from "../../LiveFeed.ts"
import { ProcessorDesk } from "../../ProcessorDesk.ts"
import { VaultRoom } from "../../VaultRoom.ts"
import { version } from "../../version.ts"
import { away } from "../perform.ts"

/** Signing in and out. */
export const signIn = HttpApiBuilder.group(ConsoleApi, "signIn", Effect.fnUntraced(function*(handlers) {
  const access = yield* Access
  return handlers
    .handle("signIn", Effect.fnUntraced(function*({ payload }) {
      const request = yield* HttpServerRequest.HttpServerRequest
      const value = yield* access.signIn(payload.token, payload.actor, Option.getOrElse(request.remoteAddress, () => ""))
      if (value === undefined) return yield* new SignInNeeded({ message: "this token opens nothing" })
      yield* HttpEffect.appendPreResponseHandler((_, response) => Effect.orDie(HttpServerResponse.setCookie(response, access.cookieName, value, access.cookie(request))))
    }))
    .handle("signOut", Effect.fnUntraced(function*() {
      const request = yield* HttpServerRequest.HttpServerRequest
      yield* access.signOut(request)
      yield* HttpEffect.appendPreResponseHandler((_, response) => Effect.orDie(HttpServerResponse.expireCookie(response, access.cookieName, access.cookie(request))))
    }))
}))

/** The session. */
export const session = HttpApiBuilder.group(ConsoleApi, "session", Effect.fnUntraced(function*(handlers) {
  const trail = yield* OperatorTrail
  const { pulses } = yield* LiveFeed
  const { label } = yield* Database
  const desk = yield* Effect.serviceOption(ProcessorDesk)
  const vaults = yield* Effect.serviceOption(VaultRoom)
  return handlers
    .handle("get", () =>
      Effect.map(Visitor, ({ actor, csrf, role, via }) => ({
        actor, role, csrf, canSignOut: via === "cookie", charges: Option.isSome(desk), vaults: Option.isSome(vaults), store: label, version
      })))
    .handle("live", () => Effect.succeed(pulses))
    .handle("acts", ({ query }) =>
      Effect.mapBoth(trail.acts(query.before ?? null, query.limit ?? 100), { onFailure: away, onSuccess: (acts) => ({ acts }) }))
}))

/** Both groups. */
export const layer = Layer.mergeAll(signIn, session)
