/** Four processes at once on one server: each charge has one holder, and the cap lets through what fits, to the unit. */
import { SpendCap } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Schema } from "effect"
import { Database } from "../src/Database.ts"
import * as Migrations from "../src/Migrations.ts"
import { PgSpendCap } from "../src/PgSpendCap.ts"
import * as TestDatabase from "../src/TestDatabase.ts"
import { startProgram } from "./support/program.ts"

const Answer = Schema.fromJsonString(Schema.Struct({
  claimed: Schema.Array(Schema.String),
  others: Schema.Array(Schema.String),
  reserved: Schema.Array(Schema.String),
  refusals: Schema.Array(Schema.String)
}))

const charges = 400
const fits = 257

it.live("shares charges and room among processes", () =>
  Effect.gen(function*() {
    const url = yield* TestDatabase.postgresUrl
    const database = Layer.provideMerge(Migrations.layer, Database.layerUrl(url))
    const stores = yield* Layer.build(Layer.provideMerge(PgSpendCap.layer, database))
    const cap = yield* SpendCap.pipe(Effect.provide(stores))
    const scope = chargeFor("any", "2026-11")
    yield* cap.open({ ...scope, expectedMinor: BigInt(fits * 100 + 99), headroomPercent: 100 })

    const programs = yield* Effect.forEach(Array.from({ length: 4 }), () => startProgram("competeForCharges.ts", Redacted.value(url), String(charges)))
    yield* Effect.forEach(programs, (program) => program.line)
    yield* Effect.forEach(programs, (program) => program.send("go"))
    const answers = yield* Effect.forEach(programs, (program) => Effect.flatMap(program.line, Schema.decodeUnknownEffect(Answer)))

    const claimed = answers.flatMap((answer) => answer.claimed)
    assert.strictEqual(claimed.length, charges)
    assert.strictEqual(new Set(claimed).size, charges)
    for (const answer of answers) assert.includeMembers(["InProgress"], [...answer.others])

    assert.strictEqual(new Set(answers.flatMap((answer) => answer.reserved)).size, fits)
    assert.deepStrictEqual([...new Set(answers.flatMap((answer) => answer.refusals))], ["CapExceeded"])
    const [report] = yield* cap.report(scope.billingPeriod)
    assert.deepStrictEqual([report?.reservedMinor, report?.reservations], [BigInt(fits * 100), fits])
  }), 120_000)
