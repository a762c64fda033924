/** Which headers go through. They travel as Node's raw list, names and values in turn, so that none is joined or lost. */

const hopByHop = new Set([
  "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"
])
/** Ours to set, or spoken between two neighbours only. A method that a header overrides is not the method that was judged. */
const own = new Set(["host", "authorization", "expect", "x-http-method-override"])

const pairs = function*(raw: ReadonlyArray<string>): Generator<readonly [name: string, value: string]> {
  for (let at = 0; at + 1 < raw.length; at += 2) yield [raw[at]!, raw[at + 1]!]
}

/** Names that a `Connection` header declares to be for this connection only. */
const nominated = (raw: ReadonlyArray<string>): ReadonlySet<string> => {
  const names = new Set<string>()
  for (const [name, value] of pairs(raw)) {
    if (name.toLowerCase() === "connection") value.split(",").forEach((one) => names.add(one.trim().toLowerCase()))
  }
  return names
}

const without = (raw: ReadonlyArray<string>, drop: (name: string) => boolean): Array<string> => {
  const local = nominated(raw)
  const kept: Array<string> = []
  for (const [name, value] of pairs(raw)) {
    const lower = name.toLowerCase()
    if (!hopByHop.has(lower) && !local.has(lower) && !drop(lower)) kept.push(name, value)
  }
  return kept
}

/** A request's headers for the upstream, without credentials. `replaced` (lower case) are left out too. */
export const forwarded = (raw: ReadonlyArray<string>, replaced: ReadonlyArray<string> = []): Array<string> =>
  without(raw, (name) => own.has(name) || replaced.includes(name))

/** An answer's headers for the client. */
export const answered = (raw: ReadonlyArray<string>, replaced: ReadonlyArray<string> = []): Array<string> =>
  without(raw, (name) => replaced.includes(name))

/** The first value of a header (lower-case name). */
export const headerOf = (raw: ReadonlyArray<string>, wanted: string): string | null => {
  for (const [name, value] of pairs(raw)) if (name.toLowerCase() === wanted) return value
  return null
}

/** How often a header is given. */
export const timesGiven = (raw: ReadonlyArray<string>, wanted: string): number => {
  let times = 0
  for (const [name] of pairs(raw)) if (name.toLowerCase() === wanted) times += 1
  return times
}
