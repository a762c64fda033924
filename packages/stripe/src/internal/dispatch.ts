/**
 * One gateway out of several: new charges go the chosen way, and an object that is in the ledger goes on with the gateway that
 * made it. So the choice may be changed while charges are open.
 */
import type { ChargeGateway } from "@purser/core"

type Gateway = ChargeGateway["Service"]

/** A gateway and the ids of its objects. */
export interface Branch {
  readonly gateway: Gateway
  readonly owns: (id: string) => boolean
}

/** The chosen gateway for what is new; for an id, its owner, and the chosen one where nobody knows it. */
export const dispatch = (chosen: Gateway, branches: ReadonlyArray<Branch>): Gateway => {
  const ownerOf = (id: string): Gateway => branches.find(({ owns }) => owns(id))?.gateway ?? chosen
  return {
    name: chosen.name,
    ...(chosen.probe === undefined ? {} : { probe: chosen.probe }),
    ...(chosen.unsent === undefined ? {} : { unsent: chosen.unsent }),
    create: chosen.create,
    find: chosen.find,
    defaultPaymentMethod: chosen.defaultPaymentMethod,
    nameOf: (chargeKey, payment) => {
      for (const { gateway } of branches) {
        const name = gateway.nameOf?.(chargeKey, payment)
        if (name !== undefined) return name
      }
      return undefined
    },
    isOneCall: (id) => ownerOf(id).isOneCall?.(id) ?? false,
    prepare: (order, id, keySuffix) => {
      const owner = ownerOf(id)
      return owner.prepare?.(order, id, keySuffix) ?? owner.retrieve(order, id)
    },
    retrieve: (order, id) => ownerOf(id).retrieve(order, id),
    confirm: (order, input) => ownerOf(input.id).confirm(order, input),
    cancel: (order, id) => ownerOf(id).cancel(order, id)
  }
}
