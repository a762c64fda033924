/** Conflicts: what the file or the request says beside what the ledger holds, and the act that ends several of them at once. */
import { Effect } from "effect"
import { type ReactNode, useContext, useState } from "react"
import type { Conflict } from "../../src/api/Shapes.ts"
import { chargeName, count } from "../format.ts"
import { Act, SessionContext } from "./Act.tsx"
import { Amount, State, Time } from "./show.tsx"
import { Table } from "./Table.tsx"
import { to } from "../route.ts"

const keyOf = ({ line, runId }: Pick<Conflict, "line" | "runId">) => `${runId} ${line}`
const sideOf = ({ runId }: Conflict) => runId === "" ? "request" : "file"

const Both = ({ ledger, same, says, side }: { readonly side: string; readonly says: ReactNode; readonly ledger: ReactNode; readonly same: boolean }) =>
  same ? <span className="dim">the same</span> : <span className="both"><span><small>{side}</small> {says}</span><span><small>ledger</small> {ledger}</span></span>

const From = ({ lastAtMs, line, principal, runId, seenAtMs, source, times }: Conflict) =>
  runId === ""
    ? <>a request{principal === null ? ", unsigned" : <> by <b>{principal}</b></>}, <Time ms={seenAtMs} />{times === 1 ? "" : <>, {count(times)} times until <Time ms={lastAtMs} /></>}</>
    : <>{source.split("/").at(-1)} line {line}, <a href={to("runs", runId)}>run</a> of <Time ms={seenAtMs} /></>

/** A table of them, with the act that ends each. */
export const ConflictTable = ({ conflicts, done, withCharge = true }: {
  readonly conflicts: ReadonlyArray<Conflict>
  readonly done: () => void
  readonly withCharge?: boolean
}) => {
  const session = useContext(SessionContext)
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  /** Why a row of the last act on several was left as it is. */
  const [left, setLeft] = useState<ReadonlyMap<string, string>>(new Map())
  const open = conflicts.filter(({ resolvedAtMs }) => resolvedAtMs === null)
  const picked = open.filter((conflict) => chosen.has(keyOf(conflict)))
  const pick = (key: string) => setChosen((before) => {
    const next = new Set(before)
    if (!next.delete(key)) next.add(key)
    return next
  })
  const isSeveral = session?.role === "operator" && open.length > 1
  return (
    <>
      {isSeveral ? (
        <div className="acts">
          <button type="button" className="button small" onClick={() => setChosen(new Set(picked.length === open.length ? [] : open.map(keyOf)))}>{picked.length === open.length ? "Pick none" : `Pick all ${count(open.length)}`}</button>
          {picked.length === 0 ? null : (
            <Act quiet name={`Keep the ledger's terms for ${count(picked.length)}`} of={picked.map(({ charge }) => charge.customerId).join(", ")} done={done}
              explain="The other terms of each are dropped, for the same reason. The charges stay as the ledger has them. A row that somebody else has dealt with meanwhile is told."
              act={(client, reason) =>
                client.attention.keepCharges({ payload: { conflicts: picked.map(({ line, runId }) => ({ line, runId })), reason } }).pipe(
                  Effect.map(({ results }) => {
                    const failed = results.filter((result) => !result.done)
                    setLeft(new Map(failed.map((result) => [keyOf(result), result.text])))
                    setChosen(new Set(failed.map(keyOf)))
                    return { text: `${count(results.length - failed.length)} dropped${failed.length === 0 ? "" : `, ${count(failed.length)} not: the rows say why`}` }
                  })
                )} />
          )}
        </div>
      ) : null}
      <Table label="Conflicts" rows={conflicts} keyOf={keyOf} columns={[
        ...(isSeveral ? [{ name: "Pick", show: (conflict: Conflict) => conflict.resolvedAtMs !== null ? null : <input type="checkbox" aria-label={`Pick the conflict of ${conflict.charge.customerId}`} checked={chosen.has(keyOf(conflict))} onChange={() => pick(keyOf(conflict))} /> }] : []),
        ...(withCharge ? [{ name: "Charge", show: ({ charge }: Conflict) => <a href={to("charges", charge.chargeKey)}>{charge.customerId} <span className="dim">{charge.billingPeriod}{charge.item === null ? "" : ` · ${charge.item}`}</span></a> }] : []),
        { name: "Ledger", show: ({ charge }) => <State state={charge.state} /> },
        { name: "Amount", number: true, show: (conflict) => <Both side={sideOf(conflict)} same={conflict.amountMinor === conflict.charge.amountMinor && conflict.currency === conflict.charge.currency} says={<Amount minor={conflict.amountMinor} code={conflict.currency} />} ledger={<Amount minor={conflict.charge.amountMinor} code={conflict.charge.currency} />} /> },
        { name: "Stripe customer", show: (conflict) => <Both side={sideOf(conflict)} same={conflict.stripeCustomerId === conflict.charge.stripeCustomerId} says={<code className="id">{conflict.stripeCustomerId}</code>} ledger={<code className="id">{conflict.charge.stripeCustomerId}</code>} /> },
        { name: "Method", show: (conflict) => <Both side={sideOf(conflict)} same={conflict.paymentMethod === conflict.keptPaymentMethod} says={conflict.paymentMethod ?? "the default"} ledger={conflict.keptPaymentMethod ?? "the default"} /> },
        { name: "From", wide: true, show: (conflict) => <From {...conflict} /> },
        {
          name: "Act",
          show: (conflict) => conflict.resolvedAtMs !== null ? <span className="dim">dropped <Time ms={conflict.resolvedAtMs} /></span> : (
            <>
              <Act quiet name="Keep the ledger's" of={chargeName(conflict.charge)} done={done}
                explain={<>The {sideOf(conflict)}'s terms are dropped. The charge stays as the ledger has it: <Amount minor={conflict.charge.amountMinor} code={conflict.charge.currency} />, {conflict.charge.state}. If they are two charges, {conflict.runId === "" ? "the sender has to give the second an item of its own" : "give the file's row an item of its own and run the file again"}.</>}
                act={(client, reason) => client.attention.keepCharge({ payload: { runId: conflict.runId, line: conflict.line, reason } })} />
              {left.has(keyOf(conflict)) ? <p className="problem">Not done: {left.get(keyOf(conflict))}</p> : null}
            </>
          )
        }
      ]} />
    </>
  )
}
