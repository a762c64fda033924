/**
 * The idempotency layer of an account.
 *
 * Defines the life of a key: in flight, answered, pruned once it is a day old on the virtual clock. Refuses to keep
 * an answer that came before endpoint execution. It can be switched off, to prove that a client does not lean on it.
 */
import { hash } from "node:crypto"
import type { Account } from "./Account.ts"
import { type Answer, fail, invalid, keyInUse } from "./answer.ts"
import { canonical } from "./params.ts"
import type { Call } from "./route.ts"

interface Entry {
  readonly path: string
  readonly fingerprint: string
  readonly startedMs: number
  readonly requestId: string
  answer: Answer | undefined
}

/** What a key says: run the call, or this is the answer already. */
export type Verdict =
  | { readonly run: true; readonly finish: (answer: Answer) => void }
  | { readonly run: false; readonly answer: Answer; readonly original: string | undefined }

const windowMs = 24 * 60 * 60 * 1000
const keyLimit = 255

const free: Verdict = { run: true, finish: () => {} }

const reuse = (message: string): Verdict => ({
  run: false,
  original: undefined,
  answer: fail({ status: 400, saved: false, type: "idempotency_error", message })
})

/** The keys of one account. */
export class IdempotencyKeys {
  private readonly settings: { readonly enabled: boolean }
  private readonly entries = new Map<string, Entry>()

  /** Keys that hold as long as the switch is on. */
  constructor(settings: { readonly enabled: boolean }) {
    this.settings = settings
  }

  /** Takes the key for this call, or says what its first call was answered. */
  begin(account: Account, call: Call): Verdict {
    if (call.key === undefined || !this.settings.enabled) return free
    const key = call.key
    if (key.length > keyLimit) {
      return {
        run: false,
        original: undefined,
        answer: invalid(`Idempotency keys can have up to ${keyLimit} characters; this one has ${key.length}.`)
      }
    }
    const nowMs = account.nowMs
    const fingerprint = hash("sha1", canonical(call.params), "base64")
    const known = this.entries.get(key)
    if (known !== undefined && (known.answer === undefined || nowMs - known.startedMs < windowMs)) {
      if (known.path !== call.path) {
        return reuse(
          `Keys for idempotent requests can only be used for the same endpoint they were first used for ('${call.path}' vs '${known.path}'). Try using a key other than '${key}' if you meant to execute a different request.`
        )
      }
      if (known.fingerprint !== fingerprint) {
        return reuse(
          `Keys for idempotent requests can only be used with the same parameters they were first used with. Try using a key other than '${key}' if you meant to execute a different request.`
        )
      }
      return known.answer === undefined
        ? { run: false, original: undefined, answer: keyInUse(key, account.settings.keyInUseType) }
        : { run: false, original: known.requestId, answer: known.answer }
    }
    const entry: Entry = { path: call.path, fingerprint, startedMs: nowMs, requestId: call.requestId, answer: undefined }
    this.entries.set(key, entry)
    return {
      run: true,
      finish: (answer) => {
        if (answer.saved) entry.answer = answer
        else if (this.entries.get(key) === entry) this.entries.delete(key)
      }
    }
  }
}
