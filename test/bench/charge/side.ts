/**
 * One program in a process of its own: `side.ts PROGRAM COUNT WARM SETTING` opens it, charges some jobs to warm up, says
 * so, charges on the next word, and says how long it took and what it cost.
 */
import { heard, say, timed, type Worked } from "../support/side.ts"
import { type Counts, jobsOf, type Setting } from "./jobs.ts"
import { type ProgramName, programs } from "./programs.ts"

const [name, countText, warmText, settingText] = process.argv.slice(2) as [ProgramName, string, string, string]
const setting = JSON.parse(settingText) as Setting
const count = Number(countText)

/** What the bench reads. */
export interface WorkedOnOwn extends Worked {
  /** For one job, of a database of its own. */
  readonly own?: Counts
}

const { charge, close, counts } = await (await programs[name]()).open(setting)
await charge(jobsOf(`${setting.run}w`, Number(warmText)))
say("ready")
await heard()
const before = await counts?.()
const worked = await timed(count, () => charge(jobsOf(setting.run, count)))
const after = await counts?.()
const since = (field: keyof Counts) => (after![field] - before![field]) / count
const found: WorkedOnOwn = after === undefined ? worked : { ...worked, own: { transactions: since("transactions"), fsyncs: since("fsyncs"), walBytes: since("walBytes") } }
say(found)
await heard()
await close()
process.exit(0)
