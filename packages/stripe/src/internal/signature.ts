/**
 * Stripe's signature of a webhook call: `t=<seconds>,v1=<hex of HMAC-SHA256(secret, t + "." + body)>`, several `v1` allowed.
 *
 * It is computed over the bytes as they came, and compared in constant time. The SDK's own check decodes the body to text
 * first and lets any time in the future pass, so that a call recorded with a wrong clock could be replayed for ever.
 */
import { SignatureMissing, SignatureStale, SignatureWrong } from "@purser/core"
import { Redacted } from "effect"
import { createHmac, timingSafeEqual } from "node:crypto"

/** A header that is longer holds nothing that Stripe sends. */
const headerMax = 4096
/** Stripe signs with two secrets while one is rolled. */
const signaturesMax = 16

interface Signed {
  readonly timestamp: string
  readonly signatures: ReadonlyArray<string>
}

const parse = (header: string): Signed | string => {
  if (header.length > headerMax) return "the header is too long"
  let timestamp: string | undefined
  const signatures: Array<string> = []
  for (const part of header.split(",")) {
    const at = part.indexOf("=")
    if (at < 0 && part !== "") return "a name without a value"
    const name = part.slice(0, at).trim()
    const value = part.slice(at + 1).trim()
    if (name === "t") {
      // Two times would let a header say one and prove the other.
      if (timestamp !== undefined) return "two times"
      timestamp = value
    } else if (name === "v1") signatures.push(value)
  }
  if (timestamp === undefined || !/^\d{1,12}$/.test(timestamp)) return "no time"
  if (signatures.length === 0) return "no v1 signature"
  return signatures.length > signaturesMax ? "too many signatures" : { timestamp, signatures }
}

/** What is wrong with the signature of these bytes, or `undefined`. */
export const signatureProblem = (input: {
  readonly body: Uint8Array
  readonly header: string | undefined
  readonly secrets: ReadonlyArray<Redacted.Redacted>
  readonly nowMs: number
  readonly toleranceMs: number
}): SignatureMissing | SignatureWrong | SignatureStale | undefined => {
  if (input.header === undefined) return new SignatureMissing({ detail: "no Stripe-Signature header" })
  const signed = parse(input.header)
  if (typeof signed === "string") return new SignatureMissing({ detail: signed })
  const given = signed.signatures.filter((text) => /^[0-9a-f]{64}$/.test(text)).map((text) => Buffer.from(text, "hex"))
  let genuine = false
  for (const secret of input.secrets) {
    const ours = createHmac("sha256", Redacted.value(secret)).update(`${signed.timestamp}.`).update(input.body).digest()
    for (const theirs of given) if (timingSafeEqual(ours, theirs)) genuine = true
  }
  if (!genuine) return new SignatureWrong()
  // Only a genuine time is worth a word.
  const differenceMs = input.nowMs - Number(signed.timestamp) * 1000
  return Math.abs(differenceMs) > input.toleranceMs ? new SignatureStale({ differenceMs, toleranceMs: input.toleranceMs }) : undefined
}
