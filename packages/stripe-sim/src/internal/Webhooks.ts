/**
 * The sender of webhooks: who gets an event, in which order, signed how.
 *
 * One delivery at a time goes to an endpoint, in the order of the events, so that a run can be repeated; what comes
 * out of order does so by a fault. Refuses to know sockets: a `Post` carries each delivery.
 */
import { createHmac } from "node:crypto"
import type { WebhookDelivery, WebhookFault, WebhookFaultAction } from "../Webhook.ts"
import type { WebhookRequest } from "../InProcess.ts"
import { type EventRecord, shape } from "./EventLog.ts"
import { isOfType } from "./events.ts"
import type { EndpointRecord } from "./records.ts"
import type { Timeline } from "./Timeline.ts"

/** Carries a request and tells the status of the answer, or null when there was none. */
export type Post = (request: WebhookRequest, done: (status: number | null) => void) => void

interface Job {
  readonly endpoint: EndpointRecord
  readonly event: EventRecord
  readonly attempt: number
  readonly actions: ReadonlyArray<WebhookFaultAction>
  /** Deliveries to this endpoint that go first. */
  behind: number
}

interface Lane {
  readonly ready: Array<Job>
  held: Array<Job>
  busy: boolean
}

interface Rule {
  readonly fault: WebhookFault
  seen: number
}

const retriesMs: ReadonlyArray<number> = [60_000, 30 * 60_000, 3 * 60 * 60_000]
const logLimit = 10_000

/** The header that proves a body, as Stripe makes it. */
export const signature = (secret: string, timestampS: number, body: string): string =>
  `t=${timestampS},v1=${createHmac("sha256", secret).update(`${timestampS}.${body}`).digest("hex")}`

/** All deliveries of a simulator. */
export class Webhooks {
  post: Post = (_request, done) => done(null)
  private readonly timeline: Timeline
  private readonly lanes = new Map<string, Lane>()
  private rules: Array<Rule> = []
  private sent: Array<WebhookDelivery> = []
  private running = 0
  private idle: Array<() => void> = []

  constructor(timeline: Timeline) {
    this.timeline = timeline
  }

  addFault(fault: WebhookFault): void {
    this.rules.push({ fault, seen: 0 })
  }
  clearFaults(): void {
    this.rules = []
  }
  /** What was tried, oldest first. */
  deliveries(): ReadonlyArray<WebhookDelivery> {
    return this.sent.slice(-logLimit)
  }

  /** Takes an event to be sent to an endpoint; `twin` makes another event of the same change. */
  deliver(endpoint: EndpointRecord, event: EventRecord, twin: () => EventRecord): void {
    const actions = this.faultsFor(endpoint, event)
    if (actions.some(({ kind }) => kind === "drop")) return
    const job: Job = {
      endpoint,
      event,
      attempt: 1,
      actions,
      behind: actions.reduce((most, action) => action.kind === "reorder" ? Math.max(most, action.behind) : most, 0)
    }
    const lateMs = actions.reduce((sum, action) => action.kind === "late" ? sum + action.delayMs : sum, 0)
    if (lateMs > 0) this.timeline.after(lateMs, () => this.enqueue(job))
    else this.enqueue(job)
    for (const action of actions) {
      if (action.kind === "repeat") for (let n = 0; n < action.times; n++) this.enqueue({ ...job, behind: 0 })
      if (action.kind === "twin") this.enqueue({ ...job, event: twin(), behind: 0 })
    }
  }

  /** Sends what waits for others to go first. */
  release(): void {
    for (const lane of this.lanes.values()) {
      lane.ready.push(...lane.held)
      lane.held = []
      this.next(lane)
    }
  }

  /** Calls back once nothing is being sent; what is late or to be tried again is not waited for. */
  whenIdle(done: () => void): void {
    if (this.running === 0) done()
    else this.idle.push(done)
  }

  private faultsFor(endpoint: EndpointRecord, event: EventRecord): ReadonlyArray<WebhookFaultAction> {
    return this.rules.filter((rule) => {
      const { nth = 1, times = 1, type, url } = rule.fault.match ?? {}
      if (type !== undefined && !isOfType(event.type, type)) return false
      if (url !== undefined && url !== endpoint.url) return false
      rule.seen++
      return rule.seen >= nth && (times === "always" || rule.seen < nth + times)
    }).map(({ fault }) => fault.action)
  }

  private enqueue(job: Job): void {
    const lane = this.lanes.get(job.endpoint.id) ?? { ready: [], held: [], busy: false }
    this.lanes.set(job.endpoint.id, lane)
    if (job.behind > 0) {
      lane.held.push(job)
      return
    }
    lane.ready.push(job)
    this.next(lane)
  }

  private next(lane: Lane): void {
    if (lane.busy) return
    const job = lane.ready.shift()
    if (job === undefined) return
    lane.busy = true
    this.running++
    const atMs = this.timeline.nowMs
    this.post(this.request(job, atMs), (status) => {
      lane.busy = false
      this.note(job, atMs, status)
      for (const held of lane.held) held.behind--
      lane.ready.push(...lane.held.filter(({ behind }) => behind <= 0))
      lane.held = lane.held.filter(({ behind }) => behind > 0)
      this.running--
      this.next(lane)
      if (this.running > 0) return
      const waiting = this.idle
      this.idle = []
      for (const done of waiting) done()
    })
  }

  private note(job: Job, atMs: number, status: number | null): void {
    this.sent.push({
      eventId: job.event.id,
      type: job.event.type,
      url: job.endpoint.url,
      atMs,
      attempt: job.attempt,
      status,
      faults: job.actions.map(({ kind }) => kind)
    })
    if (this.sent.length >= logLimit * 2) this.sent = this.sent.slice(-logLimit)
    if (status !== null && status >= 200 && status < 300) {
      job.event.pendingWebhooks = Math.max(0, job.event.pendingWebhooks - 1)
      return
    }
    const delayMs = retriesMs[job.attempt - 1]
    if (delayMs === undefined) return
    // What went wrong on the way goes wrong once.
    this.timeline.after(delayMs, () => this.enqueue({ ...job, attempt: job.attempt + 1, actions: [], behind: 0 }))
  }

  private request({ actions, endpoint, event }: Job, atMs: number): WebhookRequest {
    const body = JSON.stringify(shape(event), null, 2)
    const offsetMs = actions.reduce((sum, action) => action.kind === "timestamp" ? sum + action.offsetMs : sum, 0)
    const timestampS = Math.floor((atMs + offsetMs) / 1000)
    const secret = actions.some(({ kind }) => kind === "wrongSignature") ? `${endpoint.secret}_other` : endpoint.secret
    const tampered = actions.some(({ kind }) => kind === "tampered")
    return {
      url: endpoint.url,
      headers: {
        "content-type": "application/json; charset=utf-8",
        "user-agent": "Stripe/1.0 (+https://stripe.com/docs/webhooks)",
        "stripe-signature": signature(secret, timestampS, body)
      },
      body: tampered ? body.replace('"livemode": false', '"livemode": true') : body
    }
  }
}
