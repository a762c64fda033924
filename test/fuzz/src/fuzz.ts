/**
 * A property of all bytes, put to the test by chance and by what has been found before.
 *
 * `PURSER_FUZZ_RUNS` is the number of inputs of each property, `PURSER_FUZZ_SEED` the seed of a run that is printed. What falsifies
 * a property is printed as a command that keeps it in `corpus`, from where it is tried again for ever.
 */
import { assert, describe, type Vitest } from "@effect/vitest"
import { Arbitrary, Cause, Effect } from "effect"
import { randomInt } from "node:crypto"
import { existsSync, readdirSync, readFileSync } from "node:fs"

const corpus = new URL("../corpus/", import.meta.url)
const seed = process.env["PURSER_FUZZ_SEED"] ?? String(randomInt(2 ** 31))
const wanted = Number(process.env["PURSER_FUZZ_RUNS"])
const timeout = 3_600_000

/** A tester of this file, by hand or with a layer. */
interface It<R> {
  readonly effect: Pick<Vitest.Tester<R>, "prop"> & Vitest.Test<R>
}

/** Runs the property over inputs of chance, and over those that are kept under this name. */
export const fuzz = <E, R>(
  it: It<R>,
  kind: string,
  { inputs, property, runs }: {
    readonly inputs: Readonly<Record<string, Arbitrary.Arbitrary<Buffer>>>
    /** Tells whether anything of the bytes was taken for what it should be. */
    readonly property: (bytes: Buffer) => Effect.Effect<boolean, E, R>
    /** Of each kind of input, unless more are asked for. */
    readonly runs: number
  }
): void => {
  const judged = (bytes: Buffer) =>
    Effect.suspend(() => property(bytes)).pipe(
      Effect.catchCause((cause) =>
        Effect.die(new Error(`${Cause.pretty(cause)}\nkeep it:  echo ${bytes.toString("base64")} | base64 -d > test/fuzz/corpus/${kind}/NAME`)))
    )
  const count = Number.isSafeInteger(wanted) && wanted > 0 ? wanted : runs
  describe(kind, () => {
    for (const [name, arbitrary] of Object.entries(inputs)) {
      it.effect.prop(`${name}, ${count} times, PURSER_FUZZ_SEED=${seed}`, [arbitrary], ([bytes]) => Effect.asVoid(judged(bytes)), { timeout, arbitrary: { runs: count, seed } })
      if (name === "noise") continue
      // A property over inputs that are all refused would say nothing.
      it.effect(`${name}: some are taken and some refused`, Effect.fnUntraced(function*() {
        const sample = yield* Arbitrary.sampleEffect(arbitrary, { count: 40, seed })
        assert.sameMembers([...new Set(yield* Effect.forEach(sample, judged))], [true, false])
      }))
    }
    const folder = new URL(`${kind}/`, corpus)
    for (const file of existsSync(folder) ? readdirSync(folder).sort() : []) {
      it.effect(`found before: ${file}`, () => judged(readFileSync(new URL(file, folder))))
    }
  })
}
