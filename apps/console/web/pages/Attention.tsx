/** What waits for a person: the evidence, and the act that ends each waiting. */
import { useContext, useState } from "react"
import type { Waiting } from "../../src/api/Shapes.ts"
import { useData } from "../data.ts"
import { chargeName, count } from "../format.ts"
import { Act, SessionContext } from "../parts/Act.tsx"
import { ConflictTable } from "../parts/ConflictTable.tsx"
import { Ago, Amount, Head, Id, Nothing, Part, Problem, State, Time } from "../parts/show.tsx"
import { Table } from "../parts/Table.tsx"
import { to } from "../route.ts"

const bounded = (n: number) => n >= 1000 ? "1,000+" : count(n)

const Letters = ({ done, letters }: { readonly letters: Waiting["letters"]; readonly done: () => void }) => {
  const session = useContext(SessionContext)
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const picked = letters.filter(({ digest }) => chosen.has(digest)).map(({ digest }) => digest)
  const isAll = picked.length === letters.length
  const pick = (digest: string) => setChosen((before) => {
    const next = new Set(before)
    if (!next.delete(digest)) next.add(digest)
    return next
  })
  return (
    <>
      {session?.role === "operator" ? <div className="acts">
        {letters.length > 1 ? <button type="button" className="button small" onClick={() => setChosen(new Set(isAll ? [] : letters.map(({ digest }) => digest)))}>{isAll ? "Pick none" : `Pick all ${count(letters.length)}`}</button> : null}
        {picked.length === 0 ? null : <Act quiet name={`Throw ${count(picked.length)} away`} of={picked.length === 1 ? `dead letter ${picked[0]!.slice(0, 12)}` : "dead letters"} danger done={done} explain="What these messages asked for was not done, and nobody will see them again." act={(client, reason) => client.attention.discardLetters({ payload: { digests: picked, reason } })} />}
      </div> : null}
      <Table label="Dead letters" rows={letters} keyOf={({ digest }) => digest} columns={[
        { name: "Pick", show: ({ digest }) => <input type="checkbox" aria-label={`Pick letter ${digest.slice(0, 12)}`} checked={chosen.has(digest)} onChange={() => pick(digest)} /> },
        { name: "Why", show: ({ reason }) => <b>{reason}</b> },
        { name: "Detail", wide: true, show: ({ detail, text }) => <details><summary>{detail}</summary><pre>{text}</pre></details> },
        { name: "Way", show: ({ principal, transport }) => <>{transport}{principal === null ? "" : ` from ${principal}`}</> },
        { name: "Times", number: true, show: ({ times }) => count(times) },
        { name: "Bytes", number: true, show: ({ sizeBytes }) => count(sizeBytes) },
        { name: "Last", show: ({ lastAtMs }) => <Time ms={lastAtMs} /> }
      ]} />
    </>
  )
}

/** The page. */
export const Attention = () => {
  const { failed, refresh, value } = useData("attention", (client) => client.attention.list())
  if (value === undefined) return <><Head title="Attention" /><Problem failed={failed} /></>
  const { conflicts, counts, letters, quarantined, unresolved } = value
  const now = Date.now()
  const isQuiet = unresolved.length + quarantined.length + conflicts.length + letters.length === 0
  return (
    <>
      <Head title="Attention"><span className="dim">{isQuiet ? "nothing waits" : "what waits for a person"}</span></Head>
      <Problem failed={failed} />
      <Part title="Quarantined" count={bounded(counts.quarantined)}>
        {quarantined.length === 0 ? <Nothing>No object at Stripe differs from its row.</Nothing> : (
          <Table label="Quarantined charges" rows={quarantined} keyOf={({ chargeKey }) => chargeKey} columns={[
            { name: "Charge", show: ({ billingPeriod, chargeKey, customerId, item }) => <a href={to("charges", chargeKey)}>{customerId} <span className="dim">{billingPeriod}{item === null ? "" : ` · ${item}`}</span></a> },
            { name: "State", show: ({ state }) => <State state={state} /> },
            { name: "Row", number: true, show: ({ amountMinor, currency }) => <Amount minor={amountMinor} code={currency} /> },
            { name: "What differs", wide: true, show: ({ quarantine }) => quarantine },
            { name: "Object", show: ({ paymentIntentId }) => <Id id={paymentIntentId} head={14} /> },
            { name: "Act", show: ({ chargeKey, ...charge }) => <Act quiet name="End quarantine" of={chargeName(charge)} done={refresh} explain="Do this when both sides were looked at. Its object is read before anything else; where it still differs, the mark comes back." act={(client, reason) => client.attention.endQuarantine({ payload: { chargeKey, reason } })} /> }
          ]} />
        )}
      </Part>
      <Part title="Conflicts" count={bounded(counts.conflicts)}>
        {conflicts.length === 0 ? <Nothing>No file and no request says other terms than the ledger holds.</Nothing> : <ConflictTable conflicts={conflicts} done={refresh} />}
      </Part>
      <Part title="Unresolved" count={bounded(counts.unresolved)}>
        {unresolved.length === 0 ? <Nothing>No charge was left by its worker.</Nothing> : (
          <Table label="Unresolved charges" rows={unresolved} keyOf={({ chargeKey }) => chargeKey} columns={[
            { name: "Charge", show: ({ billingPeriod, chargeKey, customerId, item }) => <a href={to("charges", chargeKey)}>{customerId} <span className="dim">{billingPeriod}{item === null ? "" : ` · ${item}`}</span></a> },
            { name: "State", show: ({ state }) => <State state={state} /> },
            { name: "Amount", number: true, show: ({ amountMinor, currency }) => <Amount minor={amountMinor} code={currency} /> },
            { name: "Nobody since", show: ({ sinceMs }) => <Ago ms={sinceMs} now={now} /> },
            { name: "Last held by", show: ({ worker }) => worker ?? <span className="dim">–</span> },
            { name: "Last word", wide: true, show: ({ lastDetail }) => lastDetail ?? <span className="dim">–</span> },
            { name: "Act", show: ({ chargeKey, ...charge }) => <Act quiet name="Go on with it" of={chargeName(charge)} done={refresh} explain="Its object at Stripe is read, and what it says is recorded. Where nothing was asked yet, the charge is made, once." act={(client, reason) => client.charges.resume({ params: { chargeKey }, payload: { reason } })} /> }
          ]} />
        )}
      </Part>
      <Part title="Dead letters" count={bounded(counts.deadLetters)}>
        {letters.length === 0 ? <Nothing>Every message could be read.</Nothing> : <Letters letters={letters} done={refresh} />}
      </Part>
    </>
  )
}
