/**
 * What the API speaks of, as schemas: the words of the ledger and the books, with sums as text of digits, so that no
 * reader in any language loses one. Nothing of the configuration, and no key, has a place here.
 */
import { Schema } from "effect"
import { NullText, NullTime, RowState, State } from "./Words.ts"

export * from "./ReconcileShapes.ts"
export * from "./VaultShapes.ts"
export * from "./Words.ts"

/** A pause of charging that is in force. */
export const Pause = Schema.Struct({ cause: Schema.Literals(["person", "outage"]), actor: Schema.String, reason: Schema.String, sinceMs: Schema.Finite })

/** Who looks, what they may do, and what this console can do. */
export const Session = Schema.Struct({
  actor: Schema.String,
  role: Schema.Literals(["operator", "viewer"]),
  /** Goes with every act in the header `x-purser-csrf`; null where a bearer token is sent instead of a cookie. */
  csrf: NullText,
  /** False where nobody had to sign in. */
  canSignOut: Schema.Boolean,
  /** Whether this console can ask the processor, so that charges can be retried and periods reconciled. */
  charges: Schema.Boolean,
  /** Whether it knows a store of vault keys. */
  vaults: Schema.Boolean,
  store: Schema.String,
  version: Schema.String
})
export type Session = typeof Session.Type

/** A run of the list. `state` is the register's word where it knows the run, else the run book's. */
export const Run = Schema.Struct({
  runId: Schema.String,
  name: NullText,
  source: Schema.String,
  state: Schema.String,
  step: NullText,
  detail: NullText,
  runner: NullText,
  begunAtMs: Schema.Finite,
  plannedAtMs: NullTime,
  finishedAtMs: NullTime,
  rows: Schema.Int,
  present: Schema.Int,
  /** What may be done with it now, and where that is less than one would expect, why. */
  acts: Schema.Array(Schema.Literals(["pause", "resume", "cancel"])),
  whyNot: NullText,
  /** What its state does not tell: that nobody is there who would work on it, or, in a run's own view, send its rows. */
  abandoned: NullText
})
export type Run = typeof Run.Type

/** A page of runs, the newest first. `next` goes into `before` of the next call; null at the end. */
export const Runs = Schema.Struct({ runs: Schema.Array(Run), next: NullTime, pauses: Schema.Array(Pause), atMs: Schema.Finite })

/** Rows of one namespace, period, currency and state. */
export const RunGroup = Schema.Struct({
  namespace: Schema.String,
  billingPeriod: Schema.String,
  currency: Schema.String,
  state: RowState,
  rows: Schema.Int,
  amountMinor: Schema.BigInt,
  receivedMinor: Schema.BigInt,
  settledBefore: Schema.Int,
  /** Within the last minute, and since the run began or went on where that is later. */
  settledLastMinute: Schema.Int
})

/** How many rows stood where at a moment of the run. */
export const RunSlice = Schema.Struct({
  atMs: Schema.Finite,
  waiting: Schema.Int,
  inWork: Schema.Int,
  /** Rows that are past that, by the state in which they stand now. */
  past: Schema.Record(Schema.String, Schema.Int)
})
export type RunSlice = typeof RunSlice.Type

/** The figures of a cap. */
export const Cap = Schema.Struct({
  namespace: Schema.String,
  billingPeriod: Schema.String,
  currency: Schema.String,
  expectedMinor: Schema.BigInt,
  headroomPercent: Schema.Int,
  capMinor: Schema.BigInt,
  reservedMinor: Schema.BigInt,
  reservations: Schema.Int,
  closed: Schema.Boolean
})
export type Cap = typeof Cap.Type

/** Something that happened to a run. */
export const RunEvent = Schema.Struct({ atMs: Schema.Finite, act: Schema.String, actor: Schema.String, detail: NullText })

/** A run with its numbers. */
export const RunView = Schema.Struct({
  run: Run,
  groups: Schema.Array(RunGroup),
  slices: Schema.Array(RunSlice),
  caps: Schema.Array(Cap),
  events: Schema.Array(RunEvent),
  /** Rows that are still to settle; those that are quarantined wait for a person, and are not among them. */
  open: Schema.Int,
  forPerson: Schema.Int,
  /** How many settled a second over the last minute, or since the run began or went on where that is later. */
  settledPerSecond: Schema.Finite,
  /** The time that this is of. */
  settledWithinMs: Schema.Finite,
  /** Null where nothing settles, where nothing more is sent, and where nobody is there to send it. */
  leftMs: NullTime,
  /** Whether it waits for a person, by its own pause or the switch. */
  held: Schema.Boolean,
  pauses: Schema.Array(Pause),
  atMs: Schema.Finite
})
export type RunView = typeof RunView.Type

