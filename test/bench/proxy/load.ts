/** Calls through a proxy: one, many at a steady rate, and as many as come back. */
import { Pool } from "undici"

let key = 0

const once = (pool: Pool, vaultKey: string) =>
  new Promise<number>((resolve, reject) => {
    const startedMs = performance.now()
    let status = 0
    const n = key += 1
    pool.dispatch({
      method: "POST",
      path: "/v1/charges",
      headers: { authorization: `Bearer ${vaultKey}`, "idempotency-key": `bench-${process.pid}-${n}`, "content-type": "application/x-www-form-urlencoded" },
      body: `amount=100&currency=usd&customer=cus_${n}&metadata[customer_id]=c${n}`
    }, {
      onRequestStart: () => {},
      onResponseStart: (_, code) => {
        status = code
      },
      onResponseData: () => {},
      onResponseEnd: () => status === 200 ? resolve(performance.now() - startedMs) : reject(new Error(`status ${status}`)),
      onResponseError: (_, error) => reject(error)
    })
  })

/** A proxy that takes calls. */
export interface Target {
  readonly pool: Pool
  readonly vaultKey: string
}

export const targetAt = (url: string, vaultKey: string): Target => ({ pool: new Pool(url, { connections: 128 }), vaultKey })

/** Opens connections and lets the compilers see the code. */
export const warm = async ({ pool, vaultKey }: Target): Promise<void> => {
  for (let n = 0; n < 10; n++) await Promise.all(Array.from({ length: 100 }, () => once(pool, vaultKey)))
}

/** Latencies at a steady rate: a call starts when it is due, whether or not earlier ones are back. */
export const steady = async ({ pool, vaultKey }: Target, seconds: number, perSecond: number): Promise<ReadonlyArray<number>> => {
  const calls: Array<Promise<number>> = []
  const beganMs = performance.now()
  while (performance.now() - beganMs < seconds * 1000) {
    const due = Math.floor((performance.now() - beganMs) * perSecond / 1000)
    while (calls.length <= due) calls.push(once(pool, vaultKey))
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  return Promise.all(calls)
}

/** Calls and seconds with a fixed number under way. */
export const full = async ({ pool, vaultKey }: Target, seconds: number, under: number): Promise<{ readonly calls: number; readonly tookMs: number }> => {
  const beganMs = performance.now()
  let calls = 0
  await Promise.all(Array.from({ length: under }, async () => {
    while (performance.now() - beganMs < seconds * 1000) {
      await once(pool, vaultKey)
      calls += 1
    }
  }))
  return { calls, tookMs: performance.now() - beganMs }
}
