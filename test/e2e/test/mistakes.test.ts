/** What operators get wrong, and what must never follow from it: a lost bill, a silent charge, a run that never ends. */
import { assert, describe, it } from "@effect/vitest"
import { StripeSim } from "@purser/stripe-sim"
import { Effect, type Scope } from "effect"
import { execFileSync } from "node:child_process"
import { lstatSync, readdirSync, readFileSync, symlinkSync } from "node:fs"
import { readFile, writeFile } from "node:fs/promises"
import { csv, type Desk, desk, tens } from "../src/Desk.ts"

const live = (title: string, test: (at: Desk) => Effect.Effect<void, unknown, Scope.Scope>) =>
  it.live(title, () => Effect.scoped(Effect.flatMap(desk(), test)).pipe(Effect.provide(StripeSim.layer())), 120_000)

describe("mistakes", () => {
  live("a report never takes the place of the bill, and is known to be writable before anything is charged", (at) =>
    Effect.gen(function*() {
      const text = csv(...tens(3))
      const bill = at.write("bill.csv", text)
      for (const report of ["bill.csv", "./bill.csv", "absent/report.csv", "."]) {
        const refused = yield* at.purser(["run", "bill.csv", "--json", "--report", report])
        assert.strictEqual(refused.code, 1, refused.stderr)
        assert.include(refused.stderr, "--report")
      }
      assert.strictEqual(readFileSync(bill, "utf8"), text)
      assert.strictEqual(yield* at.calls, 0)
    }))

  live("a bill that is named like an unfinished report is read, charged and left", (at) =>
    Effect.gen(function*() {
      const text = csv(...tens(2))
      at.write("july.csv.partial", text)
      const run = yield* at.purser(["run", "july.csv.partial", "--format", "csv", "--json", "--report", "july.csv"])
      assert.deepStrictEqual([run.code, run.json?.["succeeded"]], [0, 2], run.stderr)
      assert.strictEqual(readFileSync(at.pathOf("july.csv.partial"), "utf8"), text)
      assert.deepStrictEqual(at.report("july.csv").map(({ state }) => state), ["succeeded", "succeeded"])
      assert.deepStrictEqual(readdirSync(at.folder).filter((name) => name.startsWith("july")).toSorted(), ["july.csv", "july.csv.partial"])
    }))

  live("bills come through pipes and standard input, and a report goes into a pipe or through a link", (at) =>
    Effect.gen(function*() {
      const text = csv(...tens(2))
      execFileSync("mkfifo", [at.pathOf("bills"), at.pathOf("report")])
      symlinkSync("later.csv", at.pathOf("link"))
      const reading = readFile(at.pathOf("report"), "utf8")
      const run = yield* at.start(["run", "bills", "--json", "--report", "report"])
      yield* run.meanwhile(Effect.promise(() => writeFile(at.pathOf("bills"), text)))
      const ended = yield* run.ended
      assert.deepStrictEqual([ended.code, ended.json?.["succeeded"]], [0, 2], ended.stderr)
      assert.strictEqual((yield* Effect.promise(() => reading)).split("\n").length, 4)
      assert.isTrue(lstatSync(at.pathOf("report")).isFIFO())
      // A socket here, as under every program that starts others by Node.
      const again = yield* at.purser(["run", "/dev/stdin", "--json", "--report", "link"], {}, text)
      assert.deepStrictEqual([again.code, again.json?.["alreadySettled"]], [0, 2], again.stderr)
      assert.isTrue(lstatSync(at.pathOf("link")).isSymbolicLink())
      assert.strictEqual(at.report("later.csv").length, 2)
    }))

  live("nobody answers: the run ends when its patience does, says so, and goes on later", (at) =>
    Effect.gen(function*() {
      at.write("bill.csv", csv(...tens(300)))
      const alone = yield* at.purser(["run", "bill.csv", "--json", "--workers", "0", "--concurrency", "4"], {
        PURSER_ENDPOINT: `ipc://${at.pathOf("nobody")}`,
        PURSER_REQUEST_TIMEOUT: "200 millis",
        PURSER_REQUEST_RETRIES: "0",
        PURSER_RUN_PATIENCE: "1 second"
      })
      assert.strictEqual(alone.code, 2, alone.stderr)
      assert.strictEqual(alone.json?.["unresolved"], 300)
      assert.include(alone.stderr, "gave no reply")
      assert.strictEqual((yield* at.purser(["run", "bill.csv", "--json"])).code, 0)
    }))

  live("a worker serves the transport that its command line names, whatever the environment says", (at) =>
    Effect.gen(function*() {
      at.write("bill.csv", csv(...tens(3)))
      const endpoint = `ipc://${at.pathOf("worker")}`
      yield* at.start(["worker", "--transport", "req-rep", "--endpoint", endpoint], { PURSER_TRANSPORT: "memory" })
      const paid = yield* at.purser(["run", "bill.csv", "--json", "--workers", "0"], { PURSER_ENDPOINT: endpoint, PURSER_RUN_PATIENCE: "15 seconds" })
      assert.deepStrictEqual([paid.code, paid.json?.["succeeded"]], [0, 3], paid.stderr)
    }))

  live("purser retry takes one rejected charge up again, with a reason, and no other", (at) =>
    Effect.gen(function*() {
      at.write("bill.csv", csv(...tens(2)))
      const first = yield* at.purser(["run", "bill.csv", "--json", "--expected-total", "10.00", "--over-cap", "fits", "--concurrency", "1"])
      assert.deepStrictEqual([first.code, first.json?.["succeeded"], first.json?.["rejected"]], [2, 1, 1], first.stderr)
      const args = ["retry", "c1", "2026-07", "--item", "base", "--reason", "cap raised"]
      assert.strictEqual((yield* at.purser([...args, "--dry-run"])).code, 0)
      const full = yield* at.purser(args)
      assert.strictEqual(full.code, 1, "the cap is as it was")
      assert.include(full.stderr, "stays rejected")
      yield* at.purser(["cap", "raise", "2026-07", "--currency", "usd", "--expected-total", "20.00", "--reason", "two customers"])
      const retried = yield* at.purser(args)
      assert.deepStrictEqual([retried.code, retried.stdout.trim()], [0, "Succeeded"], retried.stderr)
      const again = yield* at.purser(args)
      assert.strictEqual(again.code, 1)
      assert.include(again.stderr, "the charge is succeeded")
      assert.include((yield* at.purser(["retry", "nobody", "2026-07", "--reason", "x"])).stderr, "no such charge")
      assert.isTrue((yield* at.paid).every((entry) => entry.payments === 1))
    }))

  live("a setting out of range is refused by its name", (at) =>
    Effect.gen(function*() {
      at.write("bill.csv", csv(...tens(1)))
      for (const [name, value] of [["PURSER_LOG_LEVEL", "bogus"], ["PURSER_RUN_PAGE", "0"], ["PURSER_GATEWAY_ATTEMPTS", "0"], ["PURSER_LEASE", "0 seconds"]] as const) {
        const refused = yield* at.purser(["run", "bill.csv", "--json"], { [name]: value })
        assert.strictEqual(refused.code, 1, name)
        assert.include(refused.stderr, name)
      }
      assert.strictEqual((yield* at.purser(["run", "bill.csv", "--workers", "65"])).code, 1)
      assert.strictEqual((yield* at.purser(["sim", "--port", "99999"])).code, 1)
      assert.strictEqual(yield* at.calls, 0)
    }))
})
