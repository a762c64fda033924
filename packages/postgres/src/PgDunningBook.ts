/** The dunning book on PostgreSQL (or PGlite), beside the tables of `PgLedger`. */
import { ChargeKey, type ChargeRecord, type DunningCase, DunningBook, type DunningView, type LedgerError, type OpenCaseAnswer } from "@purser/core"
import { Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { RecordRow, recordOf } from "./internal/chargeRow.ts"
import * as Sql from "./internal/dunningSql.ts"
import { ledgerUnavailable } from "./internal/failures.ts"
import * as Reads from "./internal/ledgerReads.ts"
import { boolean, double, integer, text, texts } from "./internal/params.ts"
import { asker, sender } from "./internal/storeQuery.ts"

const NullText = Schema.NullOr(Schema.String)
const NullTime = Schema.NullOr(Schema.Finite)
const CaseRow = Schema.Struct({
  case_id: Schema.String,
  case_number: Schema.Int,
  case_key: ChargeKey,
  case_customer: Schema.String,
  case_state: Schema.Literals(["open", "paid", "new_method", "canceled", "given_up", "left"]),
  opened_attempt: Schema.Int,
  opened_by: Schema.String,
  case_reason: Schema.String,
  opened_at_ms: Schema.Finite,
  goes_on_at_ms: NullTime,
  closed_at_ms: NullTime,
  closed_by: NullText,
  case_detail: NullText,
  is_offered: Schema.Boolean,
  offered_method: NullText,
  offered_attempt: Schema.NullOr(Schema.Int),
  offered_by: NullText,
  offered_reason: NullText
})
const ViewRow = Schema.Struct({ ...RecordRow.fields, ...CaseRow.fields, due_in_ms: NullTime, settled_for_ms: Schema.Finite })
const IdRow = Schema.Struct({ case_id: Schema.String })
const StepRow = Schema.Struct({ case_id: Schema.String, step: Schema.Int })
const FollowedRow = Schema.Struct({ asked: Schema.Int, unseen: Schema.Int })
const OpenedRow = Schema.Struct({ opened: Schema.Int, looked_at: Schema.Int })

const caseOf = (row: typeof CaseRow.Type): DunningCase => ({
  caseId: row.case_id,
  chargeKey: row.case_key,
  number: row.case_number,
  stripeCustomerId: row.case_customer,
  state: row.case_state,
  openedAttempt: row.opened_attempt,
  openedBy: row.opened_by,
  reason: row.case_reason,
  openedAtMs: row.opened_at_ms,
  goesOnAtMs: row.goes_on_at_ms,
  closedAtMs: row.closed_at_ms,
  closedBy: row.closed_by,
  detail: row.case_detail
})

const viewOf = (row: typeof ViewRow.Type): Effect.Effect<DunningView, LedgerError> =>
  Effect.mapBoth(recordOf(row), {
    onFailure: ledgerUnavailable("read a dunning case", row.case_key),
    onSuccess: (record: ChargeRecord): DunningView => ({
      case: caseOf(row),
      record,
      dueInMs: row.due_in_ms,
      settledForMs: row.settled_for_ms,
      offered: row.is_offered
        ? { paymentMethod: row.offered_method, attempt: row.offered_attempt ?? 0, actor: row.offered_by ?? "", reason: row.offered_reason ?? "" }
        : null
    })
  })

const make = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const ask = asker(sql)
  const send = sender(sql)
  const ids = (rows: ReadonlyArray<typeof IdRow.Type>) => rows.map(({ case_id }) => case_id)
  const views = (operation: string, statement: string, params: ReadonlyArray<unknown>) =>
    Effect.flatMap(ask(operation, statement, params, ViewRow), (rows) => Effect.forEach(rows, viewOf))

  return DunningBook.of({
    open: Effect.fnUntraced(function*(chargeKey, { actor, reason }): Effect.fn.Return<OpenCaseAnswer, LedgerError> {
      const [opened] = yield* ask("open a dunning case", Sql.open, [text(chargeKey), text(actor), text(reason)], CaseRow)
      if (opened !== undefined) return { _tag: "Opened", case: caseOf(opened) }
      const [present] = yield* ask("open a dunning case", Sql.openCase, [text(chargeKey)], CaseRow)
      if (present !== undefined) return { _tag: "Present", case: caseOf(present) }
      const [row] = yield* ask("open a dunning case", Reads.find, [text(chargeKey)], RecordRow)
      return { _tag: "NotDeclined", state: row?.state ?? null }
    }),
    openDue: ({ actor, limit, maxAgeMs, reason }) =>
      Effect.map(
        ask("open dunning cases", Sql.openDue, [text(actor), text(reason), double(maxAgeMs), integer(limit)], OpenedRow),
        ([row]) => ({ opened: row?.opened ?? 0, passed: (row?.looked_at ?? 0) - (row?.opened ?? 0) })
      ),
    toStart: (limit) => Effect.map(ask("read dunning cases", Sql.toStart, [integer(limit)], IdRow), ids),
    started: (caseId) => send("start a dunning case", Sql.started, [text(caseId)]),
    running: (afterId, limit) => Effect.map(ask("read dunning cases", Sql.running, [text(afterId), integer(limit)], IdRow), ids),
    look: (caseId, step) => Effect.map(views("look at a dunning case", Sql.look, [text(caseId), integer(step)]), ([view]) => view),
    waits: (caseId, step, forMs, note) => send("note a wait", Sql.waits, [text(caseId), integer(step), double(forMs), text(note ?? null)]),
    followed: ({ billingPeriod, currency, namespace }) =>
      Effect.map(ask("count what is followed up", Sql.followed, [text(namespace), text(billingPeriod), text(currency)], FollowedRow), ([row]) => row ?? { asked: 0, unseen: 0 }),
    moved: (afterId, limit) =>
      Effect.map(ask("watch dunning cases", Sql.moved, [text(afterId), integer(limit)], StepRow), (rows) => rows.map(({ case_id, step }) => ({ caseId: case_id, step }))),
    close: (caseId, end, { actor, reason }) =>
      Effect.map(ask("close a dunning case", Sql.close, [text(caseId), text(end), text(actor), text(reason)], IdRow), (rows) => rows.length === 1),
    finished: (caseId) => send("finish a dunning case", Sql.finished, [text(caseId)]),
    offer: (stripeCustomerId, paymentMethod, { actor, reason }, read) =>
      Effect.map(
        ask("offer a payment method", Sql.offer, [
          text(stripeCustomerId), text(paymentMethod), text(actor), text(reason), text(read?.paymentMethod ?? null), texts(read?.namespaces ?? [])
        ], IdRow),
        (rows) => rows.length
      ),
    roomMade: ({ billingPeriod, currency, namespace }) =>
      Effect.map(ask("wake dunning cases", Sql.roomMade, [text(namespace), text(billingPeriod), text(currency)], IdRow), (rows) => rows.length),
    openOf: (stripeCustomerId) => views("list dunning cases", Sql.openOf, [text(stripeCustomerId)]),
    list: ({ limit, onlyOpen }) => views("list dunning cases", Sql.list, [boolean(onlyOpen), integer(limit)]),
    casesOf: (chargeKey) => views("list dunning cases", Sql.casesOf, [text(chargeKey)])
  })
})

/** The book's layer. */
export const PgDunningBook: {
  /** On the tables of `Migrations`. */
  readonly layer: Layer.Layer<DunningBook, never, SqlClient.SqlClient>
} = { layer: Layer.effect(DunningBook, make) }
