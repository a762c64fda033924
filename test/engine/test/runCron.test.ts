/** Which schedules can be kept: fields that some day has, in a zone that there is. */
import { cronOf } from "@purser/engine"
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"

const refusal = (cron: string, zone = "UTC") =>
  Result.match(cronOf({ name: "monthly", cron, zone }), { onFailure: ({ _tag, message }) => `${_tag}: ${message}`, onSuccess: () => "kept" })

describe("a schedule", () => {
  it("is kept with five fields that some day has, or six with seconds", () => {
    assert.deepStrictEqual(["0 6 1 * *", "*/5 * * * *", "0 0 29 2 *", " 0  6 1 * 1-5 ", "*/5 * * * * *"].map((cron) => refusal(cron, "Europe/Berlin")), ["kept", "kept", "kept", "kept", "kept"])
  })
  it("is refused with too few fields or too many, with a day that never comes, and in no zone", () => {
    assert.include(refusal("0 6 1 *"), "BadSchedule: schedule \"monthly\": \"0 6 1 *\" in UTC: five fields are expected")
    assert.include(refusal("0 0 6 1 * * 2026"), "not 7")
    assert.include(refusal("0 0 30 2 *"), "BadSchedule: schedule \"monthly\": \"0 0 30 2 *\" in UTC: no day has these fields")
    assert.include(refusal("0 0 31 4,6 *"), "no day has these fields")
    assert.include(refusal("61 0 1 * *"), "BadSchedule")
    assert.include(refusal("0 0 1 * *", "Mars/Olympus"), "BadSchedule")
  })
})
