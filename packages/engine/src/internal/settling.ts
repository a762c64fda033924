/** The recording of what became of a charge. The database may be away for a moment just now, with the money moved: that is worth some patience. */
import type { ChargeOutcome, ClaimedCharge, LedgerError, PipelineError, SettleAnswer } from "@purser/core"
import { type Cause, Effect } from "effect"
import { type Patience, retryFailed } from "./backoff.ts"
import { Onward } from "./steps.ts"

/** What is the same for all charges of a pipeline. */
export interface SettlingRules {
  readonly patience: Patience<LedgerError>
  /** How it goes on from the ledger's answer. */
  readonly answered: (charge: ClaimedCharge, outcome: ChargeOutcome, answer: SettleAnswer) => Effect.Effect<ChargeOutcome, PipelineError>
}

/** Of one charge. */
export class Settling extends Onward<SettleAnswer, LedgerError, ChargeOutcome, PipelineError> {
  private readonly rules: SettlingRules
  private readonly charge: ClaimedCharge
  private readonly outcome: ChargeOutcome
  private readonly asked: Effect.Effect<SettleAnswer, LedgerError>

  constructor(rules: SettlingRules, charge: ClaimedCharge, outcome: ChargeOutcome, asked: Effect.Effect<SettleAnswer, LedgerError>) {
    super()
    this.rules = rules
    this.charge = charge
    this.outcome = outcome
    this.asked = asked
  }

  override again(cause: Cause.Cause<LedgerError>): Effect.Effect<SettleAnswer, LedgerError> {
    return retryFailed(this.asked, this.rules.patience, cause)
  }

  override onSuccess(answer: SettleAnswer): Effect.Effect<ChargeOutcome, PipelineError> {
    return this.rules.answered(this.charge, this.outcome, answer)
  }

  override onEnd(cause: Cause.Cause<LedgerError>): Effect.Effect<ChargeOutcome, PipelineError> {
    return Effect.failCause(cause)
  }
}
