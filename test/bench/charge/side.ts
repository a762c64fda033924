/**
 * One program in a process of its own: `side.ts PROGRAM COUNT` opens it, charges half as many jobs to warm up, says
 * `ready`, charges on `go`, and says how long it took and what it cost.
 */
import { jobsOf, type Setting } from "./jobs.ts"
import { programs } from "./programs.ts"

const [name, countText, settingText] = process.argv.slice(2) as [string, string, string]
const setting = JSON.parse(settingText) as Setting
const count = Number(countText)
const heard = () => new Promise<unknown>((resolve) => process.once("message", resolve))

const { charge, close } = await (await programs[name]!()).open(setting)
await charge(jobsOf(`${setting.run}w`, Math.ceil(count / 2)))
process.send!({ ready: true })
await heard()
const cpu = process.cpuUsage()
const beganMs = performance.now()
await charge(jobsOf(setting.run, count))
const tookMs = performance.now() - beganMs
const { system, user } = process.cpuUsage(cpu)
process.send!({ tookMs, cpuMicros: (system + user) / count, peakRssMb: process.resourceUsage().maxRSS / 1024 })
await heard()
await close()
process.exit(0)
