/** Conflicts: what the file says beside what the ledger holds. */
import type { ReactNode } from "react"
import type { Conflict } from "../../src/api/Shapes.ts"
import { Act } from "./Act.tsx"
import { Amount, State, Time } from "./show.tsx"
import { Table } from "./Table.tsx"
import { to } from "../route.ts"

const Both = ({ file, ledger, same }: { readonly file: ReactNode; readonly ledger: ReactNode; readonly same: boolean }) =>
  same ? <span className="dim">the same</span> : <span className="both"><span><small>file</small> {file}</span><span><small>ledger</small> {ledger}</span></span>

/** A table of them, with the act that ends each. */
export const ConflictTable = ({ conflicts, done, withCharge = true }: {
  readonly conflicts: ReadonlyArray<Conflict>
  readonly done: () => void
  readonly withCharge?: boolean
}) => (
  <Table label="Conflicts" rows={conflicts} keyOf={({ line, runId }) => `${runId} ${line}`} columns={[
    ...(withCharge ? [{ name: "Charge", show: ({ charge }: Conflict) => <a href={to("charges", charge.chargeKey)}>{charge.customerId} <span className="dim">{charge.billingPeriod}{charge.item === null ? "" : ` · ${charge.item}`}</span></a> }] : []),
    { name: "Ledger", show: ({ charge }) => <State state={charge.state} /> },
    { name: "Amount", number: true, show: ({ amountMinor, charge, currency }) => <Both same={amountMinor === charge.amountMinor && currency === charge.currency} file={<Amount minor={amountMinor} code={currency} />} ledger={<Amount minor={charge.amountMinor} code={charge.currency} />} /> },
    { name: "Stripe customer", show: ({ charge, stripeCustomerId }) => <Both same={stripeCustomerId === charge.stripeCustomerId} file={<code className="id">{stripeCustomerId}</code>} ledger={<code className="id">{charge.stripeCustomerId}</code>} /> },
    { name: "Method", show: ({ keptPaymentMethod, paymentMethod }) => <Both same={paymentMethod === keptPaymentMethod} file={paymentMethod ?? "the default"} ledger={keptPaymentMethod ?? "the default"} /> },
    { name: "From", wide: true, show: ({ line, runId, seenAtMs, source }) => <>{source.split("/").at(-1)} line {line}, <a href={to("runs", runId)}>run</a> of <Time ms={seenAtMs} /></> },
    {
      name: "Act",
      show: ({ charge, line, resolvedAtMs, runId }) => resolvedAtMs !== null ? <span className="dim">dropped <Time ms={resolvedAtMs} /></span> : (
        <Act quiet name="Keep the ledger's" done={done}
          explain={<>The file's row is dropped. The charge stays as the ledger has it: <Amount minor={charge.amountMinor} code={charge.currency} />, {charge.state}. If they are two charges, give the file's row an item of its own and run the file again.</>}
          act={(client, reason) => client.attention.keepCharge({ payload: { runId, line, reason } })} />
      )
    }
  ]} />
)