/** A charge as a line of a list. */
export const ChargeLine = Schema.Struct({
  chargeKey: Schema.String,
  namespace: Schema.String,
  customerId: Schema.String,
  billingPeriod: Schema.String,
  item: NullText,
  revision: Schema.Int,
  amountMinor: Schema.Int,
  receivedMinor: Schema.NullOr(Schema.Int),
  currency: Schema.String,
  stripeCustomerId: Schema.String,
  state: State,
  attempt: Schema.Int,
  paymentIntentId: NullText,
  quarantine: NullText,
  detail: NullText,
  updatedAtMs: Schema.Finite
})
export type ChargeLine = typeof ChargeLine.Type

/** A page of charges. `next` goes into `after` of the next call; null at the end. */
export const ChargePage = Schema.Struct({ charges: Schema.Array(ChargeLine), next: NullText, looked: Schema.Int })
export type ChargePage = typeof ChargePage.Type

/** Counts and sums of one state. */
export const Total = Schema.Struct({
  billingPeriod: Schema.String,
  currency: Schema.String,
  state: State,
  charges: Schema.Int,
  amountMinor: Schema.BigInt,
  receivedMinor: Schema.BigInt,
  quarantined: Schema.Int
})

/** One line of a charge's story, of whatever book. */
export const StoryLine = Schema.Struct({
  atMs: Schema.Finite,
  kind: Schema.Literals(["charge", "refund", "call", "elsewhere", "operator"]),
  /** Of a charge or a refund: from which state to which; of a call its operation and status; of the others, what it was. */
  from: NullText,
  to: Schema.String,
  /** A worker, a person or a program. */
  who: NullText,
  /** Whose key asked, where the transport knows it. */
  principal: NullText,
  attempt: Schema.NullOr(Schema.Int),
  detail: NullText,
  /** Stripe's `Request-Id` of a call. */
  requestId: NullText,
  /** The run that it belongs to. */
  runId: NullText
})
export type StoryLine = typeof StoryLine.Type

/** An object at the processor that has to do with the charge. */
export const StripeObject = Schema.Struct({ id: Schema.String, kind: Schema.String, role: Schema.String, amountMinor: Schema.NullOr(Schema.Int), status: NullText })

/** A refund of the charge. */
export const RefundLine = Schema.Struct({
  refundId: Schema.String,
  state: Schema.String,
  amountMinor: Schema.Int,
  processorRefundId: NullText,
  actor: Schema.String,
  note: Schema.String,
  requestedAtMs: Schema.Finite
})

/** A row of a file, or a request, whose identity the ledger has with other terms. */
export const Conflict = Schema.Struct({
  /** Empty for a request that came over a transport; `line` is then its number among those. */
  runId: Schema.String,
  line: Schema.Int,
  source: Schema.String,
  seenAtMs: Schema.Finite,
  /** The same terms came so often, the last time then. */
  times: Schema.Int,
  lastAtMs: Schema.Finite,
  /** Whose key sealed the request, where that is known. */
  principal: NullText,
  amountMinor: Schema.Int,
  currency: Schema.String,
  stripeCustomerId: Schema.String,
  paymentMethod: NullText,
  keptPaymentMethod: NullText,
  /** When a person dropped the other terms; null while it waits. */
  resolvedAtMs: NullTime,
  charge: ChargeLine
})
export type Conflict = typeof Conflict.Type

/** A run that has the charge among its rows, and who began it where the register of runs knows that. */
export const StoryRun = Schema.Struct({
  runId: Schema.String, line: Schema.Int, source: Schema.String, name: NullText, actor: NullText, begunAtMs: Schema.Finite, plannedAtMs: NullTime
})

/** One charge with all that is known of it. */
export const Story = Schema.Struct({
  charge: ChargeLine,
  generation: Schema.Int,
  chosenMethod: NullText,
  nextAttemptAtMs: NullTime,
  revises: NullText,
  revisedBy: NullText,
  /** What to do about a decline: how sure it is, and what may help. */
  advice: Schema.NullOr(Schema.Struct({ kind: Schema.String, remedy: Schema.String, code: Schema.String })),
  objects: Schema.Array(StripeObject),
  refunds: Schema.Array(RefundLine),
  runs: Schema.Array(StoryRun),
  conflicts: Schema.Array(Conflict),
  lines: Schema.Array(StoryLine),
  acts: Schema.Array(Schema.Literals(["retry", "resume", "end quarantine"]))
})
export type Story = typeof Story.Type

