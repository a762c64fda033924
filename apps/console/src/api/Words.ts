/** The words that every part of the API speaks: texts of requests, keys, reasons, states. */
import { plainTextProblem } from "@purser/core/PlainText"
import { Schema } from "effect"

/** A text of an answer, or nothing. */
export const NullText = Schema.NullOr(Schema.String)

/** A moment of an answer in milliseconds of the Unix epoch, or nothing. */
export const NullTime = Schema.NullOr(Schema.Finite)

const whole = Schema.makeFilter((text: string) => !text.includes("\0") || "a text cannot hold the character NUL")

/** What is shown on terminals and pages of others. */
const plain = Schema.makeFilter((text: string) => {
  const problem = plainTextProblem(text)
  return problem === undefined || `a text for the record ${problem}`
})

/** A text of a request. No store keeps a NUL. */
export const Text = Schema.String.check(whole)

/** A text of a request that says something. */
export const Name = Schema.NonEmptyString.check(whole)

/** 32 lower-case hex digits. */
export const Key = Schema.String.check(Schema.isPattern(/^[0-9a-f]{32}$/, { message: "a charge key is 32 lower-case hex digits" }))

/** Why somebody acts; kept on the trail, and never empty. */
export const Reason = Schema.Trim.check(Schema.isBetweenLength(3, 500, { message: "a reason is needed, of 3 to 500 characters" }), plain)

/** Who signs in. */
export const Person = Schema.Trim.check(Schema.isBetweenLength(1, 80), plain)

/** Where a charge stands. */
export const State = Schema.Literals(["planned", "claimed", "attached", "processing", "requires_action", "succeeded", "declined", "rejected", "canceled"])
export type State = typeof State.Type

/** States of a row of a run. */
export const RowState = Schema.Literals([...State.literals, "conflict", "quarantined", "staged"])
export type RowState = typeof RowState.Type
