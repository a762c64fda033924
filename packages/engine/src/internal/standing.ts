/** What one run of a charge's steps knows of itself. */
import type { ChargeGateway, ChargeKey, ChargeRequest, ClaimedCharge, ClaimExtras, FaultHook, GatewayPayment } from "@purser/core"
import { Effect } from "effect"
import { forCharge } from "./gate.ts"
import type { HoldLease } from "./leaseKeeper.ts"

/** What the claim did beside: the room that it took, and the object that it named, which nobody has been asked to pay yet. */
export class Begun {
  readonly hasRoom: boolean
  readonly unsent: GatewayPayment | undefined

  constructor(hasRoom: boolean, unsent: GatewayPayment | undefined) {
    this.hasRoom = hasRoom
    this.unsent = unsent
  }
}
export const nothingBegun = new Begun(false, undefined)

/** The places that a charge passes in the act of its claim. */
export const passBegun = Effect.fnUntraced(function*(fault: FaultHook, chargeKey: ChargeKey, { hasRoom, unsent }: Begun) {
  yield* fault("after-claim", chargeKey)
  if (hasRoom) yield* fault("after-reserve", chargeKey)
  if (unsent === undefined) return
  for (const place of ["before-create", "after-create", "after-attach"] as const) yield* fault(place, chargeKey)
})

class Extras implements ClaimExtras {
  readonly room: boolean
  readonly object: { readonly id: string; readonly paymentMethod: string }

  constructor(room: boolean, id: string, paymentMethod: string) {
    this.room = room
    this.object = new NamedObject(id, paymentMethod)
  }
}

class NamedObject {
  readonly id: string
  readonly paymentMethod: string

  constructor(id: string, paymentMethod: string) {
    this.id = id
    this.paymentMethod = paymentMethod
  }
}

/** What a claim is asked to do beside. */
export const extrasOf = ({ paymentMethod }: ChargeRequest, room: boolean, unsent: GatewayPayment | undefined): ClaimExtras =>
  unsent === undefined || paymentMethod === undefined ? { room } : new Extras(room, unsent.id, paymentMethod)

/** One run of the steps. */
export class Standing {
  readonly charge: ClaimedCharge
  /** When its lease was asked for, by this process's clock. The lease may have begun then: an answer comes later, as that of a statement which waits for a lock. */
  readonly askedAtMs: number
  /** Whether it took the room of this attempt itself, and has held the lease since. */
  readonly hasRoom: boolean
  private readonly holdLease: HoldLease
  private readonly all: ChargeGateway["Service"]
  private made: ChargeGateway["Service"] | undefined

  constructor(charge: ClaimedCharge, askedAtMs: number, hasRoom: boolean, holdLease: HoldLease, all: ChargeGateway["Service"]) {
    this.charge = charge
    this.askedAtMs = askedAtMs
    this.hasRoom = hasRoom
    this.holdLease = holdLease
    this.all = all
  }

  /** Holds its lease during a wait. */
  hold<A, E>(wait: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return this.holdLease(this.charge)(wait)
  }

  /** The processor, with this charge's lease held during every call; made for those who make more than one. */
  get gateway(): ChargeGateway["Service"] {
    return this.made ??= forCharge(this.all, this.holdLease(this.charge))
  }

  /** The same run with room. */
  withRoom(): Standing {
    return this.hasRoom ? this : new Standing(this.charge, this.askedAtMs, true, this.holdLease, this.all)
  }

  /** No other can have taken the charge over yet. */
  isFresh(nowMs: number): boolean {
    return nowMs - this.askedAtMs < this.charge.leaseLeftMs / 2
  }
}
