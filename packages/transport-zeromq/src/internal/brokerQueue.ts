/** Requests that wait for a worker: first come, first served, but what a lost worker had goes before all. */

/** A request in a broker. */
export interface BrokerRequest<Client, Body> {
  readonly token: string
  readonly service: string
  readonly client: Client
  readonly body: Body
  readonly bytes: number
  /** When its sender has given up. */
  readonly expiresAtMs: number
  /** How often it was given to a worker. */
  deliveries: number
}

/** The waiting requests of one service. */
export interface BrokerQueue<Request> {
  readonly size: () => number
  readonly add: (request: Request) => void
  /** Puts back what was taken, in front. */
  readonly giveBack: (requests: ReadonlyArray<Request>) => void
  readonly take: () => Request | undefined
  readonly forEach: (visit: (request: Request) => void) => void
  /** Removes what does not pass, and gives it. */
  readonly remove: (drop: (request: Request) => boolean) => ReadonlyArray<Request>
}

/** Makes an empty queue. */
export const makeBrokerQueue = <Request>(): BrokerQueue<Request> => {
  let items: Array<Request> = []
  let head = 0
  return {
    size: () => items.length - head,
    add: (request) => void items.push(request),
    giveBack: (requests) => {
      items = [...requests, ...items.slice(head)]
      head = 0
    },
    take: () => {
      if (head === items.length) return undefined
      const request = items[head++]
      // What was taken is let go of in steps, so that taking costs the same however long the queue is.
      if (head > 1024 && head * 2 > items.length) {
        items = items.slice(head)
        head = 0
      }
      return request
    },
    forEach: (visit) => {
      for (let index = head; index < items.length; index++) visit(items[index]!)
    },
    remove: (drop) => {
      const removed: Array<Request> = []
      const kept: Array<Request> = []
      for (let index = head; index < items.length; index++) (drop(items[index]!) ? removed : kept).push(items[index]!)
      if (removed.length > 0) {
        items = kept
        head = 0
      }
      return removed
    }
  }
}
