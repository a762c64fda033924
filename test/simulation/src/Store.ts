/**
 * The store as one process sees it: the memory twins of the SQL drivers, behind a connection that fails. A call in doubt was
 * carried out, and its caller is told that the store is away.
 */
import { CapUnavailable, type Ledger, LedgerError, LedgerUnavailable, type SpendCap, SpendCapError } from "@purser/core"
import { retryRolledBack } from "@purser/postgres/RolledBack"
import { Effect } from "effect"
import { SqlError } from "effect/sql"
import type { Process } from "./Process.ts"
import type { Storm, StoreLane } from "./Storm.ts"

type LedgerShape = Ledger["Service"]
type CapShape = SpendCap["Service"]

const undone = new SqlError.SqlError({ reason: new SqlError.SerializationError({ cause: null, message: "could not serialize access due to concurrent update", operation: "query" }) })

/** The statement is undone so many times before it is carried out; how often it is sent again is the rule of the SQL drivers themselves. */
const afterConflicts = <A, E>(call: Effect.Effect<A, E>, times: number) => {
  let left = times
  return retryRolledBack(Effect.suspend(() => left-- > 0 ? Effect.delay(Effect.fail(undone), 2) : Effect.result(call)))
}

/** What the driver of a planted bug answers for a statement that was undone. */
interface Believed<A> {
  readonly value: A
}

/** A call of the store, which may be struck. */
export const struck = <E>(storm: Storm, who: string, operation: string, away: E, lane: StoreLane = "store") => <A, E2>(asked: Effect.Effect<A, E2>, believed?: Believed<A>): Effect.Effect<A, E | E2> =>
  Effect.suspend(() => {
    const fault = storm.atStore(who, lane)
    const call = Effect.onExit(asked, (exit) => Effect.sync(() => storm.tell(who, operation, exit._tag === "Success" ? exit.value ?? null : exit._tag)))
    if (fault !== undefined) storm.tell(who, `${operation} meets ${fault.how}`)
    switch (fault?.how) {
      case undefined:
        return call
      case "down":
        return Effect.delay(Effect.fail(away), fault.ms)
      case "doubt":
        return call.pipe(Effect.andThen(Effect.delay(Effect.fail(away), fault.ms)))
      case "slow":
        return Effect.delay(call, fault.ms)
      case "undone":
        if (believed !== undefined) return Effect.delay(Effect.succeed(believed.value), 2)
        return afterConflicts(call, fault.times).pipe(Effect.mapError(() => away), Effect.flatMap(Effect.fromResult))
    }
  })

/** A cap that is kept where the ledger is. */
export interface SameStore {
  readonly cap: CapShape
  readonly saysRoomAnyway: boolean
}

/**
 * A first claim that takes its room, and ties the object whose name is known, in the same act, as the SQL drivers do it. What does not
 * fit is claimed without.
 */
const claimWithExtras = (ledger: LedgerShape, { cap, saysRoomAnyway }: SameStore): LedgerShape["claim"] => (request, worker, extras) =>
  Effect.flatMap(ledger.claim(request, worker), (answer) => {
    if (answer._tag !== "Claimed" || answer.charge.lease.epoch !== 1 || extras?.room !== true) return Effect.succeed(answer)
    const { attempt, generation, lease } = answer.charge
    const { amountMinor, billingPeriod, currency, namespace } = answer.charge.request
    const { object } = extras
    const named = object === undefined
      ? Effect.succeed(answer.charge)
      : Effect.map(ledger.attach({ lease, generation, paymentIntentId: object.id, paymentMethod: object.paymentMethod }), () => ({
        ...answer.charge, state: "attached" as const, paymentIntentId: object.id, paymentMethod: object.paymentMethod
      }))
    return cap.reserve({ namespace, billingPeriod, currency, chargeKey: lease.chargeKey, attempt, amountMinor }).pipe(
      Effect.andThen(named),
      Effect.match({ onSuccess: (charge) => ({ ...answer, charge, hasRoom: true }), onFailure: () => saysRoomAnyway ? { ...answer, hasRoom: true } : answer })
    )
  })

