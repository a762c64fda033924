/** Charges that are remembered at the most; beyond them all are forgotten, and their pages are turned when they are due. */
const chargesMax = 65_536

class WrittenPage {
  readonly id: bigint
  left: number

  constructor(id: bigint, left: number) {
    this.id = id
    this.left = left
  }
}

/** Pages of which nothing is left, and one of the charges that each of them had. */
interface DonePages {
  readonly ids: Array<bigint>
  readonly keys: Array<string>
}

const nothing: DonePages = { ids: [], keys: [] }

/**
 * The lease pages that this process wrote, until it has settled all their charges: then nothing is left of them, and nobody has
 * to look those charges up to know it.
 */
export class WrittenPages {
  #pages = new Map<string, WrittenPage>()
  #done = nothing

  /** A page that was written. */
  add(id: bigint, keys: ReadonlyArray<string>): void {
    if (this.#pages.size + keys.length > chargesMax) this.#pages.clear()
    const page = new WrittenPage(id, keys.length)
    for (const key of keys) this.#pages.set(key, page)
  }

  /** A charge whose lease this process has ended. */
  settled(key: string): void {
    const page = this.#pages.get(key)
    if (page === undefined) return
    this.#pages.delete(key)
    if (--page.left > 0) return
    if (this.#done === nothing) this.#done = { ids: [], keys: [] }
    this.#done.ids.push(page.id)
    this.#done.keys.push(key)
  }

  /** How many pages may go. */
  get done(): number {
    return this.#done.ids.length
  }

  /** The pages that may go. They are forgotten with this: one that does not go is turned. */
  takeDone(): DonePages {
    const done = this.#done
    this.#done = nothing
    return done
  }
}
