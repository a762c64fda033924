/** What has to work in a project that has installed the packages. */
import { createHash } from "node:crypto"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { expect } from "vitest"
import { bill, compile, consolePage, proxyAnswer, purser, runProgram } from "./project.ts"

/** The commands that serve: their page and their store are where they look for them. */
export const expectToServe = async (folder: string, node: string): Promise<void> => {
  expect(await consolePage(folder, node)).toMatch(/<html[^]*<script[^>]* src=/)
  expect(await proxyAnswer(folder, node)).toContain("vault_key_unknown")
}

/** Takes PGlite and zeromq away: all that does not use them still works. */
export const expectToWorkWithout = async (folder: string, node: string): Promise<void> => {
  for (const name of ["@electric-sql", "zeromq"]) rmSync(join(folder, "node_modules", name), { recursive: true })
  expect(await runProgram(folder, node, "without.mjs")).toEqual({
    there: true,
    embedded: expect.stringMatching(/^DatabaseUnavailable: .*needs the package @electric-sql\/pglite/),
    sockets: expect.stringMatching(/^TransportError: .*Cannot find package 'zeromq'/)
  })
}

/** Runs everything with this `node`, and judges by the simulator's books. */
export const expectToWork = async (folder: string, node: string): Promise<void> => {
  expect(await compile(folder, "nodenext")).toBe("")
  expect(await runProgram(folder, node, "program.mjs")).toMatchObject({
    sealed: "ERR_PACKAGE_PATH_NOT_EXPORTED",
    key: createHash("sha256").update("cust_123:Q3-2026:zmq-billing").digest("hex").slice(0, 32),
    there: true,
    inMemory: { outcome: "Succeeded", payments: 1 },
    embedded: { outcomes: ["Succeeded", "Succeeded before"], payments: 1 }
  })
  const help = await purser(folder, node, ["--help"])
  expect(help, help.stderr).toMatchObject({ status: 0, stderr: "" })
  expect(help.stdout).toContain("Bill every customer and period exactly once")
  const { again, books, first } = await bill(folder, node)
  for (const ended of [first, again]) expect(ended, ended.stderr).toMatchObject({ status: 0 })
  expect(books.map(({ payments }) => payments)).toEqual([1, 1, 1])
}
