/**
 * The console's HTTP API, as one definition: the server, the OpenAPI description, the page of documentation and the typed
 * client are all made from it. It imports nothing of a server.
 */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { ActRefused, Away, NotThere, SignInNeeded } from "./ConsoleError.ts"
import * as Shapes from "./Shapes.ts"
import { actorHeader, csrfHeader, Door, Legible } from "./Visitor.ts"

const { Name, Person, Reason, Text } = Shapes
const said = (summary: string) => OpenApi.annotations({ summary })
const limit = (most: number) => Schema.optional(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: most })))
/** A moment that every store can hold. */
const Moment = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 8.64e15 }))
const reading = [Away, NotThere] as const
const acting = [Away, NotThere, ActRefused] as const

/** Signing in and out. */
export class SignInGroup extends HttpApiGroup.make("signIn")
  .add(HttpApiEndpoint.post("signIn", "/api/sign-in", {
    payload: Schema.Struct({ token: Schema.RedactedFromValue(Schema.String.check(Schema.isMaxLength(500))), actor: Person }),
    success: HttpApiSchema.NoContent,
    error: SignInNeeded
  }).annotateMerge(said("Exchange a token for a cookie; the actor's name goes on every act")))
  .add(HttpApiEndpoint.post("signOut", "/api/sign-out", { success: HttpApiSchema.NoContent }).annotateMerge(said("Give the cookie back: it opens nothing more at this process, nor does a copy of it")))
  .middleware(Legible)
  .annotateMerge(OpenApi.annotations({ title: "Sign-in" }))
{}

/** Who looks, and what moves. */
export class SessionGroup extends HttpApiGroup.make("session")
  .add(HttpApiEndpoint.get("get", "/api/session", { success: Shapes.Session, error: reading }).annotateMerge(said("Who looks, and what they may do")))
  .add(HttpApiEndpoint.get("live", "/api/live", { success: HttpApiSchema.StreamSse({ data: Shapes.Pulse, error: Away }) }).annotateMerge(said("What moves, pushed")))
  .add(HttpApiEndpoint.get("acts", "/api/acts", {
    query: { before: Schema.optional(Schema.Int), limit: limit(500) },
    success: Schema.Struct({ acts: Schema.Array(Shapes.Act) }),
    error: reading
  }).annotateMerge(said("What people did, the newest first")))
  .middleware(Door)
  .middleware(Legible)
  .annotateMerge(OpenApi.annotations({ title: "Session" }))
{}

const runParams = { params: { runId: Text }, payload: Schema.Struct({ reason: Reason }), success: Shapes.Done, error: acting }

/** Billing runs, and the switch that stops charging. */
export class RunsGroup extends HttpApiGroup.make("runs")
  .add(HttpApiEndpoint.get("list", "/api/runs", {
    query: { before: Schema.optional(Moment), limit: limit(200) },
    success: Shapes.Runs,
    error: reading
  }).annotateMerge(said("Runs, the newest first; before all of them also those that are not over, however old they are")))
  .add(HttpApiEndpoint.get("view", "/api/runs/:runId", { params: { runId: Text }, success: Shapes.RunView, error: reading }).annotateMerge(said("One run with its numbers")))
  .add(HttpApiEndpoint.post("pause", "/api/runs/:runId/pause", runParams).annotateMerge(said("Send nothing more of this run; what was sent settles")))
  .add(HttpApiEndpoint.post("resume", "/api/runs/:runId/resume", runParams).annotateMerge(said("Let the run go on")))
  .add(HttpApiEndpoint.post("cancel", "/api/runs/:runId/cancel", runParams).annotateMerge(said("Send nothing more of this run, for good")))
  .add(HttpApiEndpoint.post("pauseCharging", "/api/charging/pause", { payload: Schema.Struct({ reason: Reason }), success: Shapes.Done, error: acting })
    .annotateMerge(said("Stop all charging of this database")))
  .add(HttpApiEndpoint.post("resumeCharging", "/api/charging/resume", { payload: Schema.Struct({ reason: Reason }), success: Shapes.Done, error: acting })
    .annotateMerge(said("Let charging go on, whoever paused it")))
  .middleware(Door)
  .middleware(Legible)
  .annotateMerge(OpenApi.annotations({ title: "Runs" }))
{}

const keyParams = { chargeKey: Shapes.Key }

