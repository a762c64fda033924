/** Settings that the patterns have in common, and their defaults. What only one pattern has is in its own module. */
import type { DeadLetter, WireCodec } from "@purser/core"
import { Duration, Effect, Schedule } from "effect"
import type { SocketSettings } from "./SocketSettings.ts"

/** What both sides of every pattern take. */
export interface PatternOptions {
  /** Addresses, as a list or separated by commas. Servers bind and clients connect; `>` in front makes a server connect. */
  readonly endpoint?: string | ReadonlyArray<string> | undefined
  /** Lets addresses be used that other machines reach, without encryption. */
  readonly allowPlain?: boolean | undefined
  readonly socket?: Partial<SocketSettings> | undefined
  /** The wire's codec; else it is made from the configuration. */
  readonly wire?: WireCodec | undefined
}

/** What every client takes. */
export interface PatternClientOptions extends PatternOptions {
  /** How long one attempt waits for its answer (30 seconds). */
  readonly requestTimeout?: Duration.Input | undefined
  /** When to send again after silence; its end is the end of the attempts. Else backing off from 100 ms, three times. */
  readonly retry?: Schedule.Schedule<unknown, unknown> | undefined
  /** How charges are written (joined). `plain`, one a message, is for workers that read only that form. */
  readonly form?: "joined" | "plain" | undefined
}

/** What a client with many requests in flight takes. */
export interface WindowClientOptions extends PatternClientOptions {
  /** Requests in flight at the most (1,000), those that wait to be sent again included. */
  readonly window?: number | undefined
  /** What a submission does when the window is full: it waits (default), or fails with `Backpressure`. */
  readonly whenFull?: "wait" | "fail" | undefined
  /** Requests joined into one frame at the most; 128 is the limit. */
  readonly joinMax?: number | undefined
  /** A socket that heard nothing for so many times the deadline is replaced by a new one (3). */
  readonly silencesMax?: number | undefined
}

/** What every server takes. */
export interface PatternServerOptions extends PatternOptions {
  /** Handler calls at a time (256). */
  readonly concurrency?: number | undefined
  /** Requests taken in beyond those being handled (4,096). */
  readonly waitingMax?: number | undefined
  /** A longer request is refused with an answer (1 MiB). */
  readonly requestMaxBytes?: number | undefined
  /** How long a closing server waits for the requests that it has taken (10 seconds). */
  readonly drainTimeout?: Duration.Input | undefined
  /** Where messages go that cannot be read or are not let in; else `DeadLetterSink`, which logs them. */
  readonly deadLetters?: ((letter: DeadLetter) => Effect.Effect<void>) | undefined
}

/** The endpoint of both sides when none is given. */
export const defaultEndpoint = "tcp://127.0.0.1:5555"

const backoffMax = Duration.seconds(5)

/** Backing off from 100 ms to 5 s with jitter, `times` times. */
export const defaultRetry = (times: number): Schedule.Schedule<unknown, unknown> =>
  Schedule.exponential(100).pipe(
    Schedule.modifyDelay(({ duration }) => Effect.succeed(Duration.min(duration, backoffMax))),
    Schedule.jittered,
    Schedule.upTo({ times })
  )
