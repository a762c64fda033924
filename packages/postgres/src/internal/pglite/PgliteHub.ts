/**
 * Many virtual connections over the one session of a PGlite backend.
 *
 * The backend belongs to a connection until ReadyForQuery says "idle", so transactions isolate the fibers of a process
 * as they do on a server, except that they queue: while one is open, the others wait. Settings (`SET`), temporary
 * tables and session advisory locks are shared, for there is only one session. Queries run on the main thread.
 */
import type { PGlite } from "@electric-sql/pglite"
import { Buffer } from "node:buffer"
import { randomInt } from "node:crypto"
import type { Duplex } from "node:stream"
import { Back, backendKeyData, eachFrame, idleStatus, queryCancelled, simpleQuery, startupPacket } from "./frames.ts"
import { VirtualConnection, type VirtualConnectionHost } from "./VirtualConnection.ts"

export class PgliteHub implements VirtualConnectionHost {
  private readonly db: PGlite
  /** What the backend says at the start of a session, without its BackendKeyData and ReadyForQuery. */
  private readonly parameters: Buffer
  private readonly connections = new Set<VirtualConnection>()
  private departed: Array<VirtualConnection> = []
  private owner: VirtualConnection | undefined
  private scheduled = false
  private broken: Error | undefined
  private ids = 0

  constructor(db: PGlite) {
    this.db = db
    const kept: Array<Buffer> = []
    const hello = this.execute(startupPacket({ user: "postgres", database: "postgres", TimeZone: "UTC" }))
    eachFrame(hello, (type, start, end) => {
      if (type !== Back.backendKeyData && type !== Back.readyForQuery) kept.push(hello.subarray(start, end))
    })
    this.parameters = Buffer.concat(kept)
    this.execute(simpleQuery("SET TIME ZONE 'UTC'"))
  }

  /** Opens a connection: the `stream` of a `PgClient`. */
  readonly stream = (): Duplex => {
    const connection = new VirtualConnection(this, ++this.ids, randomInt(1, 2 ** 31 - 1))
    if (this.broken !== undefined) connection.destroy(this.broken)
    else this.connections.add(connection)
    return connection
  }

  /** Ends every connection; an open transaction is rolled back by the backend's own shutdown. */
  close(): void {
    this.break(new Error("the embedded database is closed"))
  }

  greeting(connection: VirtualConnection): Buffer {
    return Buffer.concat([
      this.parameters,
      backendKeyData(connection.id, connection.secret),
      Buffer.from([Back.readyForQuery, 0, 0, 0, 5, idleStatus])
    ])
  }

  isListened(channel: string): boolean {
    for (const connection of this.connections) if (connection.channels.has(channel)) return true
    return false
  }

  /** A query that has begun cannot be stopped (the backend runs synchronously), one that still waits can. */
  cancel(id: number, secret: number): void {
    for (const connection of this.connections) {
      if (connection.id !== id || connection.secret !== secret) continue
      if (connection !== this.owner && connection.batches.shift() !== undefined) connection.deliver(queryCancelled)
      return
    }
  }

  drop(connection: VirtualConnection): void {
    if (!this.connections.delete(connection)) return
    connection.batches.length = 0
    this.departed.push(connection)
    this.schedule()
  }

  schedule(): void {
    if (this.scheduled || this.broken !== undefined) return
    this.scheduled = true
    setImmediate(this.turn)
  }

  /**
   * One batch per turn of the event loop, as from a socket: other events get their turn, and the client, which defers
   * work to microtasks, never sees two answers between them.
   */
  private readonly turn = (): void => {
    this.scheduled = false
    if (this.broken !== undefined) return
    this.sweep()
    const connection = this.owner ?? this.nextWaiting()
    if (connection === undefined || connection.batches.length === 0) return
    // Last in the order of the set: the others come first next time.
    this.connections.delete(connection)
    this.connections.add(connection)
    const batch = connection.batches.length === 1 ? connection.batches[0]! : Buffer.concat(connection.batches)
    connection.batches.length = 0
    this.owner = connection
    this.answer(connection, this.execute(batch))
    this.schedule()
  }

  private nextWaiting(): VirtualConnection | undefined {
    for (const connection of this.connections) if (connection.batches.length > 0) return connection
    return undefined
  }

  private answer(connection: VirtualConnection, bytes: Buffer): void {
    let from = 0
    eachFrame(bytes, (type, start, end) => {
      this.owner = type === Back.readyForQuery && bytes[start + 5] === idleStatus ? undefined : connection
      if (type !== Back.notification) return
      if (start > from) connection.deliver(bytes.subarray(from, start))
      from = end
      this.broadcast(bytes.subarray(start, end))
    })
    if (from < bytes.length) connection.deliver(bytes.subarray(from))
  }

  private broadcast(notification: Buffer): void {
    const channel = notification.toString("utf8", 9, notification.indexOf(0, 9))
    for (const listener of this.connections) if (listener.channels.has(channel)) listener.deliver(notification)
  }

  /** Takes back what departed connections left in the session: a transaction, statements, channels. */
  private sweep(): void {
    if (this.departed.length === 0) return
    if (this.owner !== undefined && this.departed.includes(this.owner)) {
      this.execute(simpleQuery("ROLLBACK"))
      this.owner = undefined
    }
    // Inside another connection's transaction these statements could fail, so they wait for its end.
    if (this.owner !== undefined) return
    const departed = this.departed
    this.departed = []
    const channels = new Set(departed.flatMap((connection) => Array.from(connection.channels)))
    for (const connection of departed) {
      for (const name of connection.statements) this.execute(simpleQuery(`DEALLOCATE "${name}"`))
    }
    for (const channel of channels) {
      if (!this.isListened(channel)) this.execute(simpleQuery(`UNLISTEN "${channel.replaceAll("\"", "\"\"")}"`))
    }
  }

  private execute(message: Buffer): Buffer {
    const chunks: Array<Buffer> = []
    // The streaming form runs synchronously too, and unlike the plain one it does not parse the answer a second time.
    // The bytes are a view into the memory of the backend, so they must be copied.
    if (message[0] === 0) return Buffer.from(this.db.execProtocolRawSync(message))
    this.db.execProtocolRawStream(message, {
      syncToFs: false,
      onRawData: (bytes) => {
        chunks.push(Buffer.from(bytes))
      }
    }).catch((cause) => this.break(new Error("the embedded database has stopped", { cause })))
    return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
  }

  private break(error: Error): void {
    if (this.broken !== undefined) return
    this.broken = error
    for (const connection of Array.from(this.connections)) connection.destroy(error)
    this.departed = []
    this.owner = undefined
  }
}