/** Charges. */
export class ChargesGroup extends HttpApiGroup.make("charges")
  .add(HttpApiEndpoint.get("find", "/api/charges", {
    query: {
      customer: Schema.optional(Text),
      /** `whole`: the id and no other; else also those that begin with it. */
      match: Schema.optional(Schema.Literals(["whole", "prefix"])),
      period: Schema.optional(Text),
      state: Schema.optional(Schema.Literals([...Shapes.State.literals, "quarantined"])),
      paymentIntent: Schema.optional(Text),
      after: Schema.optional(Text),
      limit: limit(500)
    },
    success: Shapes.ChargePage,
    error: [Away, ActRefused]
  }).annotateMerge(said("Charges by customer, period, state or payment object, a page at a time")))
  .add(HttpApiEndpoint.get("totals", "/api/totals", {
    query: { period: Schema.optional(Text) },
    success: Schema.Struct({ totals: Schema.Array(Shapes.Total), atMs: Schema.Finite }),
    error: reading
  }).annotateMerge(said("Counts and sums by period, currency and state")))
  .add(HttpApiEndpoint.get("story", "/api/charges/:chargeKey", { params: keyParams, success: Shapes.Story, error: reading })
    .annotateMerge(said("One charge with every event, attempt, refund and object")))
  .add(HttpApiEndpoint.post("retry", "/api/charges/:chargeKey/retry", {
    params: keyParams, payload: Schema.Struct({ reason: Reason, paymentMethod: Schema.optional(Name) }), success: Shapes.Done, error: acting
  }).annotateMerge(said("Take a charge that ended unpaid up again, once")))
  .add(HttpApiEndpoint.post("resume", "/api/charges/:chargeKey/resume", {
    params: keyParams, payload: Schema.Struct({ reason: Reason }), success: Shapes.Done, error: acting
  }).annotateMerge(said("Go on with a charge that nobody holds: its object is read, and what it says is recorded")))
  .middleware(Door)
  .middleware(Legible)
  .annotateMerge(OpenApi.annotations({ title: "Charges" }))
{}

/** Which conflict: the run is empty for a request that came over a transport. */
const conflict = { runId: Text, line: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 2_147_483_647 })) }

/** What waits for a person. */
export class AttentionGroup extends HttpApiGroup.make("attention")
  .add(HttpApiEndpoint.get("list", "/api/attention", { success: Shapes.Waiting, error: reading }).annotateMerge(said("What waits for a person, with the evidence")))
  .add(HttpApiEndpoint.post("keepCharge", "/api/attention/conflicts/keep", {
    payload: Schema.Struct({ ...conflict, reason: Reason }), success: Shapes.Done, error: acting
  }).annotateMerge(said("Drop the other terms of a conflict; the charge stays as the ledger has it")))
  .add(HttpApiEndpoint.post("keepCharges", "/api/attention/conflicts/keep-many", {
    payload: Schema.Struct({ conflicts: Schema.Array(Schema.Struct(conflict)).check(Schema.isBetweenLength(1, 200)), reason: Reason }), success: Shapes.ConflictsDone, error: acting
  }).annotateMerge(said("The same for several, each told for itself")))
  .add(HttpApiEndpoint.post("endQuarantine", "/api/attention/quarantine/end", {
    payload: Schema.Struct({ chargeKey: Shapes.Key, reason: Reason }), success: Shapes.Done, error: acting
  }).annotateMerge(said("Let a quarantined charge be taken up again; its object is read first")))
  .add(HttpApiEndpoint.post("discardLetters", "/api/attention/letters/discard", {
    payload: Schema.Struct({ digests: Schema.Array(Text).check(Schema.isBetweenLength(1, 500)), reason: Reason }), success: Shapes.Done, error: acting
  }).annotateMerge(said("Throw dead letters away")))
  .middleware(Door)
  .middleware(Legible)
  .annotateMerge(OpenApi.annotations({ title: "Attention" }))
{}

const scope = { namespace: Name, billingPeriod: Name, currency: Name, reason: Reason }

