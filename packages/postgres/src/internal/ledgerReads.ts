/** The statements that only look. */

/** The columns of a request. */
export const terms = `charge_key, namespace, customer_id, billing_period, item, amount_minor, currency, stripe_customer_id, payment_method, allow_future, revision`

/** What a whole row is read from. */
export const recordColumns = `${terms}, state, attempt, generation, payment_intent_id, quarantine, outcome_payment_intent_id, charge_id, received_minor,
  outcome_code, outcome_decline_code, outcome_detail, outcome_advice_code, declined_charge_id, chosen_payment_method, revises,
  (extract(epoch from next_attempt_at) * 1000)::float8 as next_attempt_at_ms`

/** limit */
export const releaseDue = `select charge_key, attempt from purser.charges where release_due order by charge_key limit $1::integer`

/** key */
export const find = `select ${recordColumns} from purser.charges where charge_key = $1::text`

/** limit */
export const attemptsDue = `select ${recordColumns} from purser.charges
where next_attempt_at <= purser.now() and quarantine is null order by next_attempt_at limit $1::integer`

/** key */
export const events = `select charge_key, seq, (extract(epoch from at) * 1000)::float8 as at_ms, from_state, to_state, worker, attempt, detail, principal
from purser.events_of($1::text) order by seq`

/** period, or null for all */
export const report = `select billing_period, currency, state, count(*) as charges, sum(amount_minor) as amount_minor,
  coalesce(sum(received_minor), 0) as received_minor, count(quarantine) as quarantined
from purser.charges where $1::text is null or billing_period = $1::text
group by billing_period, currency, state order by billing_period, currency, state`
