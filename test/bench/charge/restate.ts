/**
 * Restate: a durable handler for each charge, named by its key, with the call as its one step. Its server, with its own log
 * on the disk, is started for the measurement; the handler is in this process.
 */
import * as restate from "@restatedev/restate-sdk"
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Pool } from "undici"
import { freePort } from "../support/children.ts"
import { eachOf, type Job, makePost, type Program } from "./jobs.ts"
import { restateServer } from "./restateServer.ts"

/** Asks until it answers as it should, for a minute at the most. */
const insist = async (ask: () => Promise<{ readonly ok: boolean }>) => {
  for (const untilMs = performance.now() + 60_000;;) {
    const answered = await ask().then(({ ok }) => ok, () => false)
    if (answered) return
    if (performance.now() > untilMs) throw new Error("restate-server is not ready after a minute")
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

export const program: Program = {
  name: "restate",
  open: async (setting) => {
    const { close, post } = makePost(setting)
    const folder = mkdtempSync(join(tmpdir(), "purser-bench-restate-"))
    const [ingress, admin, node, port] = [await freePort(), await freePort(), await freePort(), await freePort()]
    const charge = restate.service({
      name: "charge",
      handlers: { once: async (context: restate.Context, job: Job) => context.run("post", () => post(job.customerId, job)) }
    })
    await restate.serve({ services: [charge], port, logger: () => undefined })
    const server = spawn(restateServer()!, ["--base-dir", folder], {
      stdio: "ignore",
      // What npm installs is a program that starts the server: both are one group.
      detached: true,
      env: {
        ...process.env,
        RESTATE_LISTEN_MODE: "tcp",
        RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
        RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
        RESTATE_BIND_ADDRESS: `127.0.0.1:${node}`,
        RESTATE_ADVERTISED_ADDRESS: `http://127.0.0.1:${node}`,
        RESTATE_LOG_FILTER: "error"
      }
    })
    const kill = () => {
      try {
        process.kill(-server.pid!, "SIGKILL")
      } catch {
        // It has ended.
      }
    }
    process.once("exit", kill)
    await insist(() =>
      fetch(`http://127.0.0.1:${admin}/deployments`, {
        method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ uri: `http://127.0.0.1:${port}` })
      }))
    const pool = new Pool(`http://127.0.0.1:${ingress}`, { connections: setting.inFlight, pipelining: 1 })
    const ask = async (job: Job) => {
      const { body, statusCode } = await pool.request({
        path: "/charge/once", method: "POST", headers: { "content-type": "application/json", "idempotency-key": job.customerId }, body: JSON.stringify(job)
      })
      const text = await body.text()
      if (statusCode !== 200) throw new Error(`status ${statusCode}: ${text}`)
    }
    return {
      charge: (jobs) => eachOf(jobs, setting, ask),
      close: async () => {
        await pool.destroy()
        const ended = new Promise((resolve) => server.once("close", resolve))
        kill()
        await ended
        await close()
        rmSync(folder, { recursive: true, force: true })
      }
    }
  }
}
