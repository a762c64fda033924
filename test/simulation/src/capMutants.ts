/** Planted bugs about several caps: what counts under one is counted under another. */
import type { CapReport, CapScope, ChargeKey, SpendCap } from "@purser/core"
import { Effect } from "effect"
import type { PlannedCap } from "./Caps.ts"
import type { Mutant } from "./Mutant.ts"
import type { Scenario } from "./Scenario.ts"

const differ = (by: "currency" | "billingPeriod" | "namespace") => ({ caps }: Pick<Scenario, "caps">) =>
  caps.some((one) => caps.some((other) => one[by] !== other[by] && same(one, other, by)))

type Part = "currency" | "billingPeriod" | "namespace"
const parts: ReadonlyArray<Part> = ["namespace", "billingPeriod", "currency"]
const same = (one: Omit<PlannedCap, "capMinor"> | CapScope | CapReport, other: Omit<PlannedCap, "capMinor"> | CapScope, without: Part) =>
  parts.every((part) => part === without || one[part] === other[part])

/** Room is taken from the first cap that is like the right one but for one part of its name. */
const lookedUpWithout = (part: Part): Mutant["cap"] => ({ cap }) => ({
  ...cap,
  reserve: (input) =>
    Effect.flatMap(cap.report(), (caps) => {
      const { billingPeriod, currency, namespace } = caps.find((one) => same(one, input, part)) ?? input
      return cap.reserve({ ...input, billingPeriod, currency, namespace })
    })
})

const shows = /was paid under a cap of|the cap holds|rejected without reason/

/** All of them. */
export const capMutants: ReadonlyArray<Mutant> = [
  {
    name: "a cap looked up without its currency",
    story: "room for euros is taken from the dollars",
    within: 60,
    shows,
    fits: differ("currency"),
    cap: lookedUpWithout("currency")
  },
  {
    name: "a cap looked up without its period",
    story: "room for one month is taken from another's",
    within: 100,
    shows,
    fits: differ("billingPeriod"),
    cap: lookedUpWithout("billingPeriod")
  },
  {
    name: "a cap looked up without its namespace",
    story: "two products of a company share one cap by mistake",
    within: 200,
    shows,
    fits: differ("namespace"),
    cap: lookedUpWithout("namespace")
  },
  {
    name: "a release given to another cap",
    story: "what a declined charge gives back is booked where the last room was taken",
    within: 60,
    shows: /was paid under a cap of|the cap holds/,
    fits: ({ caps }) => caps.length > 1,
    cap: ({ cap }) => {
      const taken = new Map<ChargeKey, string>()
      const scopeOf = ({ billingPeriod, currency, namespace }: CapScope) => JSON.stringify([namespace, billingPeriod, currency])
      const reserve: SpendCap["Service"]["reserve"] = (input) => Effect.tap(cap.reserve(input), () => Effect.sync(() => taken.set(input.chargeKey, scopeOf(input))))
      return {
        ...cap,
        reserve,
        release: (chargeKey, attempt) => {
          const scope = taken.get(chargeKey)
          const other = [...taken].findLast(([, one]) => scope !== undefined && one !== scope)?.[0]
          taken.delete(chargeKey)
          return other === undefined ? cap.release(chargeKey, attempt) : cap.release(other, Number.MAX_SAFE_INTEGER)
        }
      }
    }
  }
]
