/** The programs of the comparison by name. Each is loaded in the process that runs it alone. */
import type { Program } from "./jobs.ts"

export const programs = {
  post: async () => (await import("./post.ts")).program,
  "by-hand-batched": async () => (await import("./byHand.ts")).batched,
  "by-hand-single": async () => (await import("./byHand.ts")).single,
  "graphile-worker": async () => (await import("./graphileWorker.ts")).program,
  "pg-boss": async () => (await import("./pgBoss.ts")).program,
  dbos: async () => (await import("./dbos.ts")).program,
  restate: async () => (await import("./restate.ts")).program,
  purser: async () => (await import("./purser.ts")).program,
  "purser-embedded": async () => (await import("./purserEmbedded.ts")).program
} satisfies Record<string, () => Promise<Program>>

export type ProgramName = keyof typeof programs
export const isProgram = (name: string): name is ProgramName => name in programs
