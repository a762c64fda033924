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
        let inserted = 0
        const insert = async () => {
          for (; inserted < jobs.length; inserted += batchOf) {
            await boss.insert(queue, jobs.slice(inserted, inserted + batchOf).map((job) => ({ data: job, singletonKey: job.customerId })))
          }
        }
        let left = jobs.length
        const fetcher = async () => {
          while (left > 0) {
            const batch = await boss.fetch<Job>(queue, { batchSize: perFetch })
            if (batch.length === 0) {
              if (inserted >= jobs.length) return
              await new Promise((resolve) => setTimeout(resolve, 5))
              continue
            }
            await Promise.all(batch.map(({ data }) => post(data.customerId, data)))
            await boss.complete(queue, batch.map(({ id }) => id))
            left -= batch.length
          }
        }
        await Promise.all([insert(), ...Array.from({ length: fetchers }, fetcher)])
        while (left > 0) await fetcher()
      },
      close: async () => {
        await boss.stop({ graceful: false })
        await close()
      }
    }
  }
}
