/** Caps and vault keys: how far each is used, how it came to its figures, and the switches. */
import { capOf } from "@purser/core/CapFigures"
import { parseCurrency } from "@purser/core/Currency"
import { Money } from "@purser/core/Money"
import { Result } from "effect"
import { useContext } from "react"
import type { Cap, Caps as CapsShape, Vaults as VaultsShape } from "../../src/api/Shapes.ts"
import { useData } from "../data.ts"
import { amount, capName, count, decimalsOf, percent, span } from "../format.ts"
import { Act, SessionContext } from "../parts/Act.tsx"
import { CapGauge, StackBar } from "../parts/charts.tsx"
import { Amount, Head, Nothing, Part, Problem, State, Time } from "../parts/show.tsx"
import { Table } from "../parts/Table.tsx"
import { to } from "../route.ts"

const plain = (minor: bigint, code: string) => amount(minor, code).replaceAll(",", "")

/** The cap that these figures make; undefined for what are none, which the console refuses. */
const capMinorOf = (expected: string, headroom: string, code: string): bigint | undefined => {
  const currency = parseCurrency(code)
  if (currency === undefined || !/^\d+$/.test(headroom)) return undefined
  const money = Money.fromDecimal(expected, currency, { maximumMinor: Number.MAX_SAFE_INTEGER, minimumMinor: 1 })
  return Result.isSuccess(money) ? capOf(BigInt(money.success.amountMinor), Number(headroom)) : undefined
}

/** What was done to a cap, in a word; new figures by the way that the cap went. */
const deedOf = ({ act, capBeforeMinor, capMinor }: CapsShape["events"][number]): string =>
  act !== "raised" ? act : capBeforeMinor === null ? "set" : capMinor > capBeforeMinor ? "raised" : capMinor < capBeforeMinor ? "lowered" : "set anew"

const CapCard = ({ cap, done }: { readonly cap: Cap; readonly done: () => void }) => {
  const { billingPeriod, currency, namespace } = cap
  const scope = { namespace, billingPeriod, currency }
  return (
    <div className="card">
      <CapGauge cap={cap} />
      <p className="dim num">{count(cap.reservations)} charges hold room; expected {amount(cap.expectedMinor, currency)} × {(cap.headroomPercent / 100).toFixed(2)}</p>
      <div className="acts">
        <Act quiet name="Set figures" of={capName(cap)} done={done} explain={<>The cap becomes expected total × headroom. It is at {amount(cap.capMinor, currency)} now, of which {amount(cap.reservedMinor, currency)} are used.</>}
          fields={[
            { name: "expected", label: `Expected total, ${currency.toUpperCase()}`, required: true, value: plain(cap.expectedMinor, currency), hint: decimalsOf(currency) === 0 ? "whole units" : `up to ${decimalsOf(currency)} decimals` },
            { name: "headroom", label: "Headroom, percent", required: true, value: String(cap.headroomPercent), hint: "100 to 200" }
          ]}
          doubt={({ expected, headroom }) => {
            const minor = capMinorOf(expected ?? "", headroom ?? "", currency)
            return minor === undefined || minor >= cap.reservedMinor ? undefined
              : `The cap would be ${amount(minor, currency)}, below the ${amount(cap.reservedMinor, currency)} that are used: nothing more would fit under it.`
          }}
          act={(client, reason, { expected, headroom }, isSure) =>
            client.caps.raise({ payload: { ...scope, expectedTotal: expected ?? "", headroomPercent: Number(headroom), reason, ...(isSure ? { belowUsed: true } : {}) } })} />
        {cap.closed
          ? <Act quiet name="Reopen" of={capName(cap)} done={done} explain="The period takes charges again, under the figures that the cap has." act={(client, reason) => client.caps.reopen({ payload: { ...scope, reason } })} />
          : <Act quiet danger name="Close" of={capName(cap)} done={done} explain="The period takes no more charges. Room that is taken stays taken." act={(client, reason) => client.caps.close({ payload: { ...scope, reason } })} />}
      </div>
    </div>
  )
}

