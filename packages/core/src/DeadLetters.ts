/**
 * Messages that could not be read or were not let in, kept with their bytes and the reason, for a person to look at.
 *
 * Nothing waits for a letter to be kept, and nothing that keeps letters may fill up: equal messages are one letter that
 * counts, long ones are cut, and past a bound new ones are only counted. A message that was answered with an error may be
 * here too: its sender need not have understood the answer.
 */
import { Clock, Context, Effect, Layer, Ref } from "effect"
import { type DeadLetter, DeadLetterSink } from "./DeadLetterSink.ts"
import type { LedgerError } from "./LedgerError.ts"

/** A letter that is kept. */
export interface KeptLetter extends DeadLetter {
  /** SHA-256 of the transport and the whole body, in hex. */
  readonly digest: string
  /** Length of the whole body; `body` is cut at {@link letterMaxBytes}. */
  readonly sizeBytes: number
  readonly times: number
  readonly firstAtMs: number
  readonly lastAtMs: number
}

/** What is kept of a longer body. */
export const letterMaxBytes = 65_536

/** Letters that are kept at the most. */
export const lettersMax = 10_000

/** The store of dead letters. */
export class DeadLetters extends Context.Service<DeadLetters, {
  /** Keeps a letter soon. It never fails and never waits for a store. */
  readonly bury: (letter: DeadLetter) => Effect.Effect<void>
  /** The letters that came last, newest first. */
  readonly list: (limit: number) => Effect.Effect<ReadonlyArray<KeptLetter>, LedgerError>
  /** Throws letters away; answers how many there were. */
  readonly discard: (digests: ReadonlyArray<string>) => Effect.Effect<number, LedgerError>
}>()("@purser/core/DeadLetters") {
  /** Makes servers that are built on top put their letters into this store. */
  static readonly layerSink: Layer.Layer<never, never, DeadLetters> = Layer.effect(
    DeadLetterSink,
    Effect.map(DeadLetters, ({ bury }) => bury)
  )

  /** Letters in memory, for tests and trials; equal ones are told by their bytes. */
  static readonly layerMemory: Layer.Layer<DeadLetters> = Layer.effect(
    DeadLetters,
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const letters = yield* Ref.make<ReadonlyMap<string, KeptLetter>>(new Map())
      return DeadLetters.of({
        bury: (letter) =>
          Ref.update(letters, (kept) => {
            const digest = `${letter.transport} ${Array.from(letter.body, (byte) => byte.toString(16).padStart(2, "0")).join("")}`
            const atMs = clock.currentTimeMillisUnsafe()
            const known = kept.get(digest)
            if (known === undefined && kept.size >= lettersMax) return kept
            const next = known === undefined
              ? { ...letter, body: letter.body.slice(0, letterMaxBytes), digest, sizeBytes: letter.body.length, times: 1, firstAtMs: atMs, lastAtMs: atMs }
              : { ...known, times: known.times + 1, lastAtMs: atMs }
            return new Map(kept).set(digest, next)
          }),
        list: (limit) => Effect.map(Ref.get(letters), (kept) => [...kept.values()].sort((a, b) => b.lastAtMs - a.lastAtMs).slice(0, limit)),
        discard: (digests) =>
          Ref.modify(letters, (kept) => {
            const left = new Map([...kept].filter(([digest]) => !digests.includes(digest)))
            return [kept.size - left.size, left]
          })
      })
    })
  )
}
