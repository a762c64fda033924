/** The alert rules have a case that fires and one that does not, each; promtool, where it is installed, says that they do so. That they ask for series which exist is held beside the metrics themselves. */
import { assert, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { parse } from "yaml"
import { readText } from "../src/Pages.ts"

interface Rules {
  readonly groups: ReadonlyArray<{ readonly rules: ReadonlyArray<{ readonly alert: string; readonly expr: string }> }>
}
interface Cases {
  readonly rule_files: ReadonlyArray<string>
  readonly tests: ReadonlyArray<{
    readonly input_series: ReadonlyArray<{ readonly series: string }>
    readonly alert_rule_test: ReadonlyArray<{ readonly alertname: string; readonly exp_alerts: ReadonlyArray<unknown> }>
  }>
}

const rules = (parse(readText("ops/telemetry/alerts.yml")) as Rules).groups.flatMap((group) => group.rules)
const { rule_files, tests } = parse(readText("ops/telemetry/alerts.test.yml")) as Cases

it("every alert has a case in which it fires, and one in which it keeps silent", () => {
  const names = rules.map(({ alert }) => alert)
  assert.isAbove(names.length, 20)
  assert.deepStrictEqual(rule_files, ["alerts.yml"])
  const asked = tests.flatMap(({ alert_rule_test }) => alert_rule_test)
  const named = (isFiring: boolean) => [...new Set(asked.filter(({ exp_alerts }) => (exp_alerts.length > 0) === isFiring).map(({ alertname }) => alertname))]
  assert.sameMembers(named(true), names)
  assert.sameMembers(named(false), names)
})

it("every case brings a series that its alert asks for, or is about its absence", () => {
  const metrics = (expr: string) => [...expr.matchAll(/\b(?:purser_\w+|up)\b/g)].map(([name]) => name)
  const wrong = tests.flatMap(({ alert_rule_test, input_series }) => {
    const brought = input_series.map(({ series }) => /^\w+/.exec(series)![0])
    return alert_rule_test.filter(({ alertname }) => {
      const expr = rules.find(({ alert }) => alert === alertname)?.expr ?? ""
      return !expr.startsWith("absent(") && !metrics(expr).some((name) => brought.includes(name))
    }).map(({ alertname }) => alertname)
  })
  assert.deepStrictEqual(wrong, [])
})

const folder = fileURLToPath(new URL("../../../ops/telemetry", import.meta.url))
const promtool = (...args: ReadonlyArray<string>) => spawnSync("promtool", args, { cwd: folder, encoding: "utf8" })
const isInstalled = promtool("--version").status === 0

// Prometheus is no dependency of the workspace: where it is not installed, the two above are what is held.
if (isInstalled) {
  it("promtool finds the rules sound and the cases as they say", () => {
    for (const args of [["check", "rules", "alerts.yml"], ["test", "rules", "alerts.test.yml"]]) {
      const { status, stderr, stdout } = promtool(...args)
      assert.strictEqual(status, 0, `${stdout}${stderr}`)
    }
  }, 60_000)
}
