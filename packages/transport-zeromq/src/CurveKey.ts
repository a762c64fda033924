/**
 * CURVE keys (25/ZMTP-CURVE) and the certificate files that hold them, in the form that CZMQ and pyzmq read and write.
 *
 * A secret key is `Redacted` from the moment it is read, and is written to one place only: a file of its owner.
 */
import { TransportError, Unauthorized } from "@purser/core"
import { Effect, Redacted, Result } from "effect"
import { createPublicKey, diffieHellman, createPrivateKey, generateKeyPairSync } from "node:crypto"
import { decodeZ85, encodeZ85 } from "./internal/z85.ts"

/** A public key in Z85, 40 characters. */
export type CurvePublicKey = string & { readonly CurvePublicKey: unique symbol }

/** Both halves. */
export interface CurveKeyPair {
  readonly publicKey: CurvePublicKey
  readonly secretKey: Redacted.Redacted
}

/** What a certificate file says; a public one has no secret. */
export interface CurveCertificate {
  /** From its metadata; null when it has none. */
  readonly name: string | null
  readonly publicKey: CurvePublicKey
  readonly secretKey: Redacted.Redacted | null
}

const unauthorized = (detail: string) => new TransportError({ reason: new Unauthorized({ detail }), chargeKey: null })

// RFC 8410: what stands before the 32 bytes of an X25519 key in DER.
const privatePrefix = Buffer.from("302e020100300506032b656e04220420", "hex")
const publicPrefix = Buffer.from("302a300506032b656e032100", "hex")

const privateKeyOf = (bytes: Uint8Array) => createPrivateKey({ key: Buffer.concat([privatePrefix, bytes]), format: "der", type: "pkcs8" })
const publicKeyOf = (bytes: Uint8Array) => createPublicKey({ key: Buffer.concat([publicPrefix, bytes]), format: "der", type: "spki" })

/** The text as a public key; the field names the place in the error. */
export const parsePublicKey = (text: string, place: string): Result.Result<CurvePublicKey, TransportError> =>
  decodeZ85(text) === undefined
    ? Result.fail(unauthorized(`${place}: expected a public key of 40 characters of Z85`))
    : Result.succeed(text as CurvePublicKey)

/** The public half of a secret key; undefined when the text is no key. */
const publicHalf = (secretKey: Redacted.Redacted): CurvePublicKey | undefined => {
  const bytes = decodeZ85(Redacted.value(secretKey))
  if (bytes === undefined) return undefined
  const der = createPublicKey(privateKeyOf(bytes)).export({ format: "der", type: "spki" })
  return encodeZ85(der.subarray(publicPrefix.length)) as CurvePublicKey
}

/** A new pair from the system's random source. */
export const generateKeyPair: Effect.Effect<CurveKeyPair> = Effect.sync(() => {
  const { privateKey } = generateKeyPairSync("x25519")
  const secretKey = Redacted.make(encodeZ85(privateKey.export({ format: "der", type: "pkcs8" }).subarray(privatePrefix.length))!, { label: "CURVE secret key" })
  return { publicKey: publicHalf(secretKey)!, secretKey }
})

/** 32 bytes that only the holders of the two secret keys can compute. */
export const sharedSecret = (own: CurveKeyPair, other: CurvePublicKey): Buffer =>
  diffieHellman({
    privateKey: privateKeyOf(decodeZ85(Redacted.value(own.secretKey))!),
    publicKey: publicKeyOf(decodeZ85(other)!)
  })

const line = (name: string) => new RegExp(`^\\s*${name}\\s*=\\s*"([^"]*)"\\s*$`, "m")

/** Reads a certificate; `place` is its file's name in errors, which never show a secret. */
export const parseCertificate = (text: string, place: string): Result.Result<CurveCertificate, TransportError> =>
  Result.gen(function*() {
    const publicText = line("public-key").exec(text)?.[1]
    if (publicText === undefined) return yield* Result.fail(unauthorized(`${place}: no line public-key = "…"`))
    const publicKey = yield* parsePublicKey(publicText, `${place}: public-key`)
    const secretText = line("secret-key").exec(text)?.[1]
    const secretKey = secretText === undefined ? null : Redacted.make(secretText, { label: "CURVE secret key" })
    if (secretKey !== null && publicHalf(secretKey) !== publicKey) {
      return yield* Result.fail(unauthorized(`${place}: secret-key is no key, or does not belong to public-key`))
    }
    return { name: line("name").exec(text)?.[1] ?? null, publicKey, secretKey }
  })

const certificate = (title: string, name: string, keys: ReadonlyArray<string>) =>
  [`#   ${title}`, "", "metadata", `    name = "${name}"`, "curve", ...keys.map((key) => `    ${key}`), ""].join("\n")

/** The file that others get. */
export const publicCertificate = (name: string, { publicKey }: CurveKeyPair): string =>
  certificate("ZeroMQ CURVE Public Certificate: give it to whom this key talks to", name, [`public-key = "${publicKey}"`])

/** The file that its owner keeps. The one place where a secret is shown. */
export const secretCertificate = (name: string, { publicKey, secretKey }: CurveKeyPair): Redacted.Redacted =>
  Redacted.make(
    certificate("ZeroMQ CURVE **Secret** Certificate: keep it to yourself", name, [
      `public-key = "${publicKey}"`,
      `secret-key = "${Redacted.value(secretKey)}"`
    ]),
    { label: "CURVE certificate" }
  )
