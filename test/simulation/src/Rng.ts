/**
 * Chance from one seed: the same seed gives the same numbers on every machine. Each concern draws from a branch of its
 * own, so that leaving a fault out changes no other choice. Nothing here is fit for secrets.
 */

/** A source of numbers. */
export interface Rng {
  /** 0 up to, but not including, 1. */
  readonly next: () => number
  /** A whole number from `low` to `high`, both included. */
  readonly between: (low: number, high: number) => number
  readonly chance: (probability: number) => boolean
  readonly pick: <A>(from: ReadonlyArray<A>) => A
  /** An independent source, named by what it is for. */
  readonly branch: (name: string) => Rng
}

const hashOf = (text: string): number => {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return hash >>> 0
}

/** The source of a seed. */
export const rngOf = (seed: string): Rng => {
  let a = hashOf(`${seed}/a`)
  let b = hashOf(`${seed}/b`)
  let c = hashOf(`${seed}/c`)
  let counter = 1
  const next32 = () => {
    const sum = (a + b + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (((c << 21) | (c >>> 11)) + sum) | 0
    return sum >>> 0
  }
  for (let warm = 0; warm < 12; warm++) next32()
  const next = () => next32() / 2 ** 32
  const between = (low: number, high: number) => low + Math.floor(next() * (high - low + 1))
  return {
    next,
    between,
    chance: (probability) => next() < probability,
    pick: (from) => {
      const found = from[between(0, from.length - 1)]
      if (found === undefined) throw new Error("Bug: a choice among nothing")
      return found
    },
    branch: (name) => rngOf(`${seed}/${name}`)
  }
}
