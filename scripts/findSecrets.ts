/**
 * Looks in files for the keys that tests plant: `findSecrets.ts FILE …`. None of them may be in anything that a test run writes, be it the output
 * of a process, a failure or the report. Ends with 1 and the keys' names when there is one; a key itself is not repeated.
 */
import { readFileSync } from "node:fs"

/** Each long enough to be found by itself. */
const planted: Readonly<Record<string, string>> = {
  "Stripe's key of the end-to-end tests": "sk_test_plantedstripe0123456789",
  "the webhook's secret of the end-to-end tests": "whsec_plantedwebhook",
  "the collector's token of the end-to-end tests": "planted-collector-token",
  "Stripe's key of the gateway's tests": "rk_test_51HushHushVerySecret",
  "Stripe's key of the fuzzed answers": "rk_test_51FuzzFuzzVerySecret",
  "the webhook's secret of the fuzzed calls": "whsec_fuzz_secret_of_the_endpoint",
  "a client secret of an intent": "pi_1_secret_Hush"
}

const files = process.argv.slice(2)
if (files.length === 0) {
  console.error("which files?")
  process.exit(2)
}
const found = files.flatMap((file) => {
  const text = readFileSync(file, "utf8")
  return Object.entries(planted).filter(([, secret]) => text.includes(secret)).map(([name]) => `${file} holds ${name}`)
})
for (const line of found) console.error(line)
process.exit(found.length === 0 ? 0 : 1)
