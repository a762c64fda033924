/** First in, first out, at the same cost however many wait: taking from the front of an array or a set moves or skips the rest. */
export interface Line<A> {
  readonly add: (item: A) => void
  readonly take: () => A | undefined
}

/** Makes an empty line. */
export const makeLine = <A>(): Line<A> => {
  let items: Array<A | undefined> = []
  let head = 0
  let tail = 0
  return {
    add: (item) => void (items[tail++] = item),
    take: () => {
      if (head === tail) return undefined
      const item = items[head]
      // What was taken is not held: it would outlive collections of garbage, which cost most by what they must keep.
      items[head++] = undefined
      if (head === tail) head = tail = 0
      else if (head >= 1024 && head * 2 >= tail) {
        items = items.slice(head, tail)
        tail -= head
        head = 0
      }
      return item
    }
  }
}
