/** What the system says of a process's work, where it has a /proc. */
import { readFileSync } from "node:fs"

const textOf = (pid: number | "self", file: string): string | undefined => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8")
  } catch {
    return undefined
  }
}

/** Processor time of a process and of its children that have ended, both in ms, and who started it. */
export interface Stat {
  readonly parent: number
  readonly cpuMs: number
  readonly cpuMsOfEnded: number
}

/** In steps of 10 ms. */
export const statOf = (pid: number | "self"): Stat | undefined => {
  const fields = textOf(pid, "stat")?.split(") ")[1]!.split(" ")
  if (fields === undefined) return undefined
  const ms = (at: number) => Number(fields[at]) * 10
  return { parent: Number(fields[1]), cpuMs: ms(11) + ms(12), cpuMsOfEnded: ms(13) + ms(14) }
}

/** Processor time in ms of one process; not a number where there is no /proc. */
export const cpuMsOf = (pid: number): number => statOf(pid)?.cpuMs ?? Number.NaN

/** The most memory that a process has had, in MB; not a number where there is no /proc, or no such process any more. */
export const peakRssMbOf = (pid: number): number => Number(/^VmHWM:\s+(\d+)/m.exec(textOf(pid, "status") ?? "")?.[1] ?? Number.NaN) / 1024
