/** DBOS: a durable workflow for each charge, named by its key, with the call as its one step. */
import { DBOS } from "@dbos-inc/dbos-sdk"
import { eachOf, type Job, makePost, type Program } from "./jobs.ts"

export const program: Program = {
  name: "dbos",
  open: async (setting) => {
    const { close, post } = makePost(setting)
    const charge = DBOS.registerWorkflow(async (job: Job) => DBOS.runStep(() => post(job.customerId, job), { name: "charge" }), { name: "charge" })
    DBOS.setConfig({ name: "bench", systemDatabaseUrl: setting.databaseUrl, systemDatabasePoolSize: 20, logLevel: "error" })
    await DBOS.launch()
    return {
      charge: (jobs) =>
        eachOf(jobs, setting, async (job) => {
          const handle = await DBOS.startWorkflow(charge, { workflowID: job.customerId })(job)
          await handle.getResult()
        }),
      close: async () => {
        await DBOS.shutdown()
        await close()
      }
    }
  }
}
