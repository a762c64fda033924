/** Trails of charges that a test or a script put into the table itself. */
import { eventPageMax } from "../../src/internal/eventPages.ts"

/** Writes a line for each of the rows `from`, which have `charge_key`, `seq`, `from_state`, `to_state`, `worker` and `detail`, and no charge twice. */
export const linesOf = (from: string) => `with v as materialized (select *, (row_number() over (order by r.charge_key) - 1) / ${eventPageMax} as part from (${from}) r),
  g as materialized (select part, purser.next_event_page() as page from (select distinct part from v order by part) p),
  e as (
    insert into purser.charge_event_pages (page, at, keys, seqs, from_states, to_states, workers, attempts, details, principals)
    select g.page, purser.now(), array_agg(charge_key), array_agg(seq), array_agg(from_state), array_agg(to_state), array_agg(worker), array[1], array_agg(detail), null
    from v join g using (part) group by g.page
  )
  update purser.charges c set event_pages = c.event_pages || g.page from v join g using (part) where c.charge_key = v.charge_key`
