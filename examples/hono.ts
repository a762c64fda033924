import { serve } from "@hono/node-server"
import { Purser } from "@purser/purser"
import { Hono } from "hono"
import { stream } from "hono/streaming"
import { answerCharge } from "./chargeAnswer.ts"

const purser = await Purser.make() // PURSER_DATABASE_URL, PURSER_STRIPE_KEY and friends from the environment
const app = new Hono()

app.post("/webhooks/stripe", (context) => purser.webhooks(context.req.raw))

app.post("/charges", async (context) => {
  const { body, status } = await answerCharge(purser, await context.req.json())
  return Response.json(body, { status })
})

// A billing run, with its progress as lines of JSON for as long as it takes; the same name again shows the same run.
app.post("/runs/:name", async (context) => {
  const started = await purser.results.run({ name: context.req.param("name"), rows: await context.req.json() })
  if (started._tag === "Failure") return Response.json({ error: started.error.message }, { status: 400 })
  context.header("content-type", "application/x-ndjson")
  return stream(context, async (lines) => {
    for await (const { counts, state } of started.value) await lines.write(`${JSON.stringify({ state, ...counts })}\n`)
  })
})

// A body that is no JSON, and whatever else goes wrong on the way, is told in JSON too.
app.onError((error) => {
  const isTheirs = error instanceof SyntaxError
  return Response.json({ error: isTheirs ? error.message : "it failed inside" }, { status: isTheirs ? 400 : 500 })
})

const server = serve({ fetch: app.fetch, port: Number(process.env["PORT"] ?? 3000), hostname: "127.0.0.1" }, ({ port }) => {
  console.log(`listening on http://127.0.0.1:${port}`)
})
// Nothing new is taken; charges that are under way are finished and answered, and runs go on at the next start.
process.once("SIGTERM", () => {
  server.close()
  void purser.close()
})
