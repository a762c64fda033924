/** What is mutated, and by which tests it is to be noticed: those that are fast, in one process, on memory stores and virtual time. */
export const scopes = {
  // What is hashed, counted and read: no services at all.
  core: {
    mutate: ["packages/core/src/{BillingPeriod,CapFigures,ChargeKey,Currency,DeclineAdvice,Money}.ts", "packages/core/src/internal/{idProblem,remembered,usualFields,wireTwice}.ts"],
    tests: ["packages/core/test/{BillingPeriod,ChargeKey,ChargeRequest,DeclineAdvice,Money,remembered,wireTwice,rules}.test.ts"]
  },
  // What follows from an object, a refusal, a difference: the engine's pure decisions.
  decisions: {
    mutate: ["packages/engine/src/internal/{evidence,judge,outcomes}.ts", "packages/engine/src/internal/remedy.ts:12-38", "packages/engine/src/internal/remedy.ts:83-85"],
    tests: ["packages/engine/test/decisions.test.ts"]
  },
  // The rows and the cap, as every store has to keep them; what only the book of dunning reads of a row is noticed by its suite.
  ledger: {
    mutate: ["packages/core/src/internal/{ledgerMemory,spendCapMemory}.ts"],
    tests: ["packages/testkit/test/{conformance,dunning}.test.ts"]
  },
  // What puts the steps together: one charge from claim to release, the leases meanwhile, what is taken over, and what is compared.
  pipeline: {
    mutate: ["packages/engine/src/{ChargePipeline,Reconciler,Sweeper}.ts", "packages/engine/src/internal/{leaseKeeper,leave,room,settling}.ts"],
    tests: ["packages/engine/test/{leaseKeeper,oneCall,pipeline,reconciler,sweeper}.test.ts"]
  },
  // The order of the steps, the breaker, what is repeated, and what is taken up at all.
  steps: {
    mutate: ["packages/engine/src/DunningPolicy.ts", "packages/engine/src/internal/{admission,backoff,gate,gatewaySteps,inWork,standing}.ts"],
    tests: ["packages/engine/test/{steps,work}.test.ts", "test/engine/test/dunning.test.ts"]
  }
}
