/**
 * What a search sees: the objects as they were a while ago.
 *
 * Defines the delay between a change and its appearance. Keeps the earlier versions of what changed lately and nothing
 * else, so an account that is never searched pays little.
 */
import type { Collection, Kept } from "./Collection.ts"

interface Change<A> {
  readonly id: string
  readonly atMs: number
  readonly before: A | undefined
}

/** The index of one collection. */
export class SearchIndex<A extends Kept> {
  private readonly items: Collection<A>
  private readonly nowMs: () => number
  private readonly delayMs: number
  private changes: Array<Change<A>> = []
  private first = 0

  constructor(items: Collection<A>, nowMs: () => number, delayMs: number) {
    this.items = items
    this.nowMs = nowMs
    this.delayMs = delayMs
    items.onPut = (id, before) => {
      if (this.delayMs <= 0) return
      this.changes.push({ id, atMs: this.nowMs(), before })
      this.forget()
    }
  }

  /** Newest first, each as the index knows it. */
  *newestFirst(): Generator<A> {
    this.forget()
    const earlier = new Map<string, A | undefined>()
    for (let at = this.changes.length - 1; at >= this.first; at--) {
      const change = this.changes[at]
      if (change !== undefined) earlier.set(change.id, change.before)
    }
    for (const item of this.items.newestFirst()) {
      const known = earlier.has(item.id) ? earlier.get(item.id) : item
      if (known !== undefined) yield known
    }
  }

  private forget(): void {
    const visibleMs = this.nowMs() - this.delayMs
    while ((this.changes[this.first]?.atMs ?? Infinity) <= visibleMs) this.first++
    if (this.first < 1024 || this.first * 2 < this.changes.length) return
    this.changes = this.changes.slice(this.first)
    this.first = 0
  }
}
