/**
 * Who may call: any test or live shaped key, as a Bearer token or as the user of Basic authentication.
 *
 * Refuses keys that contain `INVALID` and everything that is no key. All keys open the same account.
 */
import { type Answer, fail } from "./answer.ts"

const refuse = (message: string): Answer => fail({ status: 401, saved: false, type: "invalid_request_error", message })

const keyOf = (authorization: string): string => {
  if (authorization.startsWith("Bearer ")) return authorization.slice(7).trim()
  if (!authorization.startsWith("Basic ")) return ""
  const [user = ""] = Buffer.from(authorization.slice(6), "base64").toString("utf8").split(":")
  return user
}

/** The 401 for this Authorization header, or undefined when it opens the account. */
export const refusalOf = (authorization: string | undefined): Answer | undefined => {
  if (authorization === undefined) {
    return refuse(
      "You did not provide an API key. You need to provide your API key in the Authorization header, using Bearer auth (e.g. 'Authorization: Bearer YOUR_SECRET_KEY'). See https://stripe.com/docs/api#authentication for details, or we can help at https://support.stripe.com/."
    )
  }
  const key = keyOf(authorization)
  return /^(sk|rk)_(test|live)_\w+$/.test(key) && !key.includes("INVALID")
    ? undefined
    : refuse(`Invalid API Key provided: ${key.slice(0, 8)}***${key.length > 12 ? key.slice(-4) : ""}`)
}
