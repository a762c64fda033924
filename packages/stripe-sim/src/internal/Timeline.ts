/**
 * The simulator's clock and what is due later on it.
 *
 * Defines one virtual time for all accounts: real time plus what was advanced. Refuses to wake up by itself: what is
 * due runs when someone asks, so a test decides when time has passed.
 */

/** Something that happens later. `roll` marks what a 500 left behind, which can also be ordered to happen now. */
interface Due {
  readonly dueMs: number
  readonly seq: number
  readonly roll: boolean
  readonly run: () => void
}

/** The clock and the agenda. */
export class Timeline {
  private readonly realNowMs: () => number
  private advancedMs = 0
  private latestMs = 0
  private seq = 0
  private agenda: Array<Due> = []
  /** The earliest due time, so that asking costs nothing while nothing is due. */
  private nextMs = Infinity

  constructor(realNowMs: () => number) {
    this.realNowMs = realNowMs
  }
  /** The virtual time in milliseconds. It never runs backwards. */
  get nowMs(): number {
    this.latestMs = Math.max(this.latestMs, this.realNowMs() + this.advancedMs)
    return this.latestMs
  }
  /** Plans something. */
  after(delayMs: number, run: () => void, roll = false): void {
    const dueMs = this.nowMs + delayMs
    this.agenda.push({ dueMs, seq: ++this.seq, roll, run })
    this.nextMs = Math.min(this.nextMs, dueMs)
  }
  /** Moves the clock forward and stops at each thing that is due on the way, so that it sees its own time. */
  advance(ms: number): void {
    const endMs = this.nowMs + ms
    while (this.nextMs <= endMs) {
      this.advancedMs += Math.max(0, this.nextMs - this.nowMs)
      this.runDue()
    }
    this.advancedMs += Math.max(0, endMs - this.nowMs)
    this.runDue()
  }
  /** Runs what is due by now. */
  runDue(): void {
    while (this.nextMs <= this.nowMs) {
      const nowMs = this.nowMs
      this.take((item) => item.dueMs <= nowMs)
    }
  }
  /** Runs all that 500 answers left for later, due or not. */
  rollAll(): void {
    this.take((item) => item.roll)
  }
  private take(which: (item: Due) => boolean): void {
    const taken = this.agenda.filter(which)
    this.agenda = this.agenda.filter((item) => !taken.includes(item))
    this.nextMs = this.agenda.reduce((least, { dueMs }) => Math.min(least, dueMs), Infinity)
    taken.sort((one, other) => one.dueMs - other.dueMs || one.seq - other.seq)
    for (const item of taken) item.run()
  }
}
