/**
 * graphile-worker at its quick settings: jobs come in batches, are fetched in batches and completed in batches. A job is
 * gone when it is done, so that its key protects nothing afterwards.
 */
import { Logger, makeWorkerUtils, run } from "graphile-worker"
import pg from "pg"
import { type Job, makePost, type Program } from "./jobs.ts"

const batchOf = 500
const silent = new Logger(() => () => undefined)

export const program: Program = {
  name: "graphile-worker",
  open: async (setting) => {
    const pgPool = new pg.Pool({ connectionString: setting.databaseUrl, max: 10 })
    pgPool.on("error", (error) => { throw error })
    const { close, post } = makePost(setting)
    const open = new Map<string, () => void>()
    const utils = await makeWorkerUtils({ pgPool, logger: silent })
    await utils.migrate()
    const runner = await run({
      pgPool,
      logger: silent,
      concurrency: setting.inFlight,
      noHandleSignals: true,
      preset: { worker: { concurrentJobs: setting.inFlight, localQueue: { size: 2 * setting.inFlight }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
      taskList: {
        charge: async (payload) => {
          const job = payload as Job
          await post(job.customerId, job)
          open.get(job.customerId)!()
        }
      }
    })
    return {
      charge: async (jobs) => {
        const finished = Promise.all(jobs.map(({ customerId }) => new Promise<void>((resolve) => open.set(customerId, resolve))))
        for (let at = 0; at < jobs.length; at += batchOf) {
          await utils.addJobs(jobs.slice(at, at + batchOf).map((job) => ({ identifier: "charge", payload: job, jobKey: job.customerId, maxAttempts: 25 })))
        }
        await finished
        for (const { customerId } of jobs) open.delete(customerId)
        // The completions of the last jobs are on their way; one alone is called done when it has its answer.
        while (jobs.length > 1) {
          const { rows } = await pgPool.query<{ readonly jobs: string }>("select count(*) as jobs from graphile_worker.jobs")
          if (rows[0]!.jobs === "0") return
        }
      },
      close: async () => {
        await runner.stop()
        await utils.release()
        await pgPool.end()
        await close()
      }
    }
  }
}
