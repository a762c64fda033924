/**
 * Objects in order of creation, found by id and by the group that they belong to.
 *
 * Defines how an account keeps each kind of object. Refuses to know what the objects are.
 */

/** What a collection holds. `seq` of the n-th object is n. */
export interface Kept {
  readonly id: string
  readonly seq: number
  readonly createdS: number
}

/** Objects of one kind. The group is what lists ask for most: a customer, a charge, an invoice. */
export class Collection<A extends Kept> {
  private readonly byId = new Map<string, A>()
  private readonly order: Array<string> = []
  private readonly byGroup = new Map<string, Array<string>>()
  private readonly groupOf: (item: A) => string | null
  /** True while each object is no older than the one before it; test clocks make some that are. */
  inOrder = true
  private latestS = 0
  /** Told of each change, before it is made. */
  onPut: ((id: string, before: A | undefined) => void) | undefined

  constructor(groupOf: (item: A) => string | null) {
    this.groupOf = groupOf
  }
  get nextSeq(): number {
    return this.order.length
  }
  get size(): number {
    return this.byId.size
  }
  get(id: string): A | undefined {
    return this.byId.get(id)
  }
  /** Adds a new object or replaces the version that is there. */
  put<B extends A>(item: B): B {
    const before = this.byId.get(item.id)
    this.onPut?.(item.id, before)
    this.byId.set(item.id, item)
    if (before === undefined) {
      this.order.push(item.id)
      if (item.createdS < this.latestS) this.inOrder = false
      this.latestS = item.createdS
    }
    const group = this.groupOf(item)
    // An update may name the group for the first time.
    if (group !== null && (before === undefined || this.groupOf(before) !== group)) {
      const ids = this.byGroup.get(group)
      if (ids === undefined) this.byGroup.set(group, [item.id])
      else ids.push(item.id)
    }
    return item
  }
  /** Forgets an object; the place in the order stays empty. */
  remove(id: string): void {
    this.byId.delete(id)
  }
  /** Newest first, of one group or of all; of all, only those older than `belowSeq`. */
  *newestFirst(group?: string, belowSeq = Infinity): Generator<A> {
    const ids = group === undefined ? this.order : this.byGroup.get(group) ?? []
    for (let at = (group === undefined ? Math.min(ids.length, belowSeq) : ids.length) - 1; at >= 0; at--) {
      const item = this.byId.get(ids[at] ?? "")
      if (item !== undefined && (group === undefined || this.groupOf(item) === group)) yield item
    }
  }
  values(): Iterable<A> {
    return this.byId.values()
  }
}
