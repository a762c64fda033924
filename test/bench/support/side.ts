/** The other end of `openSide`: what a process of the bench says and hears, and what its work has cost. */

/** Says something to the bench. */
export const say = (message: unknown): void => void process.send!(message)

/** Waits for the next word. */
export const heard = <A = unknown>(): Promise<A> => new Promise((resolve) => process.once("message", (message) => resolve(message as A)))

const micros = ({ system, user }: NodeJS.CpuUsage) => system + user

/** What is read by the bench after a piece of work. */
export interface Worked {
  readonly tookMs: number
  /** For one job. */
  readonly cpuMicros: number
  readonly peakRssMb: number
}

/** Does `count` jobs, and says how long they took and what they cost. */
export const timed = async (count: number, work: () => Promise<unknown>): Promise<Worked> => {
  const cpu = process.cpuUsage()
  const beganMs = performance.now()
  await work()
  const tookMs = performance.now() - beganMs
  return { tookMs, cpuMicros: micros(process.cpuUsage(cpu)) / count, peakRssMb: process.resourceUsage().maxRSS / 1024 }
}
