/** Runs: which there are, and one of them as it goes. */
import { useRef, useState } from "react"
import type { Run, RunView } from "../../src/api/Shapes.ts"
import { call, type Failed } from "../client.ts"
import { useData } from "../data.ts"
import { amount, count, percent, rate, span, words } from "../format.ts"
import { useLive } from "../live.ts"
import { Act } from "../parts/Act.tsx"
import { CapGauge, type Share, StackBar, StackChart } from "../parts/charts.tsx"
import { toneOf } from "../parts/marks.tsx"
import { Ago, Amount, Figure, Head, Nothing, orderOf, Part, Problem, State, Time } from "../parts/show.tsx"
import { Table } from "../parts/Table.tsx"
import { to } from "../route.ts"

/** The name that somebody gave, else the file's. */
const nameOf = (run: Run) => run.name !== null && run.name !== run.runId ? run.name : run.source === "" ? run.runId : run.source.split("/").at(-1)!

const RunList = ({ chosen, now, runs }: { readonly runs: ReadonlyArray<Run>; readonly chosen: string | undefined; readonly now: number }) => (
  <ul className="picks" aria-label="Runs">
    {runs.map((run) => (
      <li key={run.runId}>
        <a href={to("runs", run.runId)} aria-current={run.runId === chosen ? "true" : undefined}>
          <span className="pick-name">{nameOf(run)}</span>
          <State state={run.state} />
          <span className="dim num">{count(run.rows)} rows{run.abandoned === null ? "" : ", nobody is there"}</span>
          <Ago ms={run.begunAtMs} now={now} />
        </a>
      </li>
    ))}
  </ul>
)

const sharesOf = (view: RunView): ReadonlyArray<Share> => {
  const rows = new Map<string, number>()
  // In the words of the drawing below it.
  for (const group of view.groups) {
    const name = group.state === "claimed" || group.state === "attached" ? "in work" : group.state === "planned" || group.state === "staged" ? "waiting" : group.state
    rows.set(name, (rows.get(name) ?? 0) + group.rows)
  }
  return [...rows].toSorted(([a], [b]) => orderOf(a) - orderOf(b)).map(([name, n]) => ({ name: words(name), tone: toneOf(name), n }))
}

const Acts = ({ refresh, run }: { readonly run: Run; readonly refresh: () => void }) => {
  const params = { runId: run.runId }
  return (
    <>
      {run.acts.includes("pause") ? <Act name="Pause run" of={nameOf(run)} done={refresh} explain="Nothing more of this run is sent. What was sent settles." act={(client, reason) => client.runs.pause({ params, payload: { reason } })} /> : null}
      {run.acts.includes("resume") ? <Act name="Resume run" of={nameOf(run)} done={refresh} explain="The run goes on where it stood." act={(client, reason) => client.runs.resume({ params, payload: { reason } })} /> : null}
      {run.acts.includes("cancel") ? <Act danger name="Cancel run" of={nameOf(run)} done={refresh} explain="Nothing more of this run is sent, ever. What was sent settles; what was paid stays paid." act={(client, reason) => client.runs.cancel({ params, payload: { reason } })} /> : null}
    </>
  )
}

const PauseAll = ({ done }: { readonly done: () => void }) => {
  const { pulse } = useLive()
  if ((pulse?.pauses.length ?? 0) > 0) return null
  return <Act danger name="Pause all charging" of="all charging of this database" done={done} explain="Every process on this database stops asking Stripe. Calls that are under way end, work waits, and nothing is lost." act={(client, reason) => client.runs.pauseCharging({ payload: { reason } })} />
}

const receivedText = (view: RunView) => {
  const sums = new Map<string, { readonly rows: number; readonly minor: bigint }>()
  for (const { currency, receivedMinor, rows } of view.groups) {
    const before = sums.get(currency) ?? { rows: 0, minor: 0n }
    sums.set(currency, { rows: before.rows + rows, minor: before.minor + receivedMinor })
  }
  // The currency of most rows first.
  return [...sums].toSorted(([, a], [, b]) => b.rows - a.rows).map(([code, { minor }]) => [code, minor] as const)
}

