/** A reader that remembers what it has found; what is no text of its kind is read anew each time, so that nobody fills the memory with it. */
export const remembered = <A extends object | string>(max: number, read: (text: string) => A | undefined): (text: string) => A | undefined => {
  const known = new Map<string, A>()
  return (text) => {
    const before = known.get(text)
    if (before !== undefined) return before
    const found = read(text)
    if (found === undefined) return undefined
    if (known.size === max) known.clear()
    known.set(text, found)
    return found
  }
}