/** Caps and vault keys. */
export class CapsGroup extends HttpApiGroup.make("caps")
  .add(HttpApiEndpoint.get("list", "/api/caps", { success: Shapes.Caps, error: reading }).annotateMerge(said("Caps with their history, and the pauses")))
  .add(HttpApiEndpoint.post("raise", "/api/caps/raise", {
    payload: Schema.Struct({
      ...scope,
      expectedTotal: Name,
      headroomPercent: Schema.Int.check(Schema.isBetween({ minimum: 100, maximum: 200 })),
      /** A cap below what is used already is refused without it. */
      belowUsed: Schema.optional(Schema.Boolean)
    }),
    success: Shapes.Done, error: acting
  }).annotateMerge(said("Set a cap's figures anew; the expected total in the currency's major unit")))
  .add(HttpApiEndpoint.post("close", "/api/caps/close", { payload: Schema.Struct(scope), success: Shapes.Done, error: acting })
    .annotateMerge(said("Take no more charges under a cap")))
  .add(HttpApiEndpoint.post("reopen", "/api/caps/reopen", { payload: Schema.Struct(scope), success: Shapes.Done, error: acting })
    .annotateMerge(said("Take charges under a closed cap again, with the figures that it has")))
  .add(HttpApiEndpoint.get("vaults", "/api/vaults", { success: Shapes.Vaults, error: reading }).annotateMerge(said("Vaults of the spend-cap proxy, with the newest lines of its trail")))
  .add(HttpApiEndpoint.post("killVaults", "/api/vaults/kill", {
    payload: Schema.Struct({ killed: Schema.Boolean, reason: Reason }), success: Shapes.Done, error: acting
  }).annotateMerge(said("Switch every vault key off, or on again")))
  .add(HttpApiEndpoint.post("revokeVault", "/api/vaults/revoke", {
    payload: Schema.Struct({ vault: Name, reason: Reason }), success: Shapes.Done, error: acting
  }).annotateMerge(said("End every key of one vault")))
  .middleware(Door)
  .middleware(Legible)
  .annotateMerge(OpenApi.annotations({ title: "Caps and vault keys" }))
{}

/** Workers. */
export class WorkersGroup extends HttpApiGroup.make("workers")
  .add(HttpApiEndpoint.get("list", "/api/workers", { success: Shapes.Workers, error: reading }).annotateMerge(said("Workers: heartbeats, charges in flight, speed")))
  .middleware(Door)
  .middleware(Legible)
  .annotateMerge(OpenApi.annotations({ title: "Workers" }))
{}

/** Reconciliation. */
export class ReconcileGroup extends HttpApiGroup.make("reconcile")
  .add(HttpApiEndpoint.get("get", "/api/reconcile", { success: Shapes.Reconcile, error: reading })
    .annotateMerge(said("The last comparison of this console, and objects without a charge")))
  .add(HttpApiEndpoint.post("start", "/api/reconcile", {
    payload: Schema.Struct({ billingPeriod: Name, sinceMs: Moment, dryRun: Schema.Boolean, reason: Reason }), success: Shapes.Done, error: acting
  }).annotateMerge(said("Compare a period with the processor's account; repair what evidence allows, unless it is a dry run")))
  .add(HttpApiEndpoint.post("unlist", "/api/reconcile/unlist", {
    payload: Schema.Struct({ id: Name, reason: Reason }), success: Shapes.Done, error: acting
  }).annotateMerge(said("Take an object off the list: a person has dealt with it")))
  .middleware(Door)
  .middleware(Legible)
  .annotateMerge(OpenApi.annotations({ title: "Reconcile" }))
{}

const header = (name: string, description: string) => ({ name, in: "header", required: false, schema: { type: "string" }, description })
/** What acts take in headers: no part of an act's own payload, and so none of its endpoint. */
const actHeaders = [
  header(csrfHeader, "The proof that GET /api/session answers as `csrf`; needed unless a bearer token is sent."),
  header(actorHeader, "Who acts, beside a bearer token; of 80 characters at the most.")
]

/** The same for every act of the description: whatever is posted with a session. */
const withActHeaders = (spec: Record<string, any>): Record<string, any> => ({
  ...spec,
  paths: Object.fromEntries(Object.entries(spec["paths"] as Record<string, Record<string, any>>).map(([path, methods]) => {
    const { post } = methods
    if (post === undefined || path.startsWith("/api/sign-")) return [path, methods]
    return [path, { ...methods, post: { ...post, parameters: [...post["parameters"], ...actHeaders] } }]
  }))
})

/** The API. */
export class ConsoleApi extends HttpApi.make("purser-console")
  .add(SignInGroup, SessionGroup, RunsGroup, ChargesGroup, AttentionGroup, CapsGroup, WorkersGroup, ReconcileGroup)
  .annotateMerge(OpenApi.annotations({
    title: "Purser console",
    version: "0.1.0",
    transform: withActHeaders,
    description: "What an operator's page reads and does. Amounts are integers of Stripe's minor units; sums are text of digits. Every act needs the operator's role and a reason, and is kept with its actor."
  }))
{}
