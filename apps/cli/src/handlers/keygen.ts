/** `purser keygen`: writes a new key pair as two certificate files, and never over a file that is there. */
import { generateKeyPair, publicCertificate, secretCertificate } from "@purser/transport-zeromq"
import { Effect, FileSystem, Path, Redacted } from "effect"
import { refused } from "../CommandFailed.ts"
import { out } from "../ui/Output.ts"

/** Makes the pair and says where it is. */
export const keygen = Effect.fnUntraced(function*({ folder, name }: { readonly folder: string; readonly name: string }) {
  // The name becomes a file's name and a line of the certificate.
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name)) {
    return yield* refused(`${JSON.stringify(name)} is no name: letters, digits, '.', '_' and '-', at most 64`)
  }
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const pair = yield* generateKeyPair
  const secret = path.join(folder, `${name}.key_secret`)
  const open = path.join(folder, `${name}.key`)
  // `wx`: a key that is in use must not be lost by a second call.
  const write = (file: string, text: string, mode: number) =>
    files.writeFileString(file, text, { flag: "wx", mode }).pipe(
      Effect.catch((error) => refused(error.reason._tag === "AlreadyExists" ? `${file} is there already; nothing was changed` : `${file} cannot be written: ${error.message}`))
    )
  if (yield* files.exists(open)) return yield* refused(`${open} is there already; nothing was changed`)
  yield* files.makeDirectory(folder, { recursive: true })
  yield* write(secret, Redacted.value(secretCertificate(name, pair)), 0o600)
  yield* write(open, publicCertificate(name, pair), 0o644)
  yield* out(`public  ${open}\nsecret  ${secret}   (keep it; PURSER_CURVE_KEY_FILE)\nkey     ${pair.publicKey}`)
})
