/**
 * pg-boss at its quick settings: jobs are inserted in batches, fetched in batches as long as a batch is full, and completed
 * one fetch at a time. As a batch handler each fetch runs its calls at once.
 */
import { PgBoss } from "pg-boss"
import { type Job, makePost, type Program } from "./jobs.ts"

const queue = "charge"
const batchOf = 500
/** Four fetches share what may be under way, so that one is at the database while others call. */
const fetchers = 4

export const program: Program = {
  name: "pg-boss",
  open: async (setting) => {
    const boss = new PgBoss({ connectionString: setting.databaseUrl, max: 10, supervise: false, schedule: false })
    boss.on("error", (error) => { throw error })
    await boss.start()
    await boss.createQueue(queue)
    const { close, post } = makePost(setting)
    const perFetch = Math.ceil(setting.inFlight / fetchers)
    return {
      charge: async (jobs) => {
        const progress = { left: jobs.length }
        const insert = async () => {
          for (let at = 0; at < jobs.length; at += batchOf) {
            await boss.insert(queue, jobs.slice(at, at + batchOf).map((job) => ({ data: job, singletonKey: job.customerId })))
          }
        }
        const fetcher = async () => {
          while (progress.left > 0) {
            const batch = await boss.fetch<Job>(queue, { batchSize: perFetch })
            if (batch.length === 0) {
              await new Promise((resolve) => setTimeout(resolve, 2))
              continue
            }
            await Promise.all(batch.map(({ data }) => post(data.customerId, data)))
            await boss.complete(queue, batch.map(({ id }) => id))
            progress.left -= batch.length
          }
        }
        await Promise.all([insert(), ...Array.from({ length: fetchers }, fetcher)])
      },
      close: async () => {
        await boss.stop({ graceful: false })
        await close()
      }
    }
  }
}