/** A charge in work that nobody holds. */
export const Unresolved = Schema.Struct({ ...ChargeLine.fields, sinceMs: Schema.Finite, worker: NullText, lastDetail: NullText })

/** A message that could not be served; `text` is its body with what cannot be shown escaped. */
export const Letter = Schema.Struct({
  digest: Schema.String,
  transport: Schema.String,
  principal: NullText,
  reason: Schema.String,
  detail: Schema.String,
  sizeBytes: Schema.Int,
  times: Schema.Int,
  firstAtMs: Schema.Finite,
  lastAtMs: Schema.Finite,
  text: Schema.String
})

/** How many of each wait; counted up to a bound. */
export const Counts = Schema.Struct({
  unresolved: Schema.Int, quarantined: Schema.Int, conflicts: Schema.Int, deadLetters: Schema.Int, unknownObjects: Schema.Int
})
export type Counts = typeof Counts.Type

/** What waits for a person. */
export const Waiting = Schema.Struct({
  counts: Counts,
  unresolved: Schema.Array(Unresolved),
  quarantined: Schema.Array(ChargeLine),
  conflicts: Schema.Array(Conflict),
  letters: Schema.Array(Letter)
})
export type Waiting = typeof Waiting.Type

/** One line of a cap's history. */
export const CapEvent = Schema.Struct({
  position: Schema.Int,
  atMs: Schema.Finite,
  namespace: Schema.String,
  billingPeriod: Schema.String,
  currency: Schema.String,
  act: Schema.Literals(["opened", "raised", "closed", "reopened", "forced"]),
  expectedMinor: Schema.NullOr(Schema.BigInt),
  headroomPercent: Schema.NullOr(Schema.Int),
  capMinor: Schema.BigInt,
  /** Before it; null at the beginning, and where the line before is not among those that are shown. */
  capBeforeMinor: Schema.NullOr(Schema.BigInt),
  chargeKey: NullText,
  actor: NullText,
  reason: NullText
})

/** One throw of the switch that stops charging. */
export const PauseEvent = Schema.Struct({
  position: Schema.Int, atMs: Schema.Finite, cause: Schema.String, act: Schema.Literals(["paused", "resumed"]), actor: Schema.String, reason: Schema.String
})

/** The caps, their history, and the switch. */
export const Caps = Schema.Struct({
  caps: Schema.Array(Cap), events: Schema.Array(CapEvent), pauses: Schema.Array(Pause), pauseEvents: Schema.Array(PauseEvent)
})
export type Caps = typeof Caps.Type

/** A worker. `life`: it beats, it is silent, it ended by itself, or it never introduced itself. */
export const Worker = Schema.Struct({
  worker: Schema.String,
  host: NullText,
  pid: Schema.NullOr(Schema.Int),
  serves: NullText,
  version: NullText,
  life: Schema.Literals(["beating", "silent", "stopped", "unknown"]),
  startedAtMs: NullTime,
  beatAtMs: NullTime,
  inFlight: Schema.Int,
  settledLastMinute: Schema.Int,
  takenOverLastMinute: Schema.Int
})
export type Worker = typeof Worker.Type

/** The workers, and the store's time. */
export const Workers = Schema.Struct({ workers: Schema.Array(Worker), atMs: Schema.Finite })

/** An act of the trail. */
export const Act = Schema.Struct({
  position: Schema.Int, atMs: Schema.Finite, actor: Schema.String, act: Schema.String, subject: Schema.String, reason: Schema.String, detail: NullText
})

/**
 * What is pushed: every half second in which something moved, and every few seconds in any case. `moved` counts the events
 * by the state that they led to.
 */
export const Pulse = Schema.Struct({
  sequence: Schema.Int,
  atMs: Schema.Finite,
  moved: Schema.Record(Schema.String, Schema.Int),
  pauses: Schema.Array(Pause),
  counts: Counts
})
export type Pulse = typeof Pulse.Type

/** How an act on several things ended, for each of them, in words. */
export const ConflictsDone = Schema.Struct({
  results: Schema.Array(Schema.Struct({ runId: Schema.String, line: Schema.Int, done: Schema.Boolean, text: Schema.String }))
})

/** How an act ended, in words. */
export const Done = Schema.Struct({ text: Schema.String })
