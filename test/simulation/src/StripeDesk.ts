/** Stripe as somebody sees it who is no part of the engine: a judge who lists, a person in the Dashboard, another program. */
import type { SimResponse, StripeSimShape } from "@purser/stripe-sim"
import { Effect, Option } from "effect"

const headers = { authorization: "Bearer sk_test_judge" }

/** All of a list, oldest last. */
export const listAt = Effect.fnUntraced(function*<A extends { readonly id: string }>(sim: StripeSimShape, path: string): Effect.fn.Return<ReadonlyArray<A>> {
  const all: Array<A> = []
  let after = ""
  for (;;) {
    const { body, status } = yield* Effect.orDie(sim.send({ method: "GET", path: `${path}?limit=100${after}`, headers }))
    if (status === 429) {
      yield* Effect.sleep(1000)
      continue
    }
    const page: { readonly data: ReadonlyArray<A>; readonly has_more: boolean } = JSON.parse(body)
    all.push(...page.data)
    if (!page.has_more) return all
    after = `&starting_after=${page.data.at(-1)!.id}`
  }
})

/** A call that may be lost, like any. */
export const postAt = (sim: StripeSimShape, path: string, form: Readonly<Record<string, string>>): Effect.Effect<SimResponse | undefined> =>
  Effect.map(Effect.option(sim.send({ method: "POST", path, headers, body: new URLSearchParams(form).toString() })), Option.getOrUndefined)
