/** Sightings over maps, on Effect's clock: the readable twin of the SQL driver. */
import { Clock, Effect } from "effect"
import type { ListedObject, Movement, Sightings } from "../Sightings.ts"

const byId = (a: { readonly id: string }, b: { readonly id: string }) => a.id < b.id ? -1 : a.id > b.id ? 1 : 0

export const makeSightingsMemory = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const movements = new Map<string, Movement>()
  const listed = new Map<string, ListedObject>()
  const firstSeen = new Map<string, number>()

  const service: Sightings["Service"] = {
    note: (movement) => Effect.sync(() => void movements.set(movement.id, movement)),
    movements: (chargeKey) =>
      Effect.sync(() =>
        [...movements.values()].filter((movement) => movement.chargeKey === chargeKey).sort((a, b) => a.createdMs - b.createdMs || byId(a, b))
      ),
    list: (object) =>
      Effect.sync(() => {
        const nowMs = clock.currentTimeMillisUnsafe()
        const firstSeenMs = firstSeen.get(object.id) ?? nowMs
        firstSeen.set(object.id, firstSeenMs)
        listed.set(object.id, { ...object, firstSeenMs, lastSeenMs: nowMs })
      }),
    unlist: (id) => Effect.sync(() => listed.delete(id)),
    unknown: (afterId, limit) => Effect.sync(() => [...listed.values()].filter((object) => object.id > afterId).sort(byId).slice(0, limit))
  }
  return service
})
