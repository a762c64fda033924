/** `purser dead-letters`: what came in and could not be served. Bytes are shown escaped and without secrets: they are a stranger's. */
import { DeadLetters, type KeptLetter, lettersMax, SecretText } from "@purser/core"
import { Stores } from "@purser/purser"
import { Effect, Layer } from "effect"
import { refused } from "../CommandFailed.ts"
import { out } from "../ui/Output.ts"
import { table } from "../ui/table.ts"

const shortDigest = ({ digest }: KeptLetter) => digest.slice(0, 12)
const time = (ms: number) => new Date(ms).toISOString()
const printable = (text: string) => JSON.stringify(text).slice(1, -1).replaceAll("\\\"", "\"")

const services = Layer.mergeAll(Stores.layerConfig, SecretText.layer())

/** What strangers wrote, without secrets: the store keeps it as it came. */
const hiding = Effect.map(SecretText, ({ hide }) => ({
  hide,
  // One character for each byte, so that every other byte stays as it is.
  bytes: (body: Uint8Array) => Buffer.from(hide(Buffer.from(body).toString("latin1")), "latin1")
}))

/** Prints the newest ones. */
export const list = ({ json, limit }: { readonly json: boolean; readonly limit: number }) =>
  Effect.gen(function*() {
    if (limit < 1) return yield* refused("--limit: expected at least 1")
    const letters = yield* (yield* DeadLetters).list(limit)
    const { bytes, hide } = yield* hiding
    if (json) return yield* out(JSON.stringify(letters.map((letter) => ({ ...letter, detail: hide(letter.detail), body: bytes(letter.body).toString("base64") }))))
    yield* out(letters.length === 0 ? "no dead letters" : table(
      ["digest", "last", "times", "transport", "from", "bytes", "reason", "detail"],
      letters.map((letter) => [
        shortDigest(letter), time(letter.lastAtMs), String(letter.times), letter.transport, letter.principal ?? "-",
        String(letter.sizeBytes), letter.reason, printable(hide(letter.detail)).slice(0, 60)
      ]),
      [2, 5]
    ))
  }).pipe(Effect.provide(services))

const matching = Effect.fnUntraced(function*(letters: ReadonlyArray<KeptLetter>, start: string) {
  const found = letters.filter(({ digest }) => digest.startsWith(start.toLowerCase()))
  if (found.length === 1) return found[0]!
  return yield* refused(found.length === 0 ? `no dead letter begins with ${start}` : `${start} fits ${found.length} dead letters; give more of the digest`)
})

/** Prints one whole. */
export const show = (digest: string) =>
  Effect.gen(function*() {
    const letter = yield* matching(yield* (yield* DeadLetters).list(lettersMax), digest)
    const { bytes, hide } = yield* hiding
    yield* out([
      `digest     ${letter.digest}`,
      `transport  ${letter.transport}`,
      `from       ${letter.principal ?? "unknown"}`,
      `first      ${time(letter.firstAtMs)}`,
      `last       ${time(letter.lastAtMs)}, ${letter.times} in all`,
      `reason     ${letter.reason}: ${printable(hide(letter.detail))}`,
      `bytes      ${letter.sizeBytes}${letter.body.length < letter.sizeBytes ? `, of which ${letter.body.length} are kept` : ""}`,
      printable(bytes(letter.body).toString("utf8"))
    ].join("\n"))
  }).pipe(Effect.provide(services))

/** Throws some away. */
export const discard = (digests: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const store = yield* DeadLetters
    const letters = yield* store.list(lettersMax)
    const found = yield* Effect.forEach(digests, (digest) => matching(letters, digest))
    yield* out(`${yield* store.discard(found.map(({ digest }) => digest))} thrown away`)
  }).pipe(Effect.provide(Stores.layerConfig))
