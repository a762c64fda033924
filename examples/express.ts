import { Purser } from "@purser/purser"
import express, { type ErrorRequestHandler } from "express"
import type { AddressInfo } from "node:net"
import { answerCharge } from "./chargeAnswer.ts"

const purser = await Purser.make() // PURSER_DATABASE_URL, PURSER_STRIPE_KEY and friends from the environment
const app = express()

// Stripe signs the bytes as they came: this route stands before every parser.
app.post("/webhooks/stripe", express.raw({ type: () => true }), async (request, response) => {
  const headers = new Headers({ "stripe-signature": request.get("stripe-signature") ?? "" })
  const answer = await purser.webhooks(new Request("http://purser/webhooks", { method: "POST", headers, body: new Uint8Array(request.body) }))
  response.status(answer.status).send(await answer.text())
})

app.use(express.json({ limit: "10mb" }))

app.post("/charges", async (request, response) => {
  const { body, status } = await answerCharge(purser, request.body)
  response.status(status).json(body)
})

// A billing run, with its progress as lines of JSON for as long as it takes; the same name again shows the same run.
app.post("/runs/:name", async (request, response) => {
  const started = await purser.results.run({ name: request.params.name, rows: request.body })
  if (started._tag === "Failure") {
    response.status(400).json({ error: started.error.message })
    return
  }
  response.type("application/x-ndjson")
  for await (const { counts, state } of started.value) response.write(`${JSON.stringify({ state, ...counts })}\n`)
  response.end()
})

// A body that is no JSON, and whatever else goes wrong on the way, is told in JSON too.
const failed: ErrorRequestHandler = (error: { readonly status?: number; readonly message?: string }, _request, response, _next) => {
  if (response.headersSent) return void response.destroy()
  const status = error.status ?? 500
  response.status(status).json({ error: status < 500 ? error.message : "it failed inside" })
}
app.use(failed)

const server = app.listen(Number(process.env["PORT"] ?? 3000), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
// Nothing new is taken; charges that are under way are finished and answered, and runs go on at the next start.
process.once("SIGTERM", () => {
  server.close()
  void purser.close()
})
