/** Why a dispatch ends before its rows are settled, though time would not help. */
import { Schema } from "effect"

const id = (name: string) => `@purser/engine/DispatchError/${name}`

/** Workers have answered for rows, and the run's ledger has nothing of it. They are not asked again: a worker that keeps no ledger would charge again. */
export class AnsweredElsewhere extends Schema.TaggedError<AnsweredElsewhere>(id("AnsweredElsewhere"))("AnsweredElsewhere", {
  rows: Schema.Int
}) {
  override get message() {
    const rows = this.rows === 1 ? "1 row was" : `${this.rows} rows were`
    return `the workers answer from another ledger than this run's: ${rows} answered, and the ledger has nothing of it. Nothing more is sent; give workers and run one ledger before it is started again`
  }
  get outcome() {
    return "unknown" as const
  }
}

/** Every attempt of everything that was sent was refused, so that no worker has seen it. */
export class ClientRefused extends Schema.TaggedError<ClientRefused>(id("ClientRefused"))("ClientRefused", {
  detail: Schema.String
}) {
  override get message() {
    return `everything that was sent was refused (${this.detail}): nothing was charged`
  }
  get outcome() {
    return "not_charged" as const
  }
}

/** A dispatch was given up; what its rows are is in the run's book. */
export class DispatchError extends Schema.TaggedError<DispatchError>("@purser/engine/DispatchError")("DispatchError", {
  runId: Schema.String,
  reason: Schema.Union([AnsweredElsewhere, ClientRefused])
}) {
  override get message() {
    return this.reason.message
  }
  get isRetryable() {
    return false
  }
  get outcome() {
    return this.reason.outcome
  }
}
