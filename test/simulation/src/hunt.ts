/**
 * Seeds one after the other: with a planted bug until its world shows it, without one to see that none does. What is found is
 * made smaller, by leaving faults and charges out as long as the same seed still fails.
 */
import { scopeText } from "./Caps.ts"
import type { Mutant } from "./Mutant.ts"
import { type Scenario, scenarioOf } from "./Scenario.ts"
import { runScenario, type Verdict } from "./World.ts"

/** A scenario that fails, and how. */
export interface Found {
  readonly seed: number
  readonly scenario: Scenario
  readonly verdict: Verdict
}

/** The first of the seeds 1 … `within` whose world shows the bug; those that are named are tried before. */
export const hunt = async (mutant: Mutant, named: ReadonlyArray<number> = []): Promise<Found | undefined> => {
  const within = Array.from({ length: mutant.within }, (_, index) => index + 1)
  for (const seed of [...named.filter((one) => one <= mutant.within), ...within]) {
    const scenario = scenarioOf(String(seed))
    if (mutant.fits?.(scenario) === false) continue
    const verdict = await runScenario(scenario, mutant)
    if (verdict.violations.some((violation) => mutant.shows.test(violation))) return { seed, scenario, verdict }
  }
  return undefined
}

/** Fewer faults, then fewer charges, with which the scenario still fails; at most `runsMax` worlds are run for it. */
export const shrink = async (scenario: Scenario, mutant?: Mutant, runsMax = 120): Promise<Scenario> => {
  let best = scenario
  let runs = 0
  const fails = async (candidate: Scenario) => ++runs <= runsMax && (await runScenario(candidate, mutant)).violations.some((violation) => mutant?.shows.test(violation) ?? true)
  const without = async (size: number) => {
    for (let from = 0; from < best.faults.length;) {
      const candidate = { ...best, faults: best.faults.toSpliced(from, size) }
      if (await fails(candidate)) best = candidate
      else from += size
    }
  }
  for (let size = Math.max(1, best.faults.length >> 1); size >= 1; size >>= 1) await without(size)
  for (const part of Object.keys(best.beside)) {
    const candidate = { ...best, beside: Object.fromEntries(Object.entries(best.beside).filter(([name]) => name !== part)) }
    if (await fails(candidate)) best = candidate
  }
  for (let at = best.charges.length - 1; at >= 0 && best.charges.length > 1; at--) {
    const candidate = { ...best, charges: best.charges.toSpliced(at, 1) }
    if (await fails(candidate)) best = candidate
  }
  await without(1)
  return best
}

/** The command that runs a seed again, with its planted bug where it had one. */
export const commandOf = (seed: number | string, mutant?: Mutant): string =>
  `pnpm simulate ${mutant === undefined ? "" : `--mutant ${JSON.stringify(mutant.name)} `}--seed ${seed}`

/** How a person repeats and understands a failure. */
export const describe = (seed: string, scenario: Scenario, shrunk: Scenario, violations: ReadonlyArray<string>, mutant?: Mutant): string =>
  [
    `seed ${seed} fails: ${commandOf(seed, mutant)}`,
    ...violations.map((violation) => `  ${violation}`),
    `${scenario.faults.length} faults and ${scenario.charges.length} charges; these are enough (${scenario.gateway}, idempotency ${scenario.idempotency ? "on" : "off"}, ${scenario.caps.map((cap) => `cap ${cap.capMinor} of ${scopeText(cap)}`).join(", ")}):`,
    ...(scenario.run === undefined ? [] : [`  run: ${JSON.stringify(scenario.run)}`]),
    ...Object.entries(shrunk.beside).map(([part, plan]) => `  ${part}: ${JSON.stringify(plan)}`),
    ...shrunk.faults.map((fault) => `  ${JSON.stringify(fault)}`),
    ...shrunk.charges.map((charge) => `  ${JSON.stringify(charge)}`)
  ].join("\n")
