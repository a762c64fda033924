/** One measurement of a transport: its two sides as processes. */
import { beside, freePort, openSide, type Side } from "../support/children.ts"
import type { Pattern, Program } from "./messages.ts"

export interface Carried {
  readonly perSecond: number
  /** Processor time of both sides for one request, all threads. */
  readonly cpuMicros: number
  /** Of both sides together. */
  readonly peakRssMb: number
}

export const sidesOf = async (pattern: Pattern, program: Program, count: number): Promise<Carried> => {
  const [endpoint, back] = [`tcp://127.0.0.1:${await freePort()}`, `tcp://127.0.0.1:${await freePort()}`]
  const start = (name: string): Side => openSide(beside(import.meta.url, "side.ts"), [name, pattern, program, endpoint, back, String(count)])
  const [server, client] = [start("server"), start("client")]
  const { cpuMicros, peakRssMb, perSecond } = await client.heard<Carried>()
  server.send("report")
  const served = await server.heard<{ readonly cpuMicros: number; readonly peakRssMb: number }>()
  await Promise.all([client.end(), server.end()])
  return { perSecond, cpuMicros: cpuMicros + served.cpuMicros, peakRssMb: peakRssMb + served.peakRssMb }
}
