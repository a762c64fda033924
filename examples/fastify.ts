import { Purser } from "@purser/purser"
import fastify from "fastify"
import { Readable } from "node:stream"
import { answerCharge } from "./chargeAnswer.ts"

const purser = await Purser.make() // PURSER_DATABASE_URL, PURSER_STRIPE_KEY and friends from the environment
const app = fastify({ bodyLimit: 10_485_760 })

// Stripe signs the bytes as they came: in this part of the server nobody parses them.
app.register(async (raw) => {
  raw.removeAllContentTypeParsers()
  raw.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body))
  raw.post<{ Body: Buffer }>("/webhooks/stripe", async (request, reply) => {
    const headers = new Headers({ "stripe-signature": String(request.headers["stripe-signature"] ?? "") })
    const answer = await purser.webhooks(new Request("http://purser/webhooks", { method: "POST", headers, body: new Uint8Array(request.body) }))
    return reply.status(answer.status).send(await answer.text())
  })
})

app.post("/charges", async (request, reply) => {
  const { body, status } = await answerCharge(purser, request.body)
  return reply.status(status).send(body)
})

// A billing run, with its progress as lines of JSON for as long as it takes; the same name again shows the same run.
app.post<{ Params: { name: string }; Body: Parameters<typeof purser.run>[0]["rows"] }>("/runs/:name", async (request, reply) => {
  const started = await purser.results.run({ name: request.params.name, rows: request.body })
  if (started._tag === "Failure") return reply.status(400).send({ error: started.error.message })
  const run = started.value
  const lines = async function*() {
    for await (const { counts, state } of run) yield `${JSON.stringify({ state, ...counts })}\n`
  }
  return reply.type("application/x-ndjson").send(Readable.from(lines()))
})

// A body that is no JSON, and whatever else goes wrong on the way, is told in JSON too.
app.setErrorHandler((error: { readonly statusCode?: number; readonly message: string }, _request, reply) => {
  const status = error.statusCode ?? 500
  return reply.status(status).send({ error: status < 500 ? error.message : "it failed inside" })
})

// Nothing new is taken; charges that are under way are finished and answered, and runs go on at the next start.
app.addHook("preClose", () => purser.close())
console.log(`listening on ${await app.listen({ port: Number(process.env["PORT"] ?? 3000), host: "127.0.0.1" })}`)
process.once("SIGTERM", () => void app.close())
