/** The page's way to the API: the typed client that programs use too, over this page's own address. */
import { Cause, Duration, Effect, Exit, Layer, ManagedRuntime, Option } from "effect"
import { ConsoleClient } from "../src/ConsoleClient.ts"
import type { Session } from "../src/api/Shapes.ts"

type Client = ConsoleClient["Service"]

let session: Session | null = null

/** Whom to tell of a session. */
export interface SessionListener {
  /** It was read anew. */
  readonly renewed: (session: Session) => void
  /** It is over. */
  readonly stranger: () => void
}
let listener: SessionListener = { renewed: () => undefined, stranger: () => undefined }

/** Keeps the session whose proof goes with every act, and whom to tell of the next one. */
export const remember = (now: Session | null, tell: SessionListener): void => {
  session = now
  listener = tell
}

/** An answer that is not there by then is waited for no longer: a console that is frozen holds its connections open. */
const patience = { read: Duration.seconds(15), act: Duration.minutes(2) } as const

export const isTagged = (error: unknown, tag: string): boolean => typeof error === "object" && error !== null && "_tag" in error && error._tag === tag

/** Reads the session anew: a console that was started again may want another proof, or know nobody here any more. */
export const renew = Effect.flatMap(ConsoleClient, (client) => client.session.get()).pipe(
  Effect.timeout(patience.read),
  Effect.tap((now) => Effect.sync(() => {
    session = now
    listener.renewed(now)
  })),
  Effect.tapError((error) => Effect.sync(() => {
    if (isTagged(error, "SignInNeeded")) listener.stranger()
  }))
)

/** Runs calls of the client. */
export const runtime = ManagedRuntime.make(Layer.suspend(() => ConsoleClient.layer({ url: new URL(".", document.baseURI).href, csrf: () => session?.csrf ?? null })))

/** What went wrong, in words. */
export interface Failed {
  readonly tag: string
  readonly message: string
}

const failedOf = (cause: Cause.Cause<unknown>, isAct: boolean): Failed => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  const tag = typeof error === "object" && error !== null && "_tag" in error ? String(error._tag) : "Unknown"
  if (tag === "SignInNeeded") listener.stranger()
  if (tag === "HttpClientError") return { tag, message: "The console does not answer." }
  if (tag === "TimeoutError") return { tag, message: `The console has not answered within ${isAct ? "two minutes: the trail and the story say whether it was done" : "15 seconds"}.` }
  if (error instanceof Error && error.message !== "") return { tag, message: error.message }
  return { tag, message: "The answer could not be read." }
}

const passing = new Set(["Away", "HttpClientError", "TimeoutError"])

/** Whether the same call may be answered soon. */
export const isPassing = ({ tag }: Failed): boolean => passing.has(tag)

/** A call, and what came of it. */
export type Called<A> = { readonly ok: true; readonly value: A } | { readonly ok: false; readonly failed: Failed }

/** Calls the API. What was refused for an old proof was not begun, and is asked for once more with the new one. */
export const call = async <A, E>(use: (client: Client) => Effect.Effect<A, E>, kind: "read" | "act" = "read"): Promise<Called<A>> => {
  const ask = Effect.suspend(() => {
    const proof = session?.csrf
    return Effect.flatMap(ConsoleClient, use).pipe(
      Effect.catchIf(
        (error) => isTagged(error, "NotAllowed"),
        (error) => Effect.flatMap(Effect.option(renew), (now) => Option.isSome(now) && now.value.csrf !== proof ? Effect.flatMap(ConsoleClient, use) : Effect.fail(error))
      )
    )
  })
  const exit = await runtime.runPromiseExit(Effect.timeout(ask, patience[kind]))
  return Exit.isSuccess(exit) ? { ok: true, value: exit.value } : { ok: false, failed: failedOf(exit.cause, kind === "act") }
}
