/** What the API refuses with. Each has a message for a person and a status for a program. */
import { Schema } from "effect"

/** Nobody is signed in, or the token is wrong. */
export class SignInNeeded extends Schema.TaggedError<SignInNeeded>("@purser/console/SignInNeeded")("SignInNeeded", {
  message: Schema.String
}, { httpApiStatus: 401 }) {
  get isRetryable() {
    return false
  }
}

/** The role does not allow it, or the request did not come from this console's own page. */
export class NotAllowed extends Schema.TaggedError<NotAllowed>("@purser/console/NotAllowed")("NotAllowed", {
  message: Schema.String
}, { httpApiStatus: 403 }) {
  get isRetryable() {
    return false
  }
}

/** The request is not one that the API knows: a field is missing, or is not what it should be. Nothing was done. */
export class BadRequest extends Schema.TaggedError<BadRequest>("@purser/console/BadRequest")("BadRequest", {
  message: Schema.String
}, { httpApiStatus: 400 }) {
  get isRetryable() {
    return false
  }
}

/** There is no such thing. */
export class NotThere extends Schema.TaggedError<NotThere>("@purser/console/NotThere")("NotThere", {
  message: Schema.String
}, { httpApiStatus: 404 }) {
  get isRetryable() {
    return false
  }
}

/** The act does not fit how things stand; nothing was changed. */
export class ActRefused extends Schema.TaggedError<ActRefused>("@purser/console/ActRefused")("ActRefused", {
  message: Schema.String
}, { httpApiStatus: 409 }) {
  get isRetryable() {
    return false
  }
}

/** A store or the processor is away; of an act, what it did is not known. */
export class Away extends Schema.TaggedError<Away>("@purser/console/Away")("Away", {
  message: Schema.String
}, { httpApiStatus: 503 }) {
  get isRetryable() {
    return true
  }
}