const Switch = ({ caps, done }: { readonly caps: CapsShape; readonly done: () => void }) => {
  const { pauses } = caps
  return (
    <div className={`switch ${pauses.length > 0 ? "off" : "on"}`}>
      <p><State state={pauses.length > 0 ? "paused" : "running"}>{pauses.length > 0 ? "Charging is paused" : "Charging goes on"}</State></p>
      {pauses.map(({ actor, cause, reason, sinceMs }) => <p key={cause} className="dim">for {span(Date.now() - sinceMs)}, by {cause === "person" ? actor : "an outage"}: {reason}</p>)}
      {pauses.length > 0
        ? <Act name="Resume charging" of="all charging of this database" done={done} explain="Every worker of this database goes on with what waits." act={(client, reason) => client.runs.resumeCharging({ payload: { reason } })} />
        : <Act danger name="Stop all charging" of="all charging of this database" done={done} explain="Every process on this database stops asking Stripe. Calls that are under way end, work waits, and nothing is lost." act={(client, reason) => client.runs.pauseCharging({ payload: { reason } })} />}
    </div>
  )
}

const VaultTable = ({ done, value }: { readonly value: VaultsShape; readonly done: () => void }) => (
  <>
    <div className={`switch ${value.killed ? "off" : "on"}`}>
      <p><State state={value.killed ? "paused" : "running"}>{value.killed ? "Every vault key is off" : "Vault keys are on"}</State></p>
      {value.killed
        ? <Act name="Switch on" of="every vault key" done={done} explain="Every vault key that is not revoked works again." act={(client, reason) => client.caps.killVaults({ payload: { killed: false, reason } })} />
        : <Act danger name="Switch every key off" of="every vault key" done={done} explain="The proxy refuses every call with a vault key, from the next one on." act={(client, reason) => client.caps.killVaults({ payload: { killed: true, reason } })} />}
    </div>
    {value.vaults.length === 0 ? <Nothing>No vault yet. <code>purser key create</code> makes one.</Nothing> : (
      <Table label="Vaults" rows={value.vaults} keyOf={({ id }) => id} columns={[
        { name: "Vault", show: ({ id, name }) => <>{name === "" ? <code className="id">{id}</code> : name}</> },
        { name: "Period", show: ({ billingPeriod, separate }) => <>{billingPeriod}{separate ? <span className="dim"> separate</span> : null}</> },
        {
          name: "Used",
          show: ({ capMinor, heldMinor, id, name, paidMinor }) => (
            <span className="used"><StackBar label={`Vault ${name === "" ? id : name}`} shares={[
              { name: "paid", tone: "good", n: paidMinor }, { name: "held", tone: "work", n: heldMinor }, { name: "left", tone: "rest", n: Math.max(0, capMinor - paidMinor - heldMinor) }
            ]} /> {percent(heldMinor + paidMinor, capMinor)}</span>
          )
        },
        { name: "Paid", number: true, show: ({ currency, paidMinor }) => <Amount minor={paidMinor} code={currency} /> },
        { name: "Held", number: true, show: ({ currency, heldMinor }) => <Amount minor={heldMinor} code={currency} /> },
        { name: "Cap", number: true, show: ({ capMinor, currency }) => <Amount minor={capMinor} code={currency} /> },
        { name: "Calls", number: true, show: ({ calls, maxCalls }) => maxCalls === null ? count(calls) : `${count(calls)} of ${count(maxCalls)}` },
        { name: "Keys", wide: true, show: ({ keys }) => keys.map(({ hint, revokedAtMs }) => `…${hint}${revokedAtMs === null ? "" : " (revoked)"}`).join(", ") },
        { name: "Act", show: ({ id, keys, name }) => keys.every(({ revokedAtMs }) => revokedAtMs !== null) ? null : <Act quiet danger name="Revoke" of={`vault ${name === "" ? id : name}`} done={done} explain="Every key of this vault ends. What was paid and is held stays with it." act={(client, reason) => client.caps.revokeVault({ payload: { vault: id, reason } })} /> }
      ]} />
    )}
    {value.log.length === 0 ? null : (
      <details className="more"><summary>The proxy's last decisions</summary>
        <Table label="The proxy's trail" rows={value.log} keyOf={({ seq }) => String(seq)} columns={[
          { name: "When", show: ({ atMs }) => <Time ms={atMs} /> },
          { name: "What", show: ({ act, path }) => <>{act} <span className="dim">{path}</span></> },
          { name: "Verdict", show: ({ code, verdict }) => <>{verdict}{code === null ? "" : ` (${code})`}</> },
          { name: "Amount", number: true, show: ({ amountMinor, currency }) => <Amount minor={amountMinor} code={currency ?? ""} /> },
          { name: "Detail", wide: true, show: ({ customer, detail, requestId }) => <>{detail ?? customer ?? (requestId === null ? <span className="dim">–</span> : null)}{requestId === null ? null : <> <code className="id" title="Stripe's Request-Id">{requestId}</code></>}</> }
        ]} />
      </details>
    )}
  </>
)

