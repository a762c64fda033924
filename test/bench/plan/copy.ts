/** What reading and storing rows costs without any checks: `copy.ts FILE DATABASE_URL` parses a CSV file with csv-parse and copies its rows into a table. */
import { parse } from "csv-parse"
import { createReadStream } from "node:fs"
import { pipeline } from "node:stream/promises"
import pg from "pg"
import { from } from "pg-copy-streams"

const [file, databaseUrl] = process.argv.slice(2) as [string, string]
const client = new pg.Client({ connectionString: databaseUrl })
await client.connect()
await client.query("create table if not exists copied (customer_id text, billing_period text, amount text, currency text, stripe_customer_id text, payment_method text)")
await pipeline(
  createReadStream(file),
  parse({ from_line: 2 }),
  async function*(records: AsyncIterable<ReadonlyArray<string>>) {
    let lines: Array<string> = []
    for await (const record of records) {
      lines.push(record.join("\t"))
      if (lines.length < 1000) continue
      yield `${lines.join("\n")}\n`
      lines = []
    }
    if (lines.length > 0) yield `${lines.join("\n")}\n`
  },
  client.query(from("copy copied from stdin"))
)
await client.end()
