/** One program that gets a job at a steady rate: `side.ts PROGRAM COUNT PER_SECOND SETTING` says how long each took from the moment it was due. */
import { jobsOf, type Setting } from "../charge/jobs.ts"
import { type ProgramName, programs } from "../charge/programs.ts"
import { heard, say, timed, type Worked } from "../support/side.ts"

const [name, countText, perSecondText, settingText] = process.argv.slice(2) as [ProgramName, string, string, string]
const setting = JSON.parse(settingText) as Setting
const [count, perSecond] = [Number(countText), Number(perSecondText)]
const { charge, close } = await (await programs[name]()).open(setting)

/** What the bench reads. */
export interface Paced extends Worked {
  readonly timesMs: ReadonlyArray<number>
}

/** A job begins when it is due, whether or not earlier ones are done. */
const paced = async (run: string, many: number): Promise<ReadonlyArray<number>> => {
  const jobs = jobsOf(run, many)
  const beganMs = performance.now()
  return Promise.all(jobs.map(async (job, index) => {
    const dueMs = beganMs + index * 1000 / perSecond
    await new Promise((resolve) => setTimeout(resolve, dueMs - performance.now()))
    const startedMs = performance.now()
    await charge([job])
    return performance.now() - startedMs
  }))
}

// What is compiled late is compiled then, as it is in a program that has been up for ten minutes at this rate; DBOS takes too long for as many.
await charge(jobsOf(`${setting.run}w`, name === "dbos" ? 2000 : 30_000))
await paced(`${setting.run}x`, Math.ceil(count / 5))
say("ready")
await heard()
let timesMs: ReadonlyArray<number> = []
const worked = await timed(count, async () => timesMs = await paced(setting.run, count))
const found: Paced = { ...worked, timesMs }
say(found)
await heard()
await close()
process.exit(0)
