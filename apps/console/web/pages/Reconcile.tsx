/** Differences between the ledger and Stripe, both ways. */
import { useContext, useState } from "react"
import type { Difference, Reconciliation } from "../../src/api/Shapes.ts"
import { useData } from "../data.ts"
import { count, words } from "../format.ts"
import { Act, SessionContext } from "../parts/Act.tsx"
import { Amount, Fact, Head, Id, Nothing, Part, Problem, State, Time } from "../parts/show.tsx"
import { Table } from "../parts/Table.tsx"
import { to } from "../route.ts"

const monthAgo = () => new Date(Date.now() - 40 * 86_400_000).toISOString().slice(0, 10)

const explainKind: Readonly<Record<string, string>> = {
  missing_here: "paid at Stripe, unknown here",
  missing_there: "paid here, unknown at Stripe",
  amount_differs: "terms differ",
  paid_twice: "paid twice",
  state_differs: "states differ",
  not_attached: "paid by another object",
  orphan: "unpaid object without a row"
}

const Ledger = ({ difference: { ledger } }: { readonly difference: Difference }) =>
  ledger === null ? <span className="dim">no row</span> : <span className="both"><State state={ledger.state} /><Amount minor={ledger.amountMinor} code={ledger.currency} /><Id id={ledger.paymentIntentId} head={14} /></span>

const Stripe = ({ difference: { objects } }: { readonly difference: Difference }) =>
  objects.length === 0 ? <span className="dim">no object</span> : <span className="both">{objects.map(({ amountMinor, currency, id, status }) => <span key={id}><State state={status} /> <Amount minor={amountMinor} code={currency} /> <Id id={id} head={14} /></span>)}</span>

/** What is to be said where nothing differs: nothing on both sides is not the same as something that agrees. */
const sameOf = ({ report, state }: Reconciliation): string =>
  state === "running" ? "No difference so far."
    : state === "failed" ? "No difference was found before it failed."
    : report !== null && report.rows === 0 && report.ours === 0 ? "Nothing of this period is on either side."
    : "Both sides say the same."

/** The last comparison. */
export const Last = ({ last }: { readonly last: Reconciliation }) => {
  const { report } = last
  return (
    <>
      <p className="sub"><State state={last.state} /> <span className="dim">{last.dryRun ? "dry run" : "with repairs"} of {last.billingPeriod} since {new Date(last.sinceMs).toISOString().slice(0, 10)}, begun <Time ms={last.startedAtMs} /> by {last.actor}: {last.reason}{last.detail === null ? "" : `; ${last.detail}`}</span></p>
      {report === null ? null : (
        <dl className="facts">
          <Fact name="Listed at Stripe">{count(report.listed)}</Fact>
          <Fact name="Of this period">{count(report.ours)}</Fact>
          <Fact name="Of other programs">{count(report.foreign)}</Fact>
          <Fact name="Rows here">{count(report.rows)}, {count(report.open)} open</Fact>
          <Fact name="Repaired">{count(report.repaired)}</Fact>
          <Fact name="Remain">{count(report.remaining)}</Fact>
        </dl>
      )}
      {last.differences.length === 0 ? <Nothing>{sameOf(last)}</Nothing> : (
        <Table label="Differences" rows={last.differences} keyOf={({ chargeKey, kind, objects }) => `${kind} ${chargeKey} ${objects.map(({ id }) => id).join(" ")}`} columns={[
          { name: "Difference", show: ({ kind }) => <b>{explainKind[kind] ?? words(kind)}</b> },
          { name: "Customer", show: ({ chargeKey, customerId, ledger }) => ledger === null ? customerId ?? <span className="dim">–</span> : <a href={to("charges", chargeKey)}>{customerId}</a> },
          { name: "Ledger", show: (difference) => <Ledger difference={difference} /> },
          { name: "Stripe", show: (difference) => <Stripe difference={difference} /> },
          { name: "Repair", show: ({ repaired }) => repaired === null ? <State state="declined">remains</State> : <State state="succeeded">{last.dryRun ? `would be ${repaired}` : repaired}</State> },
          { name: "Detail", wide: true, show: ({ detail }) => detail }
        ]} />
      )}
      {last.found > last.differences.length ? <p className="dim">{count(last.found)} in all; the command's report has every one.</p> : null}
    </>
  )
}

/** The page. */
export const Reconcile = () => {
  const session = useContext(SessionContext)
  const { failed, refresh, value } = useData("reconcile", (client) => client.reconcile.get())
  const [since] = useState(monthAgo)
  const fields = [
    { name: "period", label: "Period", required: true, hint: "2026-07, Q3-2026 …" },
    { name: "since", label: "Objects made since", required: true, value: since, hint: "a day; for a restored ledger, before the backup" }
  ]
  const start = (dryRun: boolean): Parameters<typeof Act>[0]["act"] => (client, reason, { period, since: day }) =>
    client.reconcile.start({ payload: { billingPeriod: period ?? "", sinceMs: Date.parse(`${day ?? ""}T00:00:00Z`), dryRun, reason } })
  return (
    <>
      <Head title="Reconcile">
        {session?.charges === true ? (
          <div className="acts">
            <Act name="Compare" of={session.store} fields={fields} done={refresh} explain="The account at Stripe is listed and compared with the period's rows, both ways. Nothing is changed." act={start(true)} />
            <Act name="Compare and repair" of={session.store} danger fields={fields} done={refresh} explain="Payments that the ledger has forgotten are taken into it, rows are settled by what their objects say, unpaid objects that nobody names are given up. No customer is asked for money." act={start(false)} />
          </div>
        ) : <span className="dim">this console has no key to Stripe; the list below comes from webhooks</span>}
      </Head>
      <Problem failed={failed} />
      <Part title="Last comparison">{value?.last === undefined || value.last === null ? <Nothing>None since this console was started.</Nothing> : <Last last={value.last} />}</Part>
      <Part title="Objects without a charge" count={String(value?.unknown.length ?? 0)}>
        {value === undefined || value.unknown.length === 0 ? <Nothing>Every object that was seen belongs to a charge.</Nothing> : (
          <Table label="Objects without a charge" rows={value.unknown} keyOf={({ id }) => id} columns={[
            { name: "Object", show: ({ id }) => <code className="id">{id}</code> },
            { name: "Why", show: ({ reason }) => words(reason) },
            { name: "Amount", number: true, show: ({ amountMinor, currency }) => <Amount minor={amountMinor} code={currency ?? ""} /> },
            { name: "Customer", show: ({ stripeCustomerId }) => <Id id={stripeCustomerId} head={14} /> },
            { name: "Status", show: ({ status }) => status ?? <span className="dim">–</span> },
            { name: "Detail", wide: true, show: ({ detail }) => detail ?? <span className="dim">–</span> },
            { name: "Seen", show: ({ lastSeenMs }) => <Time ms={lastSeenMs} /> },
            { name: "Act", show: ({ id }) => <Act quiet name="Dealt with" of={id} done={refresh} explain="It is taken off the list. It comes back if it is seen again." act={(client, reason) => client.reconcile.unlist({ payload: { id, reason } })} /> }
          ]} />
        )}
      </Part>
    </>
  )
}
