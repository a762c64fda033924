/** What the cluster's library says of its troubles is a line each, and the same line again is none. */
import { assert, it } from "@effect/vitest"
import { clusterLoggers } from "@purser/engine"
import { Cause, Data, Effect, Logger } from "effect"
import { TestClock } from "effect/testing"

class Away extends Data.TaggedError("Away")<{ readonly message: string; readonly cause?: unknown }> {}

it.effect("troubles are told in one line, once in ten seconds; what may be a bug keeps its trace", () =>
  Effect.gen(function*() {
    const lines: Array<string> = []
    const logger = Logger.make(({ cause, message }) => void lines.push(`${String(message)}${cause.reasons.length === 0 ? "" : ` with ${Cause.pretty(cause)}`}`))
    const say = (text: string, cause: Cause.Cause<unknown>) => Effect.logError(text, cause)
    const away = Cause.fail(new Away({ message: "cannot refresh", cause: new Error("connection\n  is closed") }))
    yield* Effect.gen(function*() {
      for (let shard = 0; shard < 60; shard++) yield* say("Could not release shards, retrying", away)
      yield* say("Failed to start cron job, retrying", Cause.die(new Error("Entity type 'ClusterCron/[\"m\"]' not registered")))
      yield* Effect.logError("no cause")
      yield* TestClock.adjust("11 seconds")
      yield* say("Could not release shards, retrying", away)
      yield* say("Defect in entity, restarting", Cause.die(new Error("Bug: planted")))
    }).pipe(Effect.provideService(Logger.CurrentLoggers, clusterLoggers(new Set([logger]))))
    const released = "Could not release shards, retrying: connection is closed"
    assert.deepStrictEqual(lines.slice(0, 4), [released, "Failed to start cron job, retrying: Entity type 'ClusterCron/[\"m\"]' not registered", "no cause", released])
    assert.match(lines[4]!, /^Defect in entity, restarting with Error: Bug: planted\n +at /)
    assert.strictEqual(lines.length, 5)
  }))