/** The connection of a process, over which the ledger and the books beside it are called. */
export const connectionOf = (process: Process, storm: Storm) => (operation: string) => <A>(call: Effect.Effect<A, LedgerError>): Effect.Effect<A, LedgerError> =>
  process.outside(struck(storm, process.name, operation, new LedgerError({ reason: new LedgerUnavailable({ operation, detail: "the connection was lost" }), chargeKey: null }))(call))

/** The ledger of a process; with a cap that is kept in the same store, or beside one. */
export const ledgerOf = (process: Process, storm: Storm, ledger: LedgerShape, sameStore: SameStore | undefined): LedgerShape => {
  const reach = connectionOf(process, storm)
  return {
    ...ledger,
    ...(sameStore === undefined ? {} : { store: storm }),
    claim: (request, worker, extras) => reach("claim")((sameStore === undefined ? ledger.claim : claimWithExtras(ledger, sameStore))(request, worker, extras)),
    attach: (input) => reach(`attach ${input.paymentIntentId}`)(ledger.attach(input)),
    settle: (input) => reach(`settle ${input.outcome._tag}`)(ledger.settle(input)),
    extend: (lease) => reach("extend")(ledger.extend(lease)),
    handBack: (lease, retryAfterMs, detail) => reach("handBack")(ledger.handBack(lease, retryAfterMs, detail)),
    renew: (input) => reach("renew")(ledger.renew(input)),
    quarantine: (lease, detail) => reach("quarantine")(ledger.quarantine(lease, detail)),
    takeExpired: (worker, limit) => reach("takeExpired")(ledger.takeExpired(worker, limit)),
    takeWaiting: (chargeKey, worker) => reach("takeWaiting")(ledger.takeWaiting(chargeKey, worker)),
    adopt: (input) => reach("adopt")(ledger.adopt(input)),
    page: (period, after, limit) => reach("page")(ledger.page(period, after, limit)),
    releaseDue: (limit) => reach("releaseDue")(ledger.releaseDue(limit)),
    markReleased: (chargeKey, attempt) => reach(`markReleased ${chargeKey.slice(0, 6)}`)(ledger.markReleased(chargeKey, attempt)),
    reopen: (input) => reach("reopen")(ledger.reopen(input)),
    attemptsDue: (limit) => reach("attemptsDue")(ledger.attemptsDue(limit)),
    find: (chargeKey) => reach("find")(ledger.find(chargeKey)),
    events: (chargeKey) => reach("events")(ledger.events(chargeKey)),
    report: (period) => reach("report")(ledger.report(period))
  }
}

/** How the cap of a process stands to its ledger, and the bug that its driver may have. */
export interface CapPlace {
  readonly isSameStore: boolean
  readonly takesUndoneForDone: boolean
}

/** The cap of a process. */
export const capOf = (process: Process, storm: Storm, cap: CapShape, { isSameStore, takesUndoneForDone }: CapPlace): CapShape => {
  const reach = (operation: string) => <A>(call: Effect.Effect<A, SpendCapError>, believed?: Believed<A>) =>
    process.outside(struck(storm, process.name, operation, new SpendCapError({ reason: new CapUnavailable({ operation, detail: "the connection was lost" }), chargeKey: null }))(call, believed))
  const write = (operation: string) => (call: Effect.Effect<void, SpendCapError>) => reach(operation)(call, takesUndoneForDone ? { value: undefined } : undefined)
  return {
    ...(isSameStore ? { store: storm } : {}),
    open: (input) => reach("open")(cap.open(input)),
    reserve: (input) => write(`reserve ${input.chargeKey.slice(0, 6)} ${input.attempt}`)(cap.reserve(input)),
    reserveByForce: (input) => reach("reserveByForce")(cap.reserveByForce(input)),
    release: (chargeKey, attempt) => write(`release ${chargeKey.slice(0, 6)} ${attempt}`)(cap.release(chargeKey, attempt)),
    raise: (input) => reach("raise")(cap.raise(input)),
    close: (scope) => reach("close")(cap.close(scope)),
    reopen: (input) => reach("reopen")(cap.reopen(input)),
    report: (period) => reach("report")(cap.report(period))
  }
}
