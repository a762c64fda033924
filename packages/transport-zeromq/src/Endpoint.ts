/**
 * Addresses of sockets: reading them, and deciding which may be used without encryption.
 *
 * Without CURVE whoever reaches a socket can send charges to it, so that an address that other machines reach is refused
 * unless the operator says otherwise. Names are not resolved here: only what is certainly local counts as local.
 */
import { Closed, TransportError, Unauthorized } from "@purser/core"
import { Result } from "effect"

/** One address. `attach` is given by CZMQ's prefixes: `@tcp://…` binds, `>tcp://…` connects, else the side's own default. */
export interface Endpoint {
  readonly attach: "bind" | "connect"
  readonly address: string
  /** Whether the address needs IPv6 to be switched on. */
  readonly ipv6: boolean
}

const local = /^(?:ipc:\/\/.+|inproc:\/\/.+|tcp:\/\/(?:127(?:\.\d{1,3}){3}|localhost|\[::1\]):(?:\d{1,5}|\*))$/
const known = /^(?:ipc|inproc):\/\/.+$|^tcp:\/\/.+:(?:\d{1,5}|\*)$/
const portMax = 65_535
/** libzmq takes the rest of a division for a greater one. */
const isPastLastPort = (address: string): boolean => Number(/^tcp:.*:(\d+)$/.exec(address)?.[1] ?? 0) > portMax

/** True for loopback, ipc and inproc: what no other machine can reach. */
export const isLocalAddress = (address: string): boolean => local.test(address)

/** Reads one address; an unreadable one is `Closed`, an unprotected remote one is `Unauthorized`. */
export const parseEndpoint = (
  text: string,
  options: { readonly attach: Endpoint["attach"]; readonly allowPlain: boolean }
): Result.Result<Endpoint, TransportError> => {
  const prefix = text.charAt(0)
  const attach = prefix === "@" ? "bind" : prefix === ">" ? "connect" : options.attach
  const address = prefix === "@" || prefix === ">" ? text.slice(1) : text
  if (!known.test(address)) {
    const detail = "expected tcp://host:port, ipc://path or inproc://name"
    return Result.fail(new TransportError({ reason: new Closed({ endpoint: text, detail }), chargeKey: null }))
  }
  if (isPastLastPort(address)) {
    return Result.fail(new TransportError({ reason: new Closed({ endpoint: text, detail: `a port is at most ${portMax}` }), chargeKey: null }))
  }
  if (!options.allowPlain && !isLocalAddress(address)) {
    const detail = `${address} can be reached from other machines and is not encrypted; PURSER_ALLOW_PLAIN=true allows it`
    return Result.fail(new TransportError({ reason: new Unauthorized({ detail }), chargeKey: null }))
  }
  return Result.succeed({ attach, address, ipv6: address.startsWith("tcp://[") })
}

/** Splits a comma separated list, leaving out blanks. */
export const splitEndpoints = (text: string): ReadonlyArray<string> =>
  text.split(",").map((part) => part.trim()).filter((part) => part !== "")

/** Reads a list of addresses; an empty one is `Closed`. */
export const parseEndpoints = (
  list: string | ReadonlyArray<string>,
  options: { readonly attach: Endpoint["attach"]; readonly allowPlain: boolean }
): Result.Result<ReadonlyArray<Endpoint>, TransportError> => {
  const texts = typeof list === "string" ? splitEndpoints(list) : list
  if (texts.length === 0) {
    return Result.fail(new TransportError({ reason: new Closed({ endpoint: "", detail: "no endpoint is given" }), chargeKey: null }))
  }
  return Result.all(texts.map((text) => parseEndpoint(text, options)))
}
