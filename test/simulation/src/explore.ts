/**
 * Every order of steps, crashes, lost answers and lapsed leases within bounds: depth first, each state once. A machine cannot
 * be copied, so that a branch is reached by running its history again from the beginning.
 */
import { chargeFor } from "@purser/testkit"
import { createHash } from "node:crypto"
import { type Action, type Bounds, Machine, type MachineBug } from "./Machine.ts"

/** What was seen. */
export interface Explored {
  readonly states: number
  /** Steps from one state to another, each once. */
  readonly transitions: number
  /** States in which nothing goes on any more. */
  readonly ends: number
  readonly deepest: number
  /** The first history that breaks the promise, and how. */
  readonly broken: { readonly history: ReadonlyArray<Action>; readonly problem: string } | undefined
}

const request = chargeFor("cust_1", "2026-10")

/** Explores all states that the bounds allow, or stops at the first broken one. */
export const explore = (bounds: Bounds, bug?: MachineBug): Explored => {
  const seen = new Set<string>()
  const open: Array<ReadonlyArray<Action>> = [[]]
  let transitions = 0
  let ends = 0
  let deepest = 0
  const result = (broken: Explored["broken"]): Explored => ({ states: seen.size, transitions, ends, deepest, broken })
  for (let history = open.pop(); history !== undefined; history = open.pop()) {
    const machine = new Machine(request, bounds, bug)
    for (const action of history) machine.act(action)
    for (let path = history;;) {
      const problem = machine.problem()
      if (problem !== undefined) return result({ history: path, problem })
      const key = createHash("sha1").update(machine.text()).digest("base64")
      if (seen.has(key)) break
      seen.add(key)
      deepest = Math.max(deepest, path.length)
      const [first, ...others] = machine.actions()
      transitions += first === undefined ? 0 : 1 + others.length
      for (const other of others) open.push([...path, other])
      if (first === undefined) {
        ends += 1
        const late = machine.problemAtRest()
        if (late !== undefined) return result({ history: path, problem: late })
        break
      }
      machine.act(first)
      path = [...path, first]
    }
  }
  return result(undefined)
}
