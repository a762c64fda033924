/**
 * One program in a process of its own: `side.ts PROGRAM COUNT WARM SETTING` opens it, charges some jobs to warm up, says
 * so, charges on the next word, and says how long it took and what it cost.
 */
import { heard, say, timed } from "../support/side.ts"
import { jobsOf, type Setting } from "./jobs.ts"
import { type ProgramName, programs } from "./programs.ts"

const [name, countText, warmText, settingText] = process.argv.slice(2) as [ProgramName, string, string, string]
const setting = JSON.parse(settingText) as Setting
const count = Number(countText)

const { charge, close } = await (await programs[name]()).open(setting)
await charge(jobsOf(`${setting.run}w`, Number(warmText)))
say("ready")
await heard()
say(await timed(count, () => charge(jobsOf(setting.run, count))))
await heard()
await close()
process.exit(0)
