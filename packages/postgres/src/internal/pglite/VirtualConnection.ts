/**
 * One client's end of a connection to the PGlite hub: a Duplex that speaks the wire protocol.
 *
 * It cuts the client's bytes into frames and hands whole batches to the hub (a batch ends with Sync), and it renames
 * prepared statements, because all virtual connections share one backend session. It executes nothing itself.
 */
import { Buffer } from "node:buffer"
import { Duplex } from "node:stream"
import { endsBatch, Front, listenStatement, splice, StartupCode, statementTarget } from "./frames.ts"

/** What a virtual connection asks of its hub. */
export interface VirtualConnectionHost {
  readonly greeting: (connection: VirtualConnection) => Buffer
  readonly isListened: (channel: string) => boolean
  readonly cancel: (id: number, secret: number) => void
  readonly schedule: () => void
  readonly drop: (connection: VirtualConnection) => void
}

/** A channel that nobody notifies: UNLISTEN of it does nothing. */
const nobodysChannel = "purser_nobody"

export class VirtualConnection extends Duplex {
  readonly id: number
  readonly secret: number
  /** Whole batches that the backend has not seen yet, oldest first. */
  readonly batches: Array<Buffer> = []
  readonly channels = new Set<string>()
  readonly statements = new Set<string>()
  private readonly host: VirtualConnectionHost
  private open: Array<Buffer> = []
  private rest: Buffer = Buffer.alloc(0)
  private started = false
  private ended = false

  constructor(host: VirtualConnectionHost, id: number, secret: number) {
    super({ allowHalfOpen: false, readableHighWaterMark: 1 << 20 })
    this.host = host
    this.id = id
    this.secret = secret
    // A client that has left listens to nothing, and an error that nobody hears would end the process.
    this.on("error", () => {})
  }

  /** Hands bytes of the backend to the client; a client that has gone gets nothing. */
  deliver(bytes: Buffer): void {
    if (!this.destroyed && !this.ended) this.push(bytes)
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: (error?: Error | null) => void): void {
    this.feed(this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk]))
    callback()
    if (this.batches.length > 0) this.host.schedule()
  }

  override _final(callback: (error?: Error | null) => void): void {
    this.finish()
    this.host.drop(this)
    callback()
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.ended = true
    this.host.drop(this)
    callback(error)
  }

  private finish(): void {
    if (this.ended) return
    this.ended = true
    this.push(null)
  }

  private feed(bytes: Buffer): void {
    let at = 0
    while (!this.ended) {
      const next = this.started ? this.frame(bytes, at) : this.startup(bytes, at)
      if (next === at) break
      at = next
    }
    this.rest = at === bytes.length || this.ended ? Buffer.alloc(0) : bytes.subarray(at)
  }

  private startup(bytes: Buffer, at: number): number {
    if (bytes.length - at < 8) return at
    const end = at + bytes.readInt32BE(at)
    if (bytes.length < end) return at
    const code = bytes.readInt32BE(at + 4)
    if (code === StartupCode.ssl || code === StartupCode.gss) {
      this.push(Buffer.from("N"))
    } else if (code === StartupCode.cancel) {
      this.host.cancel(bytes.readInt32BE(at + 8), bytes.readInt32BE(at + 12))
      // Nobody reads from this one, so its end would never be noticed; the client waits for it to close.
      this.destroy()
    } else {
      // The hub answers by itself: a new connection must not wait for another one's transaction.
      this.started = true
      this.push(this.host.greeting(this))
    }
    return end
  }

  private frame(bytes: Buffer, at: number): number {
    if (bytes.length - at < 5) return at
    const end = at + 1 + bytes.readInt32BE(at + 1)
    if (bytes.length < end) return at
    const frame = bytes.subarray(at, end)
    const type = frame[0]!
    if (type === Front.terminate) {
      this.finish()
      return end
    }
    this.open.push(this.rewrite(type, frame))
    if (endsBatch(type)) {
      this.batches.push(this.open.length === 1 ? this.open[0]! : Buffer.concat(this.open))
      this.open = []
    }
    return end
  }

  private rewrite(type: number, frame: Buffer): Buffer {
    switch (type) {
      case Front.query: {
        return this.listening(frame, 5)
      }
      case Front.parse: {
        return this.rename(this.listening(frame, frame.indexOf(0, 5) + 1), 5, true)
      }
      case Front.bind: {
        return this.rename(frame, frame.indexOf(0, 5) + 1, false)
      }
      case Front.close:
      case Front.describe: {
        return frame[5] === statementTarget ? this.rename(frame, 6, false) : frame
      }
      default: {
        return frame
      }
    }
  }

  /** Keeps the list of channels, and spares an UNLISTEN that would also silence another connection. */
  private listening(frame: Buffer, sqlAt: number): Buffer {
    const sqlEnd = frame.indexOf(0, sqlAt)
    // No channel name is longer than 63 bytes, so a longer statement cannot be one of these.
    if (sqlEnd - sqlAt > 256) return frame
    const found = listenStatement(frame.toString("utf8", sqlAt, sqlEnd))
    if (found === undefined) return frame
    if (found.listen) {
      this.channels.add(found.channel)
      return frame
    }
    const gone = found.channel === "*" ? Array.from(this.channels) : [found.channel]
    for (const channel of gone) this.channels.delete(channel)
    const free = gone.filter((channel) => !this.host.isListened(channel))
    // With `*` or a shared channel, the backend goes on listening until the last connection has left.
    return found.channel !== "*" && free.length === 1 ? frame : splice(frame, sqlAt, sqlEnd, `UNLISTEN ${nobodysChannel}`)
  }

  private rename(frame: Buffer, at: number, declares: boolean): Buffer {
    if (frame[at] === 0) return frame
    const end = frame.indexOf(0, at)
    const name = `c${this.id}_${frame.toString("utf8", at, end)}`
    if (declares) this.statements.add(name)
    if (frame[0] === Front.close) this.statements.delete(name)
    return splice(frame, at, end, name)
  }
}
