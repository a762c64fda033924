/**
 * Where a client finds its servers. A fixed list comes from the configuration; an announced one is for both sides in one
 * process, where the server learns its port only when it binds. A new list is a new array: a client compares by identity.
 */
import { Effect, Latch } from "effect"
import type { Endpoint } from "../Endpoint.ts"

/** Gives the addresses; it waits while there is none. */
export type Addresses = Effect.Effect<ReadonlyArray<Endpoint>>

/** The addresses that servers of this process have announced. */
export interface AnnouncedAddresses {
  readonly current: Addresses
  readonly announce: (endpoint: Endpoint) => Effect.Effect<void>
  readonly withdraw: (endpoint: Endpoint) => Effect.Effect<void>
}

/** Makes an empty list to announce into. */
export const makeAnnouncedAddresses: Effect.Effect<AnnouncedAddresses> = Effect.gen(function*() {
  const some = yield* Latch.make(false)
  let endpoints: ReadonlyArray<Endpoint> = []
  const change = (next: ReadonlyArray<Endpoint>) =>
    Effect.suspend(() => {
      endpoints = next
      return endpoints.length === 0 ? Latch.close(some) : Latch.open(some)
    })
  return {
    current: Effect.andThen(some.await, Effect.sync(() => endpoints)),
    announce: (endpoint) => Effect.suspend(() => change([...endpoints, endpoint])),
    withdraw: (endpoint) => Effect.suspend(() => change(endpoints.filter((other) => other !== endpoint)))
  }
})