const Detail = ({ runId }: { readonly runId: string }) => {
  const { failed, refresh, value: view } = useData(`run ${runId}`, (client) => client.runs.view({ params: { runId } }))
  if (view === undefined) return <div className="detail"><Problem failed={failed} /></div>
  const { run } = view
  const shares = sharesOf(view)
  const rows = Math.max(run.rows, shares.reduce((sum, { n }) => sum + n, 0))
  const settled = rows - view.open - view.forPerson
  const isOver = view.open === 0 && view.forPerson === 0
  const waits = view.forPerson === 0 ? null : <>, <a href={to("attention")}>{count(view.forPerson)} {view.forPerson === 1 ? "waits" : "wait"} for a person</a></>
  const before = view.groups.reduce((sum, { settledBefore }) => sum + settledBefore, 0)
  return (
    <article className="detail" aria-label={`Run ${nameOf(run)}`}>
      <Head title={nameOf(run)}>
        <State state={isOver && run.state === "planned" ? "finished" : run.state}>{isOver && run.state === "planned" ? "all settled" : undefined}</State>
        <div className="acts"><Acts run={run} refresh={refresh} /><PauseAll done={refresh} /></div>
      </Head>
      <Problem failed={failed} />
      {run.abandoned === null ? null : <p className="problem">{run.abandoned.slice(0, 1).toUpperCase()}{run.abandoned.slice(1)}.</p>}
      {run.whyNot === null ? null : <p className="sub dim">{run.acts.length === 0 ? "Nothing can be done with this run from here" : "Not all can be done with this run from here"}: {run.whyNot}.</p>}
      <p className="sub dim"><code className="id" title={run.runId}>{run.runId}</code> begun <Time ms={run.begunAtMs} now={view.atMs} />{run.runner === null ? null : <> on {run.runner}</>}{run.step === null ? null : <>, at {run.step}</>}{run.detail === null ? null : <>: {run.detail}</>}</p>
      <dl className="figures">
        {rows > 0 && before === rows
          ? <Figure name="Charged" note={`all ${count(rows)} rows were settled before`}>nothing new</Figure>
          : <Figure name="Settled" note={<>{count(settled)} of {count(rows)} rows{waits}</>}>{percent(settled, rows)}</Figure>}
        <Figure name="Rate" note={view.held ? "held" : view.settledWithinMs < 59_000 ? `over ${span(view.settledWithinMs)}` : "over the last minute"}>{view.held ? "–" : rate(view.settledPerSecond)}</Figure>
        <Figure name="Time left" note={view.held ? "held" : view.leftMs === null ? (isOver ? "nothing is open" : run.abandoned !== null ? "nobody is there" : view.open === 0 ? "a person has to look" : "nothing settles") : <>about <Time ms={view.atMs + view.leftMs} now={view.atMs} /></>}>{view.leftMs === null ? "–" : span(view.leftMs)}</Figure>
        <Figure name="Received" note={receivedText(view).length > 1 ? receivedText(view).slice(1).map(([code, minor]) => `${amount(minor, code)} ${code.toUpperCase()}`).join(", ") : undefined}>
          {receivedText(view).slice(0, 1).map(([code, minor]) => <Amount key={code} minor={minor} code={code} />)}{receivedText(view).length === 0 ? "–" : null}
        </Figure>
      </dl>
      <StackBar label="Rows by state" shares={shares} />
      <StackChart slices={view.slices} />
      <Part title="By state">
        <Table compact label="Rows of the run by state" rows={view.groups.toSorted((a, b) => a.currency.localeCompare(b.currency) || orderOf(a.state) - orderOf(b.state))} keyOf={({ billingPeriod, currency, namespace, state }) => `${namespace} ${billingPeriod} ${currency} ${state}`} columns={[
          { name: "State", show: ({ state }) => <State state={state} /> },
          { name: "Period", show: ({ billingPeriod, state }) => state === "conflict" ? <a href={to("attention")}>{billingPeriod}</a> : state === "staged" ? billingPeriod : <a href={to("charges", undefined, { period: billingPeriod, state })}>{billingPeriod}</a> },
          { name: "Rows", number: true, show: (group) => count(group.rows) },
          { name: "Billed", number: true, show: ({ amountMinor, currency }) => <Amount minor={amountMinor} code={currency} /> },
          { name: "Received", number: true, show: ({ currency, receivedMinor }) => <Amount minor={receivedMinor} code={currency} /> },
          ...(before === 0 ? [] : [{ name: "Before this run", number: true, show: ({ settledBefore }: RunView["groups"][number]) => settledBefore === 0 ? <span className="dim">–</span> : count(settledBefore) }])
        ]} />
      </Part>
      {view.caps.length === 0 ? null : <Part title="Caps"><div className="gauges">{view.caps.map((cap) => <CapGauge key={`${cap.namespace} ${cap.billingPeriod} ${cap.currency}`} cap={cap} />)}</div></Part>}
      {view.events.length === 0 ? null : (
        <Part title="What happened">
          <Table label="Events of the run" rows={view.events.toReversed()} keyOf={({ act, atMs }) => `${atMs} ${act}`} columns={[
            { name: "When", show: ({ atMs }) => <Time ms={atMs} now={view.atMs} /> },
            { name: "What", show: ({ act }) => <State state={act} /> },
            { name: "Who", show: ({ actor }) => actor },
            { name: "Why", wide: true, show: ({ detail }) => detail ?? <span className="dim">–</span> }
          ]} />
        </Part>
      )}
    </article>
  )
}

