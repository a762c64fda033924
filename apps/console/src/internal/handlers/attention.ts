/** What waits for a person, and the acts that end the waiting. */
import { Attention, ChargeKey, DeadLetters, plainText, SecretText } from "@purser/core"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ConsoleApi } from "../../api/ConsoleApi.ts"
import { ActRefused } from "../../api/ConsoleError.ts"
import { countsMax } from "../../LiveFeed.ts"
import { away, changedOr, makePerform } from "../perform.ts"

/** Lines of each list; who has more works on these first. */
const linesMax = 200
/** Nobody needs to be troubled by what a sweep takes up within seconds. */
const graceMs = 60_000
const textMax = 4000

/** A stranger's bytes as text: what is no printable character is escaped. Secrets are hidden before it is cut: half of one is not known. */
const printable = (hide: SecretText["Service"]["hide"]) => (body: Uint8Array) =>
  plainText(JSON.stringify(hide(Buffer.from(body).toString("utf8")).slice(0, textMax)).slice(1, -1).replaceAll("\\\"", "\""))

/** The handlers of the group. */
export const layer = HttpApiBuilder.group(ConsoleApi, "attention", Effect.fnUntraced(function*(handlers) {
  const attention = yield* Attention
  const letters = yield* DeadLetters
  const perform = yield* makePerform
  const textOf = printable((yield* SecretText).hide)
  const orNothing = (moved: Effect.Effect<boolean, { readonly message: string }>, nothing: string, text: string) =>
    Effect.flatMap(Effect.mapError(moved, away), (did) => did ? Effect.succeed(text) : Effect.fail(new ActRefused({ message: nothing })))

  const keepCharge = ({ line, runId }: { readonly runId: string; readonly line: number }, reason: string) =>
    perform({ act: "drop conflict", subject: runId === "" ? `request ${line}` : `${runId}, line ${line}`, reason }, (actor) =>
      orNothing(attention.keepCharge({ runId, line, actor, reason }), "no such conflict is open", "the other terms were dropped; the charge stays as the ledger has it"))

  return handlers
    .handle("list", () =>
      Effect.all({
        counts: attention.counts(countsMax),
        unresolved: attention.unresolved(graceMs, linesMax),
        quarantined: attention.quarantined("", linesMax),
        conflicts: attention.conflicts(null, linesMax),
        letters: Effect.map(letters.list(linesMax), (kept) => kept.map(({ body, ...letter }) => ({ ...letter, text: textOf(body) })))
      }).pipe(Effect.mapError(away)))
    .handle("keepCharge", ({ payload: { line, reason, runId } }) => keepCharge({ runId, line }, reason))
    .handle("keepCharges", ({ payload: { conflicts, reason } }) =>
      Effect.map(
        Effect.forEach(conflicts, ({ line, runId }) =>
          Effect.map(Effect.result(keepCharge({ runId, line }, reason)), (result) => result._tag === "Success"
            ? { runId, line, done: true, text: result.success.text }
            : { runId, line, done: false, text: result.failure.message })),
        (results) => ({ results })
      ))
    .handle("endQuarantine", ({ payload: { chargeKey, reason } }) =>
      perform({ act: "end quarantine", subject: chargeKey, reason }, (actor) =>
        orNothing(
          attention.endQuarantine(ChargeKey.make(chargeKey), { actor, reason }),
          "the charge is not quarantined",
          "the quarantine is over; the next sweep reads the charge's object and goes on by what it says"
        )))
    .handle("discardLetters", ({ payload: { digests, reason } }) =>
      perform({ act: "discard dead letters", subject: digests.length === 1 ? digests[0]! : `${digests.length} letters`, reason, detail: digests.map((digest) => digest.slice(0, 12)).join(" ") }, () =>
        Effect.mapBoth(letters.discard(digests), { onFailure: away, onSuccess: (count) => changedOr(count > 0, `${count} thrown away`, "no such letter is kept") })))
}))
