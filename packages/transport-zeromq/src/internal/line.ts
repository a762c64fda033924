/** First in, first out, at the same cost however many wait: taking from the front of an array or a set moves or skips the rest. */
export interface Line<A> {
  readonly add: (item: A) => void
  readonly take: () => A | undefined
}

/** Makes an empty line. */
export const makeLine = <A>(): Line<A> => {
  let items: Array<A> = []
  let head = 0
  return {
    add: (item) => void items.push(item),
    take: () => {
      if (head === items.length) return undefined
      const item = items[head++]
      if (head >= 1024 && head * 2 >= items.length) {
        items = items.slice(head)
        head = 0
      }
      return item
    }
  }
}
