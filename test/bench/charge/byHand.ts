/**
 * What a good engineer writes by hand for this one case: a row before the call, the answer after it, on `pg`. `single`
 * makes a statement for each, `batched` joins what is ready into one of arrays, as soon as the one before has returned.
 * Neither has a lease, a cap or a trail, and a row whose worker died stays as it is.
 */
import pg from "pg"
import { eachOf, type Job, makePost, type Program, type Setting } from "./jobs.ts"

const table = `create table if not exists by_hand (charge_key text primary key, customer_id text not null, amount_minor bigint not null,
  state text not null default 'claimed', charge_id text, created_at timestamptz not null default now(), settled_at timestamptz)`

const opened = async ({ databaseUrl }: Setting) => {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 10 })
  await pool.query(table)
  return pool
}
const keyOf = ({ customerId }: Job) => `${customerId}:2026-07`

export const single: Program = {
  name: "by hand, single rows",
  open: async (setting) => {
    const pool = await opened(setting)
    const { close, post } = makePost(setting)
    const charge = async (job: Job) => {
      const key = keyOf(job)
      const { rowCount } = await pool.query({
        name: "claim",
        text: "insert into by_hand (charge_key, customer_id, amount_minor) values ($1, $2, $3) on conflict do nothing",
        values: [key, job.customerId, job.amountMinor]
      })
      if (rowCount !== 1) return
      const id = await post(key, job)
      await pool.query({ name: "settle", text: "update by_hand set state = 'succeeded', charge_id = $2, settled_at = now() where charge_key = $1", values: [key, id] })
    }
    return { charge: (jobs) => eachOf(jobs, setting, charge), close: async () => void await Promise.all([pool.end(), close()]) }
  }
}

/** Calls of many, answered by one statement; the next leaves when it is back. */
const grouped = <I, A>(execute: (inputs: ReadonlyArray<I>) => Promise<ReadonlyArray<A>>) => {
  let waiting: Array<{ readonly input: I; readonly resolve: (answer: A) => void; readonly reject: (error: unknown) => void }> = []
  let busy = false
  const turn = async () => {
    busy = true
    while (waiting.length > 0) {
      const taken = waiting.splice(0, 512)
      await execute(taken.map(({ input }) => input)).then(
        (answers) => taken.forEach(({ resolve }, index) => resolve(answers[index]!)),
        (error) => taken.forEach(({ reject }) => reject(error))
      )
    }
    busy = false
  }
  return (input: I) =>
    new Promise<A>((resolve, reject) => {
      waiting.push({ input, resolve, reject })
      if (!busy) {
        busy = true
        setImmediate(turn)
      }
    })
}

export const batched: Program = {
  name: "by hand, batched",
  open: async (setting) => {
    const pool = await opened(setting)
    const { close, post } = makePost(setting)
    const claim = grouped(async (jobs: ReadonlyArray<Job>) => {
      const { rows } = await pool.query<{ readonly charge_key: string }>({
        name: "claim",
        text: `insert into by_hand (charge_key, customer_id, amount_minor) select * from unnest($1::text[], $2::text[], $3::bigint[])
          on conflict do nothing returning charge_key`,
        values: [jobs.map(keyOf), jobs.map((job) => job.customerId), jobs.map((job) => job.amountMinor)]
      })
      const won = new Set(rows.map((row) => row.charge_key))
      return jobs.map((job) => won.delete(keyOf(job)))
    })
    const settle = grouped(async (answers: ReadonlyArray<{ readonly key: string; readonly id: string }>) => {
      await pool.query({
        name: "settle",
        text: `update by_hand b set state = 'succeeded', charge_id = i.id, settled_at = now()
          from unnest($1::text[], $2::text[]) as i(key, id) where b.charge_key = i.key`,
        values: [answers.map(({ key }) => key), answers.map(({ id }) => id)]
      })
      return answers.map(() => undefined)
    })
    const charge = async (job: Job) => {
      if (!(await claim(job))) return
      const key = keyOf(job)
      await settle({ key, id: await post(key, job) })
    }
    return { charge: (jobs) => eachOf(jobs, setting, charge), close: async () => void await Promise.all([pool.end(), close()]) }
  }
}
