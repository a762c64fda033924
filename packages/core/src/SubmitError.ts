/** Every trouble that a submitted charge can come back with, in the form in which it crosses a wire. */
import { Schema } from "effect"
import { ChargeError } from "./ChargeError.ts"
import { LedgerError } from "./LedgerError.ts"
import { SpendCapError } from "./SpendCapError.ts"
import { TransportError } from "./TransportError.ts"

/** Errors of the worker's side; they cross the wire as they are. */
export const PipelineError = Schema.Union([LedgerError, ChargeError, SpendCapError])
export type PipelineError = typeof PipelineError.Type

/** Errors of a submission: the worker's, or the transport's. */
export const SubmitError = Schema.Union([LedgerError, ChargeError, SpendCapError, TransportError])
export type SubmitError = typeof SubmitError.Type
