/**
 * Forms and request lines at the spend-cap proxy. What it counts must be what every other parser would charge: three of them are asked, the
 * third as lenient as those of web frameworks. A form that is refused charges nobody.
 */
import { assert, it } from "@effect/vitest"
import { readAdjustment, readForm } from "@purser/spend-cap-proxy/FormAmount"
import { canonicalPath, kindOf, movesMoney, routeOf } from "@purser/spend-cap-proxy/RoutePolicy"
import { Arbitrary, Effect, Exit, Result } from "effect"
import * as querystring from "node:querystring"
import { fuzz } from "../src/fuzz.ts"
import { between, mutated, noise, oneOf } from "../src/Mutation.ts"

/** All values that some parser could take for this parameter. */
const values = (text: string, name: string): ReadonlyArray<string> => {
  const strict = new URLSearchParams(text).getAll(name)
  const node = [querystring.parse(text)[name] ?? []].flat()
  // Splits at semicolons, ends names at a bracket, a dot or a zero byte, and cares neither for case nor for white space.
  const lenient = text.split(/[&;]/).flatMap((pair) => {
    const [key = "", ...value] = pair.split("=")
    const read = querystring.unescape(key.replaceAll("+", " ")).split(/[[\]\0]/).find((part) => part !== "") ?? ""
    return read.trim().toLowerCase() === name ? [querystring.unescape(value.join("=").replaceAll("+", " "))] : []
  })
  return [...new Set([...strict, ...node, ...lenient])]
}

const contentType = { "content-type": "application/x-www-form-urlencoded" }
const contexts = ["POST /v1/charges", "POST /v1/payment_intents", "POST /v1/payment_intents/pi_1/confirm", "POST /v1/refunds"].map((line) => {
  const [method, path] = line.split(" ") as [string, string]
  return { method, route: routeOf(method, path), headers: contentType }
})

const form = Arbitrary.map(
  Arbitrary.all({ amount: between(1, 99_999), currency: oneOf(["usd", "EUR"]), customer: oneOf(["cus_1", "cus_2"]), more: oneOf(["", "&confirm=true", "&metadata[order]=a%20b", "&expand[]=latest_charge", "&amount_details[tip][amount]=1"]) }),
  ({ amount, currency, customer, more }) => `amount=${amount}&currency=${currency}&customer=${customer}${more}`
)
const formWords = ["&amount=1", "&Amount=1", "&amount[]=1", "&amount%5B%5D=1", "&%61mount=1", "&amount%00=1", "&[amount]=1", "amount=1&", ";amount=1", "&ａmount=1", "&%EF%BD%81mount=1", "&customer=cus_9", "&customer[id]=cus_9", "&currency=jpy", "&amount_capturable=1", "%26amount%3D1", "+", "&+amount=1"]

const forms = mutated(form, formWords)

const formProperty = (reader: typeof readForm) => (bytes: Buffer) =>
  Effect.sync(() => {
    const text = bytes.toString("latin1")
    let taken = false
    for (const context of contexts) {
      const read = reader(bytes, context)
      if (Result.isFailure(read)) {
        assert.isTrue(read.failure.code !== "" && read.failure.message !== "")
        continue
      }
      taken = true
      const { amountMinor, currency, customer } = read.success
      const amounts = values(text, "amount")
      // A confirmation may not speak of an amount at all.
      assert.deepStrictEqual(amounts, amountMinor === null ? [] : [String(amountMinor)])
      assert.isTrue(context.route.kind === "confirm" ? amountMinor === null : Number.isSafeInteger(amountMinor) && amountMinor! > 0)
      assert.deepStrictEqual(values(text, "currency").map((value) => value.toLowerCase()), currency === null ? [] : [currency])
      assert.deepStrictEqual([...values(text, "customer"), ...values(text, "customer_account")].filter((value) => value !== ""), customer === null ? [] : [customer])
    }
    const adjustment = readAdjustment(bytes, contexts[2]!)
    if (Result.isSuccess(adjustment)) for (const name of ["amount", "currency", "customer", "confirm"]) assert.deepStrictEqual(values(text, name).filter((value) => value !== ""), [], name)
    return taken
  })

fuzz(it, "form", { runs: 400, inputs: { "a form, changed": forms, "noise": noise }, property: formProperty(readForm) })

// The judge is judged: readers as one writes them in a hurry are found out.
const first = (name: string) => (text: string) => new URLSearchParams(text).get(name)
const last = (name: string) => (text: string) => new URLSearchParams(text).getAll(name).at(-1) ?? null
for (const [title, of] of [["the first amount", first], ["the last amount", last]] as const) {
  it.effect(`a reader that takes ${title} is found`, Effect.fnUntraced(function*() {
    // Right in all but the amount, of which the form may have several.
    const naive: typeof readForm = (bytes, context) =>
      Result.map(readForm(Buffer.from(bytes.toString().replaceAll(/(?<=^|&)amount=\d*&(?=.*amount=)|(?<=amount=.*)&amount=\d*/g, "")), context), (terms) => ({
        ...terms, amountMinor: terms.amountMinor === null ? null : Number(of("amount")(bytes.toString()))
      }))
    const result = yield* Arbitrary.checkEffect(forms, (bytes) => Effect.map(Effect.exit(formProperty(naive)(bytes)), Exit.isSuccess), { runs: 2000, seed: 1 })
    assert.strictEqual(result._tag, "Falsified")
  }))
}

const target = oneOf([
  "/v1/charges", "/v1/payment_intents", "/v1/payment_intents/pi_1", "/v1/payment_intents/pi_1/confirm", "/v1/payment_intents/pi_1/capture", "/v1/refunds", "/v1/customers/cus_1",
  "/v1/setup_intents/seti_1/confirm", "/v1/invoices/in_1/pay", "/v1/transfers", "/v1/files?limit=1"
])
const targetWords = ["..", "%2F", "%2f..%2f", "\\", "%5c", "/./", "%2e", "/v1", "/v1/charges", "?", "#", ";", ":", "@", "http://evil", "//evil", "V1", "%c0%af", "/payment_methods/../charges"]
/** Paths of writes that move no money; everything else is counted or closed. */
const harmless = /^\/v1\/(?:customers|files|setup_intents(?:\/[^/]+\/(?:confirm|cancel))?|payment_methods(?:\/[^/]+(?:\/(?:attach|detach))?)?)$/

fuzz(it, "target", {
  runs: 400,
  inputs: { "a request line, changed": mutated(target, targetWords), "noise": noise },
  property: (bytes) =>
    Effect.sync(() => {
      const text = bytes.toString("latin1")
      let open = false
      for (const method of ["GET", "POST", "DELETE", "PUT", "post"]) {
        const route = routeOf(method, text)
        if (route.kind !== "closed") open = true
        // The kind is that of what is forwarded, by anybody's reading of the URL.
        const seen = new URL(route.path + route.query, "http://stripe.test")
        assert.strictEqual(seen.host, "stripe.test")
        assert.strictEqual(seen.pathname, route.path)
        assert.strictEqual(canonicalPath(route.path), route.path)
        assert.strictEqual(route.kind, kindOf(method, seen.pathname))
        if (route.kind === "plain") assert.isTrue(method === "POST" && harmless.test(seen.pathname), seen.pathname)
        if (route.kind === "read") assert.strictEqual(method, "GET")
        if (movesMoney(route.kind)) assert.match(seen.pathname, /^\/v1\/(?:charges|refunds|payment_intents(?:\/[^/]+\/confirm)?)$/)
      }
      return open
    })
})
