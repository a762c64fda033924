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
    const { close, post } = makePost(setting)
    let left = 0
    let done: () => void = () => undefined
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
          if (--left === 0) done()
        }
      }
    })
    return {
      charge: async (jobs) => {
        left = jobs.length
        const finished = new Promise<void>((resolve) => done = resolve)
        for (let at = 0; at < jobs.length; at += batchOf) {
          await utils.addJobs(jobs.slice(at, at + batchOf).map((job) => ({ identifier: "charge", payload: job, jobKey: job.customerId, maxAttempts: 25 })))
        }
        await finished
        // The last completions are on their way.
        for (;;) {
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
