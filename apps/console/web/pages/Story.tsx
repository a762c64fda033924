/** One charge's whole story. */
import { useData } from "../data.ts"
import { chargeName, words } from "../format.ts"
import { Act } from "../parts/Act.tsx"
import { ConflictTable } from "../parts/ConflictTable.tsx"
import { Amount, Fact, Head, Id, Nothing, Part, Problem, State, Time } from "../parts/show.tsx"
import { Table } from "../parts/Table.tsx"
import { to } from "../route.ts"

const remedies: Readonly<Record<string, string>> = {
  wait: "time may help",
  ask_bank: "the customer has to ask the bank",
  new_method: "another payment method is needed",
  correct_details: "the details of the card have to be corrected",
  authenticate: "the customer has to authenticate",
  review: "look at the request and the customer first"
}

/** The page. */
export const Story = ({ chargeKey }: { readonly chargeKey: string }) => {
  const { failed, refresh, value: story } = useData(`charge ${chargeKey}`, (client) => client.charges.story({ params: { chargeKey } }))
  if (story === undefined) return <><Head title="Charge" /><Problem failed={failed} /></>
  const { acts, advice, charge, lines, objects, refunds } = story
  const params = { chargeKey }
  const now = Date.now()
  return (
    <article>
      <p className="crumb"><a href={to("charges")}>Charges</a> / <a href={to("charges", undefined, { customer: charge.customerId, match: "whole" })}>{charge.customerId}</a></p>
      <Head title={<>{charge.customerId} <span className="dim">{charge.billingPeriod}{charge.item === null ? "" : ` · ${charge.item}`}</span></>}>
        <State state={charge.quarantine === null ? charge.state : "quarantined"} />
        <div className="acts">
          {acts.includes("retry") ? (
            <Act name="Try again" of={chargeName(charge)} done={refresh} fields={[{ name: "method", label: "With another payment method (optional)", hint: "pm_…; the one before, unless named" }]}
              explain={<>Attempt {charge.attempt} becomes attempt {charge.attempt + 1}, and the customer is asked for <Amount minor={charge.amountMinor} code={charge.currency} /> once more.</>}
              act={(client, reason, { method }) => client.charges.retry({ params, payload: { reason, paymentMethod: method === "" ? undefined : method } })} />
          ) : null}
          {acts.includes("resume") ? (
            <Act name="Go on with it" of={chargeName(charge)} done={refresh} explain="Its object at Stripe is read, and what it says is recorded. Where nothing was asked yet, the charge is made, once."
              act={(client, reason) => client.charges.resume({ params, payload: { reason } })} />
          ) : null}
          {acts.includes("end quarantine") ? (
            <Act name="End quarantine" of={chargeName(charge)} done={refresh} explain="Do this when both sides were looked at. Its object is read before anything else; where it still differs, the mark comes back."
              act={(client, reason) => client.attention.endQuarantine({ payload: { chargeKey, reason } })} />
          ) : null}
        </div>
      </Head>
      <Problem failed={failed} />
      {charge.quarantine === null ? null : <p className="problem">Quarantined: {charge.quarantine}. Nobody charges it before a person has looked.</p>}
      <dl className="facts">
        <Fact name="Amount"><Amount minor={charge.amountMinor} code={charge.currency} /></Fact>
        <Fact name="Received"><Amount minor={charge.receivedMinor} code={charge.currency} /></Fact>
        <Fact name="Attempt">{charge.attempt}{story.generation > 1 ? `, generation ${story.generation}` : ""}</Fact>
        <Fact name="Stripe customer"><code className="id">{charge.stripeCustomerId}</code></Fact>
        <Fact name="Charge key"><code className="id">{charge.chargeKey}</code></Fact>
        <Fact name="Namespace">{charge.namespace}</Fact>
        {advice === null ? null : <Fact name="Decline">{advice.code}: {advice.kind}, {remedies[advice.remedy] ?? words(advice.remedy)}</Fact>}
        {story.nextAttemptAtMs === null ? null : <Fact name="Policy asks again"><Time ms={story.nextAttemptAtMs} now={now} /></Fact>}
        {charge.detail === null || charge.detail === "" ? null : <Fact name="Detail">{charge.detail}</Fact>}
        {story.runs.length === 0 ? null : (
          <Fact name={story.runs.length === 1 ? "Run" : "Runs"}>
            {story.runs.map(({ actor, line, name, runId, source }, index) => (
              <span key={`${runId} ${line}`}>{index === 0 ? "" : ", "}<a href={to("runs", runId)} title={runId}>{name !== null && name !== runId ? name : source.split("/").at(-1) || runId}</a> <span className="dim">line {line}{actor === null ? "" : ` by ${actor}`}</span></span>
            ))}
          </Fact>
        )}
        {story.revises === null ? null : <Fact name="Bills anew"><a href={to("charges", story.revises)}><Id id={story.revises} /></a></Fact>}
        {story.revisedBy === null ? null : <Fact name="Billed anew by"><a href={to("charges", story.revisedBy)}><Id id={story.revisedBy} /></a></Fact>}
      </dl>
      {story.conflicts.length === 0 ? null : <Part title="Conflicts"><ConflictTable conflicts={story.conflicts} done={refresh} withCharge={false} /></Part>}
      <Part title="Story" count={String(lines.length)}>
        <ol className="story">
          {lines.map((line, index) => (
            <li key={`${line.atMs} ${line.kind} ${index}`} className={`kind-${line.kind}`}>
              <Time ms={line.atMs} now={now} />
              <span className="what">{line.kind === "charge" || line.kind === "refund"
                ? <>{line.kind === "refund" ? "refund " : ""}{line.from === null || line.from === line.to ? null : <><span className="dim">{words(line.from)}</span> → </>}<State state={line.to} /></>
                : line.kind === "call" ? <span className="dim">Stripe: {words(line.to)}</span> : <b>{line.to}</b>}</span>
              <span className="by">{line.who ?? ""}{line.principal === null ? "" : ` for ${line.principal}`}{line.attempt === null || line.attempt === 1 ? "" : `, attempt ${line.attempt}`}</span>
              <span className="why">
                {line.requestId === null ? null : <><code className="id" title="Stripe's Request-Id">{line.requestId}</code> </>}
                {line.kind === "call" ? <span className="dim">{line.detail}</span> : line.detail}
                {line.runId === null ? null : <> <a href={to("runs", line.runId)}>run</a></>}
              </span>
            </li>
          ))}
        </ol>
      </Part>
      <Part title="Objects at Stripe" count={String(objects.length)}>
        <Table label="Objects at Stripe" rows={objects} keyOf={({ id }) => id} columns={[
          { name: "Id", show: ({ id }) => <code className="id">{id}</code> },
          { name: "Kind", show: ({ kind }) => kind },
          { name: "What it is here", wide: true, show: ({ role }) => role },
          { name: "Status", show: ({ status }) => status === null ? <span className="dim">–</span> : words(status) },
          { name: "Amount", number: true, show: ({ amountMinor }) => <Amount minor={amountMinor} code={charge.currency} /> }
        ]} />
      </Part>
      {refunds.length === 0 ? null : (
        <Part title="Refunds">
          <Table label="Refunds" rows={refunds} keyOf={({ refundId }) => refundId} columns={[
            { name: "Refund", show: ({ refundId }) => refundId },
            { name: "State", show: ({ state }) => <State state={state} /> },
            { name: "Amount", number: true, show: ({ amountMinor }) => <Amount minor={amountMinor} code={charge.currency} /> },
            { name: "Who", show: ({ actor }) => actor },
            { name: "Why", wide: true, show: ({ note }) => note },
            { name: "When", show: ({ requestedAtMs }) => <Time ms={requestedAtMs} now={now} /> }
          ]} />
        </Part>
      )}
      {lines.length === 0 ? <Nothing>Nothing has happened yet.</Nothing> : null}
    </article>
  )
}
