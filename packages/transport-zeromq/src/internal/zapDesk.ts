/**
 * The handler of 27/ZAP: it answers libzmq's question whether the holder of a public key may connect to a socket.
 *
 * libzmq looks for one handler in a process, at one fixed address, so that there is one desk for all sockets: it is opened
 * for the first domain and closed after the last. A socket whose domain is not registered is refused, as is all that is
 * not CURVE. Sockets must enforce their domain: without that libzmq lets everybody in when there is no handler.
 */
import { Closed, TransportError } from "@purser/core"
import { Effect, Exit, Metric, Schedule, Scope, Semaphore } from "effect"
import { randomUUID } from "node:crypto"
import type { Message, Router } from "zeromq"
import { ZmqMetrics } from "../ZmqMetrics.ts"
import { nativeError, type Zeromq } from "./native.ts"
import { encodeZ85 } from "./z85.ts"

/** Gives the name of a key that is let in. */
export type Admit = (publicKey: string) => Effect.Effect<string | undefined>

const address = "inproc://zeromq.zap.01"
const domains = new Map<string, Admit>()
const lock = Semaphore.makeUnsafe(1)
let open: { readonly scope: Scope.Closeable } | undefined

const decide = Effect.fnUntraced(function*(domain: string, mechanism: string, credentials: ReadonlyArray<Message>) {
  const admit = domains.get(domain)
  if (admit === undefined) return { status: "400", text: "unknown domain", user: "" }
  const publicKey = mechanism === "CURVE" && credentials.length === 1 ? encodeZ85(credentials[0]!) : undefined
  const user = publicKey === undefined ? undefined : yield* admit(publicKey)
  if (user !== undefined) return { status: "200", text: "OK", user }
  yield* Metric.update(ZmqMetrics.refusedPeers, 1)
  yield* Effect.annotateLogs(Effect.logWarning("a peer was refused: its key is not on the list"), { publicKey: publicKey ?? mechanism })
  return { status: "400", text: "not on the list", user: "" }
})

const answer = Effect.fnUntraced(function*(desk: Router, frames: ReadonlyArray<Message>) {
  // [route, delimiter, version, request id, domain, address, identity, mechanism, ...credentials]
  const [route, delimiter, version, requestId, domain, , , mechanism, ...credentials] = frames
  if (route === undefined || delimiter === undefined || requestId === undefined || domain === undefined || mechanism === undefined) return
  const { status, text, user } = version?.toString() === "1.0"
    ? yield* decide(domain.toString(), mechanism.toString(), credentials)
    : { status: "500", text: "version", user: "" }
  yield* Effect.tryPromise({ try: () => desk.send([route, delimiter, "1.0", requestId, status, text, user, ""]), catch: nativeError })
})

const openDesk = Effect.fnUntraced(function*(zmq: Zeromq) {
  const scope = yield* Scope.make()
  const desk = yield* Effect.acquireRelease(
    Effect.sync(() => new zmq.Router({ linger: 0, sendTimeout: 1000 })),
    (socket) => Effect.sync(() => socket.close())
  ).pipe(Scope.provide(scope))
  yield* Effect.tryPromise({ try: () => desk.bind(address), catch: nativeError }).pipe(
    // The desk before this one may be closed and not yet gone.
    Effect.retry({ while: ({ code }) => code === "EADDRINUSE", schedule: Schedule.spaced(20).pipe(Schedule.upTo({ duration: "2 seconds" })) }),
    Effect.mapError(({ code }) =>
      new TransportError({ reason: new Closed({ endpoint: address, detail: `this process has another handler of ZAP: ${code}` }), chargeKey: null })),
    Effect.onError(() => Scope.close(scope, Exit.void))
  )
  yield* Effect.tryPromise({ try: () => desk.receive(), catch: nativeError }).pipe(
    Effect.flatMap((frames) => answer(desk, frames)),
    Effect.catch((error) => desk.closed ? Effect.fail(error) : Effect.logWarning("ZAP", error.code)),
    Effect.forever,
    Effect.ignore,
    Effect.forkIn(scope)
  )
  return { scope }
})

/** Registers a domain of its own until the scope closes, and gives its name. */
export const openZapDomain = (zmq: Zeromq, admit: Admit): Effect.Effect<string, TransportError, Scope.Scope> =>
  Effect.acquireRelease(
    lock.withPermit(Effect.gen(function*() {
      open ??= yield* openDesk(zmq)
      const domain = randomUUID()
      domains.set(domain, admit)
      return domain
    })),
    (domain) =>
      lock.withPermit(Effect.suspend(() => {
        domains.delete(domain)
        if (domains.size > 0 || open === undefined) return Effect.void
        const { scope } = open
        open = undefined
        return Scope.close(scope, Exit.void)
      }))
  )
