/** Whether an address of the transport can be served or reached from here: something answers there, or a worker could bind it. */
import { Effect } from "effect"
import { createServer, connect, type NetConnectOpts } from "node:net"

/** What was found at an address. */
export interface SocketFinding {
  readonly level: "ok" | "warn" | "fail"
  readonly text: string
}

const patienceMs = 2000

const reached = (target: NetConnectOpts) =>
  Effect.callback<boolean>((resume) => {
    const socket = connect(target)
    const end = (answer: boolean) => {
      socket.destroy()
      resume(Effect.succeed(answer))
    }
    socket.once("connect", () => end(true))
    socket.once("error", () => end(false))
    return Effect.sync(() => void socket.destroy())
  }).pipe(Effect.timeoutOrElse({ duration: patienceMs, orElse: () => Effect.succeed(false) }))

/** `undefined` when it can be bound, else the system's reason. */
const bindProblem = (target: { readonly path: string } | { readonly host: string; readonly port: number }) =>
  Effect.callback<string | undefined>((resume) => {
    const server = createServer()
    server.once("error", (error: NodeJS.ErrnoException) => resume(Effect.succeed(error.code ?? error.message)))
    server.listen(target, () => server.close(() => resume(Effect.undefined)))
  })

const targetOf = (endpoint: string) => {
  const [, kind, rest] = /^(tcp|ipc):\/\/(.+)$/.exec(endpoint) ?? []
  if (kind === "ipc") return { bind: { path: rest! }, reach: { path: rest! } }
  const [, host, port] = kind === "tcp" ? /^(.+):(\d{1,5})$/.exec(rest!) ?? [] : []
  if (host === undefined || Number(port) > 65_535) return undefined
  const plain = host.replace(/^\[(.*)\]$/, "$1")
  const any = plain === "*" || plain === "0.0.0.0" || plain === "::"
  return {
    bind: { host: any ? "0.0.0.0" : plain, port: Number(port) },
    reach: { host: any ? "127.0.0.1" : plain, port: Number(port) }
  }
}

/** Looks at one address as `PURSER_ENDPOINT` has it; `>` in front is for workers that connect. */
export const examineEndpoint = Effect.fnUntraced(function*(given: string): Effect.fn.Return<SocketFinding> {
  const connects = given.startsWith(">")
  const endpoint = connects ? given.slice(1) : given
  if (endpoint.startsWith("inproc://")) return { level: "ok", text: "inside one process" }
  const target = targetOf(endpoint)
  if (target === undefined) return { level: "fail", text: "no address of the kind tcp://host:port, ipc://path or inproc://name" }
  if (yield* reached(target.reach)) return { level: "ok", text: "something serves there" }
  if (connects) return { level: "fail", text: "nothing answers there" }
  const problem = yield* bindProblem(target.bind)
  return problem === undefined
    ? { level: "ok", text: "free: a worker can serve there; none does now" }
    : { level: "fail", text: `nothing answers there, and it cannot be served from here (${problem})` }
})
