/**
 * What one dispatch has heard from workers, as far as it decides whether to go on. A row that was answered by an outcome is never asked
 * again by the same dispatch, and one with a final answer by no later one either: where the own ledger does not say so, whoever answered
 * keeps another one, or none.
 */
import type { ChargeOutcome, SubmitError } from "@purser/core"

const wordBits = 32
const blockLines = 1024

/** Lines of a run; a run of millions takes a bit for each. */
export class Lines {
  private readonly blocks = new Map<number, Uint32Array>()
  last = 0

  add(line: number) {
    this.last = Math.max(this.last, line)
    const block = Math.floor(line / blockLines)
    let words = this.blocks.get(block)
    if (words === undefined) this.blocks.set(block, words = new Uint32Array(blockLines / wordBits))
    const at = line % blockLines
    words[Math.floor(at / wordBits)]! |= 1 << at % wordBits
  }

  has(line: number): boolean {
    const at = line % blockLines
    const word = this.blocks.get(Math.floor(line / blockLines))?.[Math.floor(at / wordBits)] ?? 0
    return (word & 1 << at % wordBits) !== 0
  }
}

/** Nobody opens such a charge again. One that ended unpaid may be opened by a person, or by dunning, before its answer has arrived. */
const isFinal = ({ _tag }: ChargeOutcome) => _tag === "Succeeded" || _tag === "Processing" || _tag === "Canceled"

export class Heard {
  private readonly unpaidLines = new Lines()
  private readonly final: Lines
  private readonly checkEvery: number
  private finals = 0
  private unpaid = 0
  private refusals = 0
  private failures = 0
  /** Why the last refusal was one. */
  refusal = ""
  /** Rows of this pass that are still open, though they were answered before it. */
  passedOver = 0
  /** The ledger had nothing of a final answer that it was asked about. */
  isElsewhere = false
  /** The ledger had an answer that it was asked about. */
  isOurs = false

  /** `final`: rows with a final answer, also to an earlier dispatch of the run. */
  constructor(checkEvery: number, final: Lines) {
    this.checkEvery = checkEvery
    this.final = final
  }

  /** Whether the ledger should be asked about this row: the first of its kind, so that little is sent to strangers, and one now and then. */
  answer(line: number, outcome: ChargeOutcome): boolean {
    if (!isFinal(outcome)) {
      this.unpaidLines.add(line)
      return this.unpaid++ % this.checkEvery === 0
    }
    this.final.add(line)
    return this.finals++ % this.checkEvery === 0
  }

  /** What the ledger said of an answered row. */
  checked(line: number, isStillOpen: boolean): void {
    if (!isStillOpen) this.isOurs = true
    else if (this.final.has(line)) this.isElsewhere = true
  }

  fail(error: SubmitError): void {
    if (error._tag !== "TransportError" || error.reason._tag !== "Unauthorized") this.failures++
    else {
      this.refusals++
      this.refusal = error.message
    }
  }

  /** Whether a row may be asked for. */
  mayAsk(line: number): boolean {
    const isAnswered = this.final.has(line) || this.unpaidLines.has(line)
    if (isAnswered) this.passedOver++
    return !isAnswered
  }

  /** Whether an answered row that is still open tells of another ledger. */
  isForeign(line: number): boolean {
    return this.final.has(line) || (!this.isOurs && this.unpaidLines.has(line))
  }

  /** The last line that was answered. */
  get lastLine(): number {
    return Math.max(this.final.last, this.unpaidLines.last)
  }

  /** Nothing but refusals was heard. */
  get isRefused(): boolean {
    return this.refusals > 0 && this.finals === 0 && this.unpaid === 0 && this.failures === 0
  }

  /** Nothing more is to be sent. */
  get isEnough(): boolean {
    return this.isElsewhere || (this.isRefused && this.refusals >= this.checkEvery)
  }
}
