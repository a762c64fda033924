/**
 * A seal on a message: who sent it, proved with the sender's CURVE key.
 *
 * libzmq authenticates connections and does not tell a program from which of them a message came. So a sender adds a frame
 * with its public key and a MAC of the frame before it, made with a secret that only its key and the receiver's can
 * compute. Between the two a forwarder or a broker passes it on as it is.
 */
import { Redacted } from "effect"
import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto"
import { type CurveKeyPair, type CurvePublicKey, sharedSecret } from "../CurveKey.ts"
import { type CurveSettings, peerNames } from "../CurveSettings.ts"
import type { Frames, OutgoingFrames } from "../ZmqSocket.ts"
import { decodeZ85 } from "./z85.ts"

/** What is known of a message's sender. */
export interface Sender {
  /** The name of its key; null when the message has no seal and more than one peer may have sent it. */
  readonly principal: string | null
  /** The key that sealed it. */
  readonly publicKey: CurvePublicKey | null
  /** Why it must not be served. */
  readonly refused: string | null
}

const magic = "PSEAL1 "
const macBytes = 32
const sealPattern = /^PSEAL1 (\S{40}) ([A-Za-z0-9_-]{43})$/
const keyOf = (own: CurveKeyPair, other: CurvePublicKey) => Redacted.make(Buffer.from(hkdfSync("sha256", sharedSecret(own, other), "purser", "seal/1", macBytes)), { label: "seal" })
const mac = (key: Redacted.Redacted<Buffer>, body: string | Uint8Array) => createHmac("sha256", Redacted.value(key)).update(body).digest()

/** Adds a seal of the last frame. */
export const makeSeal = ({ own, serverKey }: CurveSettings): (frames: OutgoingFrames) => OutgoingFrames => {
  const key = keyOf(own, serverKey ?? own.publicKey)
  const head = `${magic}${own.publicKey} `
  return (frames) => [...frames, head + mac(key, frames[frames.length - 1]!).toString("base64url")]
}

/** Whether a frame is a seal, right or wrong. */
export const isSeal = (frame: Uint8Array): boolean =>
  frame.length === magic.length + 40 + 1 + 43 && Buffer.from(frame.buffer, frame.byteOffset, magic.length).toString("latin1") === magic

/** Whether a message was sealed by the fleet of these settings: with its own key, or its servers'. */
export const isOfFleet = ({ own, serverKey }: CurveSettings, { publicKey, refused }: Sender): boolean =>
  refused === null && publicKey !== null && (publicKey === own.publicKey || publicKey === serverKey)

// Beside the frames and not in them, so that a message without a seal costs nothing.
const senders = new WeakMap<Frames, Sender>()
const unknown: Sender = { principal: null, publicKey: null, refused: null }

/** What is known of a received message's sender. */
export const senderOf = (frames: Frames): Sender => senders.get(frames) ?? unknown

/** Peers whose secrets are kept; more make the oldest be computed again. */
const keptMax = 1000

/** Takes seals off and notes the sender. A receiver without keys of its own learns nothing from a seal. */
export const makeUnseal = (settings: CurveSettings | undefined): (frames: Frames) => Frames => {
  const keys = new Map<string, Redacted.Redacted<Buffer>>()
  const bad = (detail: string): Sender => ({ principal: null, publicKey: null, refused: detail })

  const unsealed = ({ clients }: CurveSettings): Sender => {
    const names = [...new Set(clients?.names().values())]
    return names.length === 1 ? { ...unknown, principal: names[0]! } : unknown
  }
  const check = (curve: CurveSettings, body: Uint8Array, seal: Uint8Array): Sender => {
    const [, publicText, macText] = sealPattern.exec(Buffer.from(seal).toString("latin1")) ?? []
    if (publicText === undefined || macText === undefined || decodeZ85(publicText) === undefined) return bad("the seal cannot be read")
    const principal = peerNames(curve).get(publicText)
    if (principal === undefined) return bad("the key that sealed the message is not on the list")
    const publicKey = publicText as CurvePublicKey
    let key = keys.get(publicKey)
    if (key === undefined) {
      if (keys.size >= keptMax) keys.delete(keys.keys().next().value!)
      keys.set(publicKey, key = keyOf(curve.own, publicKey))
    }
    return timingSafeEqual(mac(key, body), Buffer.from(macText, "base64url"))
      ? { principal, publicKey, refused: null }
      : bad(`the seal of ${principal} does not fit the message`)
  }

  return (frames) => {
    const last = frames[frames.length - 1]
    const seal = frames.length > 1 && last !== undefined && isSeal(last) ? last : undefined
    const bare = seal === undefined ? frames : frames.slice(0, -1)
    if (settings !== undefined) senders.set(bare, seal === undefined ? unsealed(settings) : check(settings, bare[bare.length - 1]!, seal))
    return bare
  }
}
