/**
 * Whether the fields of a request are as nearly all have them, without a schema. Of others nothing is said here: what is refused,
 * and what is rare, is the schema's. Period and currency are left to the reader: one takes them as they stand, and one in any spelling.
 */
import type { CheckedFields } from "../ChargeRequest.ts"
import { idProblem } from "./idProblem.ts"

/** Fields that nobody has checked, each under its name. */
export type Unchecked = { readonly [Key in keyof CheckedFields]?: unknown }

const isId = (value: unknown): value is string => typeof value === "string" && idProblem(value) === undefined

/** A first billing, and each of its fields as the schema wants it. */
export const areUsual = <Given extends Unchecked>(fields: Given): fields is Given & Omit<CheckedFields, "billingPeriod" | "currency"> => {
  const { allowFuture, amountMinor, customerId, item, namespace, paymentMethod, senderKey, stripeCustomerId } = fields
  return isId(customerId) && isId(stripeCustomerId) && isId(namespace)
    && (item === undefined || isId(item))
    && (paymentMethod === undefined || isId(paymentMethod))
    && Number.isSafeInteger(amountMinor) && Number(amountMinor) > 0
    && (senderKey === undefined || typeof senderKey === "string" && senderKey.length <= 255)
    && (allowFuture === undefined || allowFuture === true)
}
