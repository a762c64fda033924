/** What is mutated, and by which tests it is to be noticed: those that are fast, in one process, on memory stores and virtual time. */
export const scopes = {
  core: {
    mutate: ["packages/core/src/{BillingPeriod,CapFigures,ChargeKey,ChargeRequest,Currency,DeclineAdvice,Money,RefundRules}.ts", "packages/core/src/internal/{idProblem,wireTwice}.ts"],
    tests: ["packages/core/test/{BillingPeriod,ChargeKey,ChargeRequest,DeclineAdvice,Money,RefundRules,Wire,wireTwice,CapFigures}.test.ts"]
  },
  ledger: {
    mutate: ["packages/core/src/internal/{ledgerMemory,spendCapMemory}.ts"],
    tests: ["packages/testkit/test/conformance.test.ts"]
  },
  engine: {
    mutate: ["packages/engine/src/DunningPolicy.ts", "packages/engine/src/internal/{backoff,boundedInt,evidence,gate,gatewaySteps,judge,outcomes,remedy,steps}.ts"],
    tests: ["test/engine/test/{ChargePipeline,dunning,lostLease,pause,recordedPayment,roomOnce,decisions}.test.ts"]
  }
}