const moving: ReadonlySet<string> = new Set(["waiting", "running", "paused", "canceling"])

/** The newest runs as they stand, those that are not over, and older ones as far as they were asked for. */
const useRuns = () => {
  const { failed, value } = useData("runs", (client) => client.runs.list({ query: {} }))
  const known = useRef(new Map<string, Run>())
  const [older, setOlder] = useState<{ readonly next: number | null | undefined; readonly busy: boolean; readonly failed: Failed | undefined }>({ next: undefined, busy: false, failed: undefined })
  // What has left the newest page since stays on the list.
  for (const run of value?.runs ?? []) known.current.set(run.runId, run)
  const next = older.next === undefined ? value?.next ?? null : older.next
  const more = () => {
    if (next === null || older.busy) return
    setOlder((before) => ({ ...before, busy: true }))
    void call((client) => client.runs.list({ query: { before: next } })).then((called) => {
      if (called.ok) for (const run of called.value.runs) if (!known.current.has(run.runId)) known.current.set(run.runId, run)
      setOlder((before) => called.ok ? { next: called.value.next, busy: false, failed: undefined } : { ...before, busy: false, failed: called.failed })
    })
  }
  return {
    newest: value?.runs[0]?.runId,
    // What may still move is not to be looked for among what is over.
    runs: value === undefined ? undefined : [...known.current.values()].toSorted((a, b) => Number(moving.has(b.state)) - Number(moving.has(a.state)) || b.begunAtMs - a.begunAtMs),
    atMs: value?.atMs ?? 0,
    failed: failed ?? older.failed,
    busy: older.busy,
    more: next === null ? undefined : more
  }
}

/** The page; without a run it shows the newest. */
export const Runs = ({ runId }: { readonly runId: string | undefined }) => {
  const { atMs, busy, failed, more, newest, runs } = useRuns()
  const chosen = runId ?? newest
  return (
    <div className={`split ${runId === undefined ? "none-chosen" : ""}`}>
      <section className="side" aria-label="All runs">
        <h2>Runs</h2>
        <Problem failed={failed} />
        {runs === undefined ? null : runs.length === 0
          ? <Nothing>No run yet. <code>purser run FILE</code> begins one.</Nothing>
          : <RunList runs={runs} chosen={chosen} now={atMs} />}
        {more === undefined ? null : <button type="button" className="button small" disabled={busy} onClick={more}>Older runs</button>}
      </section>
      {chosen === undefined ? <div className="detail"><Head title="Runs"><div className="acts"><PauseAll done={() => undefined} /></div></Head></div> : <Detail key={chosen} runId={chosen} />}
    </div>
  )
}

