/** Dunning from the configuration, for a process that has a workflow engine: the workflow, and the desk that starts and wakes its cases. */
import type { ChargeGateway, DunningBook, Ledger, SpendCap } from "@purser/core"
import { type ChargePipeline, DunningDesk, DunningHooks, DunningWorkflow, type GivenUp } from "@purser/engine"
import { Config, Effect, Layer, Option } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"
import type { WorkflowEngine } from "effect/workflow"

/** What dunning is built on. */
export type DunningNeeds = ChargeGateway | ChargePipeline | DunningBook | Ledger | SpendCap | WorkflowEngine.WorkflowEngine

const settings = Config.all({
  url: Config.option(Config.URL("PURSER_DUNNING_FINAL_URL")),
  token: Config.option(Config.Redacted("PURSER_DUNNING_FINAL_TOKEN"))
})

/** What a given-up charge is told as. The case's id is the key to tell a repeat by. */
const bodyOf = ({ case: { caseId, openedAtMs }, record: { attempt, chargeKey, outcome, request } }: GivenUp) => ({
  type: "dunning.given_up",
  caseId,
  chargeKey,
  customerId: request.customerId,
  billingPeriod: request.billingPeriod,
  item: request.item ?? null,
  namespace: request.namespace,
  stripeCustomerId: request.stripeCustomerId,
  amountMinor: request.amountMinor,
  currency: request.currency,
  attempts: attempt,
  declineCode: outcome?._tag === "Declined" ? outcome.declineCode ?? outcome.code : null,
  openedAtMs
})

/** The hook of the program, else a POST to the address of the configuration; any answer but 2xx is tried again later. */
const hooks = Layer.unwrap(Effect.gen(function*() {
  const { token, url } = yield* settings
  if (Option.isSome(yield* Effect.serviceOption(DunningHooks)) || Option.isNone(url)) return Layer.empty
  return Layer.effect(DunningHooks, Effect.map(HttpClient.HttpClient, (client) => {
    const send = HttpClient.filterStatusOk(client)
    return DunningHooks.of({
      givenUp: (ended) => {
        const request = HttpClientRequest.post(url.value).pipe(
          HttpClientRequest.setHeader("idempotency-key", ended.case.caseId),
          HttpClientRequest.bodyJsonUnsafe(bodyOf(ended)),
          Option.isSome(token) ? HttpClientRequest.bearerToken(token.value) : (same) => same
        )
        return Effect.asVoid(send.execute(request)).pipe(
          Effect.timeoutOrElse({ duration: "30 seconds", orElse: () => Effect.fail({ message: "no answer within 30 seconds" }) })
        )
      }
    })
  })).pipe(Layer.provide(FetchHttpClient.layer))
}))

/** Layers of dunning. */
export const PurserDunning: {
  /** Registers the workflow, and tends the cases in the background for as long as the layer lives. */
  readonly layerServing: Layer.Layer<DunningDesk, Config.ConfigError, DunningNeeds>
} = {
  layerServing: Layer.effectDiscard(Effect.flatMap(DunningDesk, ({ run }) => Effect.forkScoped(run))).pipe(
    Layer.provideMerge(DunningDesk.layer),
    // Before the desk starts anything: an engine runs only what is registered with it.
    Layer.provideMerge(DunningWorkflow.layer.pipe(Layer.provide(hooks)))
  )
}
