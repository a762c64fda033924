/**
 * What every `Ledger` must do, driver or memory: `docs/protocol.md` as tests. Each test uses a customer of its own, so
 * that one store serves the whole suite; sweeps are read through the keys of the test.
 */
import type { Ledger } from "@purser/core"
import { layer as testLayer } from "@effect/vitest"
import type { Layer } from "effect"
import { actCases } from "./internal/ledgerActCases.ts"
import { claimCases } from "./internal/ledgerClaimCases.ts"
import { declineCases } from "./internal/ledgerDeclineCases.ts"
import { leaseCases } from "./internal/ledgerLeaseCases.ts"
import { settleCases } from "./internal/ledgerSettleCases.ts"
import { trailCases } from "./internal/ledgerTrailCases.ts"
import { waitCases } from "./internal/ledgerWaitCases.ts"
import type { StoreClock } from "./StoreClock.ts"

/** Runs the suite against a ledger; the layer is built once. */
export const suite = <E>(name: string, layer: Layer.Layer<Ledger | StoreClock, E>): void =>
  testLayer(layer, { timeout: 120_000 })(`Ledger: ${name}`, (it) => {
    claimCases(it)
    settleCases(it)
    leaseCases(it)
    actCases(it)
    declineCases(it)
    waitCases(it)
    trailCases(it)
  })
