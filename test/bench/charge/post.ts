/** The call alone: what is left when nothing is kept. The limit of all others, and no way to bill. */
import { eachOf, makePost, type Program } from "./jobs.ts"

export const program: Program = {
  name: "post",
  open: async (setting) => {
    const { close, post } = makePost(setting)
    return { charge: (jobs) => eachOf(jobs, setting, (job) => post(job.customerId, job)), close }
  }
}
