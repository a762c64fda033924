/**
 * The global order of the ledger's events, for those who follow them.
 *
 * The page of `charge_events`, with which a line's position begins, is drawn while a transaction runs, so that positions become visible
 * out of order, and those of a transaction that was rolled back never do. A reader that remembers the highest position would step over whatever
 * commits later below it. So places are given afterwards: `sequence_events` gives the next ones to all events that are
 * visible and have none, and keeps them in `feed_log`. It looks again at every position above `low`; `low` moves up to
 * `mark` only when each transaction that could still make an event visible below `mark` is over, which is when the
 * oldest running transaction began after `bound`. A transaction that runs for long delays that and nothing else.
 *
 * Why `bound` is right: positions are drawn in order, so that whoever drew one below a position that is visible had drawn
 * it by then; a writer has its transaction id before it draws (`next_event_page` asks for it first); `bound` is the id of the
 * sequencing transaction, drawn after it saw that position. So all of them have smaller ids than `bound`.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** The lock of those who give places: the letters "feed" as a number. */
const lock = 1717921124n

/** Positions that a page of the trail has. */
const eventPage = 1024

const statements: ReadonlyArray<string> = [
  `create table purser.feed_head (
    id boolean primary key default true check (id),
    last bigint not null default 0,
    trimmed_to bigint not null default 0,
    low bigint not null default 0,
    high bigint not null default 0,
    mark bigint not null default 0,
    bound xid8
  ) with (fillfactor = 20)`,
  `insert into purser.feed_head default values`,
  `create table purser.feed_log (
    sequence bigint primary key,
    position bigint not null unique
  )`,
  `create table purser.feed_epochs (
    epoch text primary key,
    begun_at timestamptz not null,
    after_sequence bigint not null
  )`,

  `create function purser.sequence_events(batch integer, out last bigint, out trimmed_to bigint, out more boolean)
  language plpgsql as $$
  declare
    h purser.feed_head;
    newest bigint;
    horizon xid8;
    given bigint;
  begin
    -- An id of ours that is older than what we see would make bound too small.
    if pg_current_xact_id_if_assigned() is not null then
      raise exception 'sequence_events must be the first statement of its transaction';
    end if;
    perform pg_advisory_xact_lock(${lock});
    select * into strict h from purser.feed_head;
    -- A bound from the future is of another server: the database was restored there, and what ran then is over.
    if h.bound >= pg_snapshot_xmax(pg_current_snapshot()) then h.bound := null; end if;

    select max(n.position), count(*) >= batch into newest, more
      from (select e.position from purser.charge_events e where e.page > h.high - ${eventPage} and e.position > h.high order by e.page, e.position limit batch) n;
    newest := coalesce(newest, h.high);
    last := h.last;
    trimmed_to := h.trimmed_to;
    if h.low = newest then return; end if;

    -- Before the look at the events: what was over by then is seen by it.
    horizon := pg_snapshot_xmin(pg_current_snapshot());
    insert into purser.feed_log (sequence, position)
      select h.last + row_number() over (order by e.position), e.position
      from purser.charge_events e
      where e.page > h.low - ${eventPage} and e.page <= newest and e.position > h.low and e.position <= newest
        and not exists (select 1 from purser.feed_log f where f.position = e.position offset 0);
    get diagnostics given = row_count;
    last := h.last + given;

    if h.bound is not null then
      if horizon >= h.bound then
        h.low := h.mark;
        h.bound := null;
      elsif given = 0 and newest = h.high then
        return;
      end if;
    end if;
    if h.bound is null and newest > h.low then
      h.mark := newest;
      h.bound := pg_current_xact_id();
    end if;
    update purser.feed_head f set last = sequence_events.last, low = h.low, high = newest, mark = h.mark, bound = h.bound;
  end $$`,

  // Places above low stay: they are how an event is known to have one. There are few of them, and `offset 0` keeps the planner
  // from looking for the first of them along all sequences instead.
  `create function purser.trim_feed(keep bigint, batch bigint, out last bigint, out trimmed_to bigint)
  language plpgsql as $$
  declare
    h purser.feed_head;
  begin
    perform pg_advisory_xact_lock(${lock});
    select * into strict h from purser.feed_head;
    last := h.last;
    trimmed_to := greatest(h.trimmed_to, least(
      h.last - keep,
      h.trimmed_to + batch,
      coalesce((select min(a.sequence) - 1 from (select f.sequence from purser.feed_log f where f.position > h.low offset 0) a), h.last)
    ));
    if trimmed_to > h.trimmed_to then
      delete from purser.feed_log f where f.sequence > h.trimmed_to and f.sequence <= trim_feed.trimmed_to;
      update purser.feed_head f set trimmed_to = trim_feed.trimmed_to;
    end if;
  end $$`
]

/** Applies the migration. */
export default Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
