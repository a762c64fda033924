/** What people did, the newest first. */
import { useData } from "../data.ts"
import { Head, Id, Nothing, Problem, Time } from "../parts/show.tsx"
import { Table } from "../parts/Table.tsx"
import { to } from "../route.ts"

/** The page. */
export const Trail = () => {
  const { failed, value } = useData("acts", (client) => client.session.acts({ query: { limit: 200 } }))
  return (
    <>
      <Head title="Trail"><span className="dim">acts at consoles; each charge's own events are in its story</span></Head>
      <Problem failed={failed} />
      {value === undefined ? null : value.acts.length === 0 ? <Nothing>Nobody has done anything here yet.</Nothing> : (
        <Table label="Acts" rows={value.acts} keyOf={({ position }) => String(position)} columns={[
          { name: "When", show: ({ atMs }) => <Time ms={atMs} /> },
          { name: "Who", show: ({ actor }) => <b>{actor}</b> },
          { name: "What", show: ({ act }) => act },
          { name: "To what", show: ({ subject }) => /^[0-9a-f]{32}$/.test(subject) ? <a href={to("charges", subject)}><Id id={subject} /></a> : subject },
          { name: "Why", wide: true, show: ({ detail, reason }) => <>{reason}{detail === null ? null : <span className="dim"> ({detail})</span>}</> }
        ]} />
      )}
    </>
  )
}
