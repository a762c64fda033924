/** The page's way to the API: the typed client that programs use too, over this page's own address. */
import { Cause, Effect, Exit, Layer, ManagedRuntime, Option } from "effect"
import { ConsoleClient } from "../src/ConsoleClient.ts"
import type { Session } from "../src/api/Shapes.ts"

type Client = ConsoleClient["Service"]

let session: Session | null = null
let onStranger: () => void = () => undefined

/** Keeps the session whose proof goes with every act, and whom to tell when it is over. */
export const remember = (now: Session | null, stranger: () => void): void => {
  session = now
  onStranger = stranger
}

/** Runs calls of the client. */
export const runtime = ManagedRuntime.make(Layer.suspend(() => ConsoleClient.layer({ url: new URL(".", document.baseURI).href, csrf: () => session?.csrf ?? null })))

/** What went wrong, in words. */
export interface Failed {
  readonly tag: string
  readonly message: string
}

const failedOf = (cause: Cause.Cause<unknown>): Failed => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  const tag = typeof error === "object" && error !== null && "_tag" in error ? String(error._tag) : "Unknown"
  if (tag === "SignInNeeded") onStranger()
  if (tag === "HttpClientError") return { tag, message: "The console does not answer." }
  if (error instanceof Error && error.message !== "") return { tag, message: error.message }
  return { tag, message: "The answer could not be read." }
}

/** A call, and what came of it. */
export type Called<A> = { readonly ok: true; readonly value: A } | { readonly ok: false; readonly failed: Failed }

/** Calls the API. */
export const call = async <A, E>(use: (client: Client) => Effect.Effect<A, E>): Promise<Called<A>> => {
  const exit = await runtime.runPromiseExit(Effect.flatMap(ConsoleClient, use))
  return Exit.isSuccess(exit) ? { ok: true, value: exit.value } : { ok: false, failed: failedOf(exit.cause) }
}