const VaultPart = () => {
  const { failed, refresh, value } = useData("vaults", (client) => client.caps.vaults(), "never")
  return <Part title="Vault keys"><Problem failed={failed} />{value === undefined ? null : <VaultTable value={value} done={refresh} />}</Part>
}

/** The page. */
export const Caps = () => {
  const session = useContext(SessionContext)
  const { failed, refresh, value } = useData("caps", (client) => client.caps.list())
  if (value === undefined) return <><Head title="Caps and vault keys" /><Problem failed={failed} /></>
  return (
    <>
      <Head title="Caps and vault keys" />
      <Problem failed={failed} />
      <Part title="The switch"><Switch caps={value} done={refresh} /></Part>
      <Part title="Caps" count={String(value.caps.length)}>
        {value.caps.length === 0 ? <Nothing>No cap is open, so that nothing is charged. A run opens one, or <code>purser cap open</code>.</Nothing> : (
          <div className="gauges">{value.caps.toReversed().map((cap) => <CapCard key={`${cap.namespace} ${cap.billingPeriod} ${cap.currency}`} cap={cap} done={refresh} />)}</div>
        )}
      </Part>
      <Part title="History of the caps" count={String(value.events.length)}>
        {value.events.length === 0 ? <Nothing>Nothing was done to a cap yet.</Nothing> : (
          <Table label="History of the caps" rows={value.events} keyOf={({ position }) => String(position)} columns={[
            { name: "When", show: ({ atMs }) => <Time ms={atMs} /> },
            { name: "Cap", show: ({ billingPeriod, currency, namespace }) => <>{billingPeriod} {currency.toUpperCase()} <span className="dim">{namespace}</span></> },
            { name: "What", show: (event) => deedOf(event) },
            { name: "Cap before", number: true, show: ({ capBeforeMinor, capMinor, currency }) => <Amount minor={capBeforeMinor === capMinor ? null : capBeforeMinor} code={currency} /> },
            { name: "Cap then", number: true, show: ({ capMinor, currency }) => <Amount minor={capMinor} code={currency} /> },
            { name: "Who", show: ({ actor }) => actor ?? <span className="dim">–</span> },
            { name: "Why", wide: true, show: ({ act, chargeKey, reason }) => <>{reason === null ? <span className="dim">–</span> : act === "opened" ? <a href={to("runs", reason.replace(/^run /, ""))}>{reason}</a> : reason}{chargeKey === null ? null : <> <a href={to("charges", chargeKey)}>charge</a></>}</> }
          ]} />
        )}
      </Part>
      {value.pauseEvents.length === 0 ? null : (
        <Part title="History of the switch">
          <Table label="History of the switch" rows={value.pauseEvents} keyOf={({ position }) => String(position)} columns={[
            { name: "When", show: ({ atMs }) => <Time ms={atMs} /> },
            { name: "What", show: ({ act }) => <State state={act === "paused" ? "paused" : "running"}>{act}</State> },
            { name: "Who", show: ({ actor, cause }) => cause === "person" ? actor : `an outage (${actor})` },
            { name: "Why", wide: true, show: ({ reason }) => reason === "" ? <span className="dim">–</span> : reason }
          ]} />
        </Part>
      )}
      {session?.vaults === true ? <VaultPart /> : <Part title="Vault keys"><Nothing>This console knows no store of vault keys (<code>PURSER_PROXY_DATABASE_URL</code>, <code>PURSER_PROXY_DATA_DIR</code>).</Nothing></Part>}
    </>
  )
}
