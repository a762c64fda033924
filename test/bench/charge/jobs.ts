/** The jobs of the comparison, and the one call that each of them makes. */
import { setTimeout } from "node:timers/promises"
import { Pool } from "undici"

/** One charge. */
export interface Job {
  readonly customerId: string
  readonly amountMinor: number
}

/** What a program is given. */
export interface Setting {
  readonly databaseUrl: string
  readonly postUrl: string
  /** Jobs under way at once. */
  readonly inFlight: number
  /** Calls under way at once, where they are fewer than the jobs. */
  readonly calls?: number
  /** Between the first job of one loop and of the next, in ms; together (0). */
  readonly apartMs?: number
  /** Makes the ids of this run's jobs its own. */
  readonly run: string
}

/** What a database has done since it was made. */
export interface Counts {
  readonly transactions: number
  readonly fsyncs: number
  readonly walBytes: number
}

/** A program that is ready to take jobs. */
export interface Ready {
  /** Ends when each job has been charged, durably. */
  readonly charge: (jobs: ReadonlyArray<Job>) => Promise<void>
  /** Of a database of its own. */
  readonly counts?: () => Promise<Counts>
  readonly close: () => Promise<void>
}

/** One way to charge. */
export interface Program {
  readonly name: string
  readonly open: (setting: Setting) => Promise<Ready>
}

/** Jobs that no run has had before. */
export const jobsOf = (run: string, count: number): ReadonlyArray<Job> =>
  Array.from({ length: count }, (_, index) => ({ customerId: `cust_${run}_${index}`, amountMinor: 1000 + index % 9000 }))

/** As many connections as calls under way; a call waits for one. */
export const makePost = ({ calls, inFlight, postUrl }: Setting) => {
  const pool = new Pool(postUrl, { connections: calls ?? inFlight, pipelining: 1 })
  /** Answers the charge's id. */
  const post = async (idempotencyKey: string, { amountMinor, customerId }: Job): Promise<string> => {
    const { body, statusCode } = await pool.request({
      path: "/v1/charges",
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded", "idempotency-key": idempotencyKey },
      body: `amount=${amountMinor}&currency=usd&customer=${customerId}`
    })
    const { id } = await body.json() as { readonly id: string }
    if (statusCode !== 200) throw new Error(`status ${statusCode}`)
    return id
  }
  return { post, close: () => pool.close() }
}

/** Jobs by as many loops as may be under way. */
export const eachOf = async <J>(jobs: ReadonlyArray<J>, { apartMs = 0, inFlight }: Pick<Setting, "apartMs" | "inFlight">, charge: (job: J) => Promise<unknown>): Promise<void> => {
  let at = 0
  await Promise.all(Array.from({ length: Math.min(inFlight, jobs.length) }, async (_, loop) => {
    if (apartMs > 0) await setTimeout(loop * apartMs)
    while (at < jobs.length) await charge(jobs[at++]!)
  }))
}
