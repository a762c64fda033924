/** The switch in memory, on Effect's clock. */
import { Clock, Effect } from "effect"
import type { ChargePause, Pause } from "../ChargePause.ts"
import { makePauseView } from "../PauseView.ts"

export const makePauseMemory = Effect.gen(function*() {
  const { show, ...view } = yield* makePauseView(true)
  const change = (next: ReadonlyArray<Pause>, changed: boolean) => Effect.as(changed ? show(next) : Effect.void, changed)
  const service: ChargePause["Service"] = {
    ...view,
    inForce: view.view,
    pause: (act) =>
      Effect.gen(function*() {
        const now = yield* view.view
        const sinceMs = yield* Clock.currentTimeMillis
        return yield* change([...now, { ...act, sinceMs }], now.every(({ cause }) => cause !== act.cause))
      }),
    resume: (act) =>
      Effect.gen(function*() {
        const now = yield* view.view
        return yield* change(now.filter(({ cause }) => cause !== act.cause), now.some(({ cause }) => cause === act.cause))
      })
  }
  return service
})
