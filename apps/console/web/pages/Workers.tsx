/** Workers: who lives, what each holds, how fast it is. */
import { useData } from "../data.ts"
import { count, span } from "../format.ts"
import { Ago, Figure, Head, Nothing, Problem, State } from "../parts/show.tsx"
import { Table } from "../parts/Table.tsx"

/** The page. */
export const Workers = () => {
  const { failed, value } = useData("workers", (client) => client.workers.list())
  if (value === undefined) return <><Head title="Workers" /><Problem failed={failed} /></>
  const { atMs, workers } = value
  const sum = (of: (worker: (typeof workers)[number]) => number) => workers.reduce((total, worker) => total + of(worker), 0)
  return (
    <>
      <Head title="Workers" />
      <Problem failed={failed} />
      <dl className="figures">
        <Figure name="Beating">{count(workers.filter(({ life }) => life === "beating").length)}</Figure>
        <Figure name="In flight" note="charges under a lease">{count(sum(({ inFlight }) => inFlight))}</Figure>
        <Figure name="Settled" note="within the last minute">{count(sum(({ settledLastMinute }) => settledLastMinute))}</Figure>
        <Figure name="Taken over" note="within the last minute">{count(sum(({ takenOverLastMinute }) => takenOverLastMinute))}</Figure>
      </dl>
      {workers.length === 0 ? <Nothing>No worker was heard of today. <code>purser worker</code> starts one.</Nothing> : (
        <Table label="Workers" rows={workers} keyOf={({ worker }) => worker} columns={[
          { name: "Worker", show: ({ worker }) => <b>{worker}</b> },
          { name: "Life", show: ({ life }) => <State state={life}>{life === "unknown" ? "never introduced itself" : life}</State> },
          { name: "Last beat", show: ({ beatAtMs }) => <Ago ms={beatAtMs} now={atMs} /> },
          { name: "In flight", number: true, show: ({ inFlight }) => count(inFlight) },
          { name: "Settled/min", number: true, show: ({ settledLastMinute }) => count(settledLastMinute) },
          { name: "Taken over/min", number: true, show: ({ takenOverLastMinute }) => count(takenOverLastMinute) },
          { name: "Up", show: ({ life, startedAtMs }) => startedAtMs === null || life === "stopped" ? <span className="dim">–</span> : <span className="num">{span(atMs - startedAtMs)}</span> },
          { name: "Serves", wide: true, show: ({ host, pid, serves, version }) => host === null ? <span className="dim">–</span> : <>{serves} <span className="dim">on {host}, process {pid}, version {version}</span></> }
        ]} />
      )}
    </>
  )
}
