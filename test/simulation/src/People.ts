/**
 * The people who have charges that ended unpaid tried again, as the command and the page do it: they read what was declined, and have
 * one after the other retried by a process of their own, which stands still or dies between any two of its calls. Two of them may act
 * on what both have read. Who is given no answer looks again, and asks again for what is still unpaid.
 */
import { type ChargeRecord, Ledger, type SpendCap } from "@purser/core"
import { type ChargePipeline, isNoRoom, isRetryableState, retryCharge } from "@purser/engine"
import { Cause, Context, Effect, Exit, Layer, Result } from "effect"
import type { Beside } from "./Beside.ts"
import { type Engine, Office, type OfficeShared } from "./Office.ts"
import { rngOf } from "./Rng.ts"
import { peopleNames } from "./Scenario.ts"

/** Whom the weather of a world asks for it. */
export interface People {
  /** One or two of them have all that was declined tried again. */
  retry: (paymentMethod: string | null) => Effect.Effect<void>
}

type Desk = ChargePipeline | Ledger | SpendCap

/** Told for good: the cap has no room, or the charge was put aside. */
const isRefused = (exit: Exit.Exit<unknown, { readonly isRetryable: boolean }>) => {
  if (Exit.isSuccess(exit)) return false
  const failed = Cause.findError(exit.cause)
  return Result.isSuccess(failed) && (isNoRoom(failed.success) || !failed.success.isRetryable)
}

/** The people of one world. */
export const makePeople = Effect.fnUntraced(function*(shared: OfficeShared, people: People) {
  const { mutant, requests, scenario, tools } = shared
  const rng = rngOf(scenario.seed).branch("people")
  const layer = Layer.effectContext(Effect.context<Desk>())
  const engine = (built: Context.Context<Engine>) => mutant?.people?.(built, tools) ?? built
  const offices = peopleNames.map((name): Office<Desk> => new Office(name, shared, { layer, engine }))
  let acting = 0

  /** Comes back with what is seen, in whichever life of the office. */
  const look = (office: Office<Desk>, chargeKey: ChargeRecord["chargeKey"]) =>
    Effect.gen(function*() {
      for (;;) {
        const exit = yield* office.ask((services) => Context.get(services, Ledger).find(chargeKey))
        if (exit !== undefined && Exit.isSuccess(exit)) return exit.value
        yield* Effect.sleep(rng.between(1000, 20_000))
      }
    })
  const retryOne = Effect.fnUntraced(function*(office: Office<Desk>, seen: ChargeRecord, paymentMethod: string | null) {
    let record: ChargeRecord | undefined = seen
    while (record !== undefined && record.quarantine === null && isRetryableState(record.state)) {
      const one: ChargeRecord = record
      const act = { actor: "a person", reason: "asked to", ...(paymentMethod === null ? {} : { paymentMethod }) }
      const exit = yield* office.ask((services) => Effect.provideContext(retryCharge(one, act), services))
      if (exit !== undefined && (Exit.isSuccess(exit) || isRefused(exit))) return
      yield* Effect.sleep(rng.between(1000, 20_000))
      record = yield* look(office, one.chargeKey)
    }
  })
  const retryAll = Effect.fnUntraced(function*(office: Office<Desk>, paymentMethod: string | null) {
    const records = yield* Effect.forEach(requests, ({ chargeKey }) => look(office, chargeKey))
    for (const record of records) {
      if (record?.state === "declined" || record?.state === "requires_action") yield* retryOne(office, record, paymentMethod)
    }
  })

  return {
    offices,
    start: Effect.gen(function*() {
      yield* Effect.forEach(offices, (office) => office.prepare())
      offices.forEach((office) => office.start())
      people.retry = (paymentMethod) =>
        Effect.suspend(() => {
          acting += 1
          const all = rng.chance(0.5) ? offices : offices.slice(0, 1)
          return Effect.forEach(all, (office) => retryAll(office, paymentMethod), { concurrency: "unbounded", discard: true })
        }).pipe(Effect.ensuring(Effect.sync(() => acting -= 1)))
    }),
    isAtRest: Effect.sync(() => acting === 0),
    judge: Effect.succeed([])
  } satisfies Beside
})
