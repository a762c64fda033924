/**
 * The words of the statements in SQL that keep an act from happening: conditions on what is written, and locks. Each with the tests that are
 * meant to hold it, the quicker ones first. `why`: what stands there as well, where taking it away alone changes nothing.
 */
const suite = (name) => `packages/postgres/test/${name}.test.ts`
const locked = suite("lockedRows")
const books = suite("lockedBooks")
const pages = suite("leasePages")
const lockedPages = suite("lockedPages")

/** Guards of one statement. A guard is a text that is left out, or `[text, what is written instead]`, or the same with a reason. */
const of = (file, tests, statements) =>
  Object.entries(statements).flatMap(([statement, all]) => all.map((one) => {
    const [guard, instead = "", why] = Array.isArray(one) ? one : [one]
    return { file, tests, statement, guard, instead, ...(why === undefined ? {} : { why }) }
  }))

/** The lease page that a statement writes, and a part of it that writes none. */
const pageOf = (from, more = "") => `(\${writePage("${from}")}${more})`
const noPage = "(select null::bigint as id where false)"

const atomic = "two at once wait for each other at the row that they write; the lock is for the order in which they wait"

export const guards = [
  ...of("internal/firstClaims.ts", [suite("PgLedger"), locked, books, suite("PgRunLedger"), suite("claimWithRoom"), suite("roomOfClaims"), suite("lockedTrail")], {
    isFirst: [
      [" and c.state = 'planned'", "", "an epoch of 0 says the same"],
      [" and c.lease_epoch = 0", ""],
      [" and c.state = 'planned' and c.lease_epoch = 0", ""],
      [" and c.revision = 0", "", "the key of a billing anew is another one"],
      [" and c.quarantine is null", "", "whoever puts a charge aside has had it in hand, with an epoch above 0"],
      " and ${isNext}",
      ["\n    and (c.amount_minor, c.currency, c.stripe_customer_id, c.payment_method)\n      is not distinct from (i.amount_minor, ${currency}, i.stripe_customer_id, i.payment_method)", ""]
    ],
    isRefused: [
      [" when true then purser.any_reserved(${keys})", " when true then false"],
      [" else true end", " else false end"]
    ],
    afterAlike: [
      "\n    and not c.closed",
      " and d.amount_minor <= c.cap_minor - c.reserved_minor",
      ["\n    when d.reservations > 0 and ${isRefused(\"(select reserved_apart from k)\", \"$1::text[]\")} then purser.refuse_room()", ""],
      ["case when not $13::boolean then '{}'\n    when", "case when"]
    ],
    beginOne: [
      " and not c.closed",
      " and $5::bigint <= c.cap_minor - c.reserved_minor",
      ["case when ${isRefused(\"k.reserved_apart\", \"array[$1::text]\")} then purser.refuse_room() end", "null::text[]"]
    ],
    begin: [
      " on conflict (charge_key) do nothing",
      [" order by c.namespace, c.billing_period, c.currency for update of c", "", atomic],
      "\n    and not c.closed",
      " and s.amount_minor <= c.cap_minor - c.reserved_minor"
    ]
  }),
  ...of("internal/ledgerWrites.ts", [locked, suite("PgLedger"), suite("eventPages"), suite("lockedTrail"), suite("lateRoom"), suite("roomOfClaims")], {
    claim: [
      ["      when (c.amount_minor, c.currency, c.stripe_customer_id, c.payment_method)\n        is distinct from (i.amount_minor, i.currency, i.stripe_customer_id, i.payment_method) then 'conflict'\n", ""],
      "      when c.quarantine is not null then 'quarantined'\n",
      ["      when c.state not in ${open} then 'settled'\n", ""],
      "      when c.lease_until > t.now then 'in_progress'\n",
      " and c.event_seq = f.event_seq",
      "\n    and (c.lease_until is null or c.lease_until <= t.now)"
    ],
    attachFirst: [
      [" and c.state = 'claimed'", ""],
      [" and c.payment_intent_id is null", "", "what is claimed has none"],
      " and c.lease_epoch = i.epoch",
      " and c.generation = i.generation",
      "\n    and ${isNext}"
    ],
    attach: [
      [" and c.generation = i.generation then\n", " then\n"],
      ["case when c.lease_epoch = i.epoch and c.state = 'attached'", "case when c.state = 'attached'"],
      [" and c.state = 'attached' and coalesce(", " and coalesce("],
      [" and coalesce(c.attached_payment_method, c.chosen_payment_method, c.payment_method) is null", ""],
      ["when c.lease_epoch = i.epoch and c.state = 'claimed'", "when c.state = 'claimed'"],
      [" and c.state = 'claimed' and c.payment_intent_id is null", " and c.payment_intent_id is null"],
      [" and c.payment_intent_id is null and", " and", "what is claimed has none"],
      [" and c.generation = i.generation then 'free'", " then 'free'"],
      " and c.event_seq = f.event_seq"
    ],
    isPaid: [
      " and c.state = 'attached'",
      " and c.lease_epoch = 1",
      [" and c.attempt = 1", "", "the attempt never moves without the epoch"],
      " and c.payment_intent_id = ${object}"
    ],
    settlePaid: [" and ${isNext}"],
    settleOne: [" and ${isNextTo(\"ep.page\")}"],
    settle: [
      [" and c.payment_intent_id = i.proof_id", ""],
      [" and c.state <> 'succeeded' then 'moves'", " then 'moves'"],
      ["      when c.lease_epoch = i.epoch and c.attempt = i.attempt and", "      when c.attempt = i.attempt and"],
      ["when c.lease_epoch = i.epoch and c.attempt = i.attempt and", "when c.lease_epoch = i.epoch and"],
      [" and c.state in ${held}\n", "\n"],
      [" and c.event_seq = f.event_seq", ""]
    ],
    ours: ["c.lease_epoch = i.epoch and ", "c.state in ${held} and ", " and c.quarantine is null"],
    extend: [
      ["case when ${ours} then 'ours' else 'lost' end", "'ours'", "the write asks again"],
      " and ${ours}"
    ],
    handBack: [
      " where ${ours}",
      ["${newPageAfter(\"f\")}", "${newPage}"]
    ],
    markReleased: [
      [" and c.attempt = i.attempt and c.release_due", " and c.release_due"],
      [" and c.attempt = i.attempt and c.release_due", " and c.attempt = i.attempt", "what is false is written as false"],
      [" and c.xmin = f.version", ""],
      ["r.taken is null and ", ""],
      " and r.attempt <= i.attempt",
      " and (c.room_attempt is null or c.room_attempt > i.attempt)",
      " or c.room_attempt > i.attempt"
    ],
    renew: [
      " and o.event_seq = c.event_seq",
      [" and c.lease_epoch = $3::bigint", " and $3::bigint is not null"],
      [" and c.generation = $4::integer", " and $4::integer is not null", "an object belongs to one generation"],
      [" and c.payment_intent_id = $5::text", " and $5::text is not null"],
      " and c.state in ${held}"
    ],
    quarantine: [" and c.quarantine is null"],
    reopen: [
      [" and c.state = any($2::text[])", " and $2::text[] is not null"],
      [" and c.state in ('declined', 'rejected', 'requires_action')", ""],
      ["\n    and ($6::integer is null or c.attempt = $6::integer)", " and ($6::integer is null or true)"],
      " for update",
      ["${newPageAfter(\"f\")}", "${newPage}"]
    ]
  }),
  ...of("internal/ledgerWrites.ts", [pages, lockedPages], {
    claim: [[pageOf("w"), noPage]],
    settle: [
      [pageOf("u"), noPage],
      [" and c.quarantine is null then t.now", " then t.now"],
      ["unpaid = f.state not in ('succeeded', 'processing'), ", ""]
    ],
    extend: [["greatest(c.lease_until, ", "("]],
    handBack: [[pageOf("u"), noPage]],
    reopen: [[pageOf("u"), noPage], ["unpaid = false,", "unpaid = c.unpaid,"]]
  }),
  ...of("internal/firstClaims.ts", [pages, lockedPages], {
    beginNew: [["(${writeLeases(\"$1::text[]\", shared.lease, \"d\")} returning id)", noPage]],
    beginOne: [["(${writeLeases(\"array[$1::text]\", shared.lease, \"e\")} returning id)", noPage]],
    beginPlanned: [["(${writePage(`(select charge_key, purser.now() + ${shared.lease} as lease_until from u) u`)} returning id)", noPage]],
    begin: [["(${writePage(`(select charge_key, purser.now() + ${lease} as lease_until from o) o`)} returning id)", noPage]]
  }),
  ...of("internal/attentionSql.ts", [pages], { endQuarantine: [[pageOf("u"), noPage]], hasten: [[pageOf("u"), noPage]] }),
  ...of("internal/ledgerWrites.ts", [suite("consoleReads")], { handBack: ["lease_worker = null, "] }),
  ...of("internal/attentionSql.ts", [suite("consoleReads"), suite("lockedTrail")], {
    hasten: [" and c.lease_worker is null", " and c.lease_until > (select now from t)", "\n  for update"]
  }),
  ...of("internal/watchSql.ts", [pages], { adopt: [[pageOf("w"), noPage], " unpaid = false,"] }),
  ...of("internal/leasePages.ts", [pages, lockedPages], {
    writePage: [
      ["least(min(lease_until), purser.now() + ${longest})", "purser.now() + ${longest}"],
      ["least(min(lease_until),", "least(max(lease_until),"],
      " where lease_until is not null",
      " having count(*) > 0"
    ],
    dropPages: [" and keys && ${charges}::text[]"],
    turnPages: [
      ["select lease_until, true, array[charge_key] from h where ran_out\n  union all\n  ", ""],
      ["min(lease_until), false", "max(lease_until), false"],
      ["from h where not ran_out)", "from h where false)"],
      [" and c.lease_until is not null", "", "without a lease a charge is of neither part"],
      " for update skip locked",
      " skip locked"
    ]
  }),
  ...of("internal/takeOverSql.ts", [locked, pages, lockedPages, suite("PgLedger")], {
    takeExpired: [
      ["limit $2::integer for update skip locked", "limit $2::integer"],
      ["limit $2::integer for update skip locked", "limit $2::integer for update"],
      "c.lease_until <= (select now from t) and ",
      [" and c.quarantine is null and c.state in ${held}\n  for update", "\n  for update", "what is put aside or over has no lease that could run out"],
      ["\n  for update skip locked", ""],
      ["\n  for update skip locked", "\n  for update"],
      [" and c.quarantine is null and c.state in ${held} offset 0", " offset 0", "what is put aside or over has no lease"],
      ["(select charge_key, lease_until from u union all ", "("],
      [" union all select h.charge_key, h.lease_until from h cross join t where h.lease_until > t.now", ""],
      ["select t.now, true, array[h.charge_key] from h cross join t where h.lease_until <= t.now", "select t.now, true, array[h.charge_key] from h cross join t where false"],
      " and not exists (select 1 from u where u.charge_key = h.charge_key)"
    ],
    takeWaiting: [
      " and c.state in ('processing', 'requires_action')",
      " and c.quarantine is null",
      "\n  for update",
      [pageOf("u"), noPage],
      " unpaid = false,"
    ]
  }),
  ...of("internal/watchSql.ts", [locked, suite("PgLedger"), suite("watch")], {
    adopt: [
      " and c.payment_intent_id is null",
      " and c.quarantine is null",
      ["\n    and (c.state in ('planned', 'rejected', 'declined') or (c.state = 'claimed' and c.lease_until <= t.now))", ""],
      [" and c.lease_until <= t.now", ""],
      ["\n    and (c.amount_minor, c.currency, c.stripe_customer_id) = ($6::bigint, $7::text, $8::text)", ""],
      "\n  for update of c",
      [" and p.state = 'succeeded'", ""],
      ["\n    and not exists (select 1 from purser.charges s where s.revises = $16::text)", "", "what bills the same charge anew has the same key"],
      ["\n    and not exists (select 1 from purser.charges c where c.charge_key = $1::text)", "", "two rows of one key cannot be"],
      "\n  on conflict (charge_key) do nothing"
    ]
  }),
  ...of("internal/watchSql.ts", [books, suite("watch")], {
    take: [" where due_at <= purser.now()", " for update skip locked", " skip locked"],
    finish: [" and verdict is null"],
    postpone: [" and verdict is null"],
    purge: [["received_at < purser.now() - $1::float8 * interval '1 millisecond'", "$1::float8 is not null"], " and verdict is not null"]
  }),
  ...of("internal/watchSql.ts", [suite("watch"), suite("retention")], {
    unlist: [" and resolved_at is null"],
    unknown: ["resolved_at is null and "],
    beginBook: [["where book_id = $1::text or booked_at", "where $1::text is not null or booked_at"], [" or booked_at < purser.now() - interval '1 day'", ""]],
    addObjects: ["\non conflict (book_id, id) do update set charge_key = excluded.charge_key, object = excluded.object, booked_at = excluded.booked_at"],
    booked: [["where book_id = $1::text and", "where $1::text is not null and"]],
    withoutRow: [["where book_id = $1::text and", "where $1::text is not null and"]],
    discardBook: [["where book_id = $1::text", "where $1::text is not null"]]
  }),
  ...of("internal/callSql.ts", [suite("retention")], { forget: [["where at < purser.now() - make_interval(secs => $1::float8)", "where $1::float8 is not null"]] }),
  ...of("internal/capSql.ts", [suite("stores"), suite("PgSpendCap")], {
    open: [
      [" where q.namespace = $1::text and q.billing_period = $2::text and q.currency = $3::text\n    and", " where"],
      ["\n    and not exists (select 1 from purser.cap_reservations r where r.charge_key = q.charge_key)", "", "what is noted has found no cap, and so holds nothing"],
      [" using n where q.namespace = n.namespace and q.billing_period = n.billing_period and q.currency = n.currency", " using n"],
      " where q.taken_minor > n.cap_minor",
      "\n  on conflict (namespace, billing_period, currency) do nothing"
    ],
    close: [" and not closed"],
    reopen: [[" and closed\n", "\n"]]
  }),
  ...of("internal/capSql.ts", [locked, suite("lateRoom"), suite("roomOfClaims")], {
    open: [["count(*) > 0 from q", "false from q"]],
    takeRoom: [
      [" where state = 'succeeded')", ")", "the write asks again; here it is for who need not wait for the cap"],
      [" for update", "", atomic],
      [" where u.state = 'succeeded' and u.room_attempt is null", " where u.room_attempt is null"],
      [" and u.room_attempt is null", ""],
      ["on conflict (charge_key) do nothing\n  returning charge_key, ${scope}, amount_minor", "returning charge_key, ${scope}, amount_minor"],
      " where over_minor > 0",
      ["rows between 1 following and unbounded following", "rows between unbounded preceding and 1 preceding"]
    ]
  }),
  ...of("migrations/0003_create_cap_functions.ts", [locked, suite("PgSpendCap"), suite("claimWithRoom"), suite("lateRoom"), suite("roomOfClaims")], {
    reserve: [
      [", reserved_apart = true", ""],
      ["    order by c.namespace, c.billing_period, c.currency\n    for update;", "    ;"],
      [" and r.attempt < w.attempt", "", "the greatest of both is written"],
      ["cap.open and not cap.closed and wished", "cap.open and wished"],
      [" and wished <= cap.lid - taken", ""],
      ["      elsif wish.holds then\n        verdict := 'held';\n", ""],
      ["      elsif cap.closed and not wish.force then\n        verdict := 'closed';\n", ""],
      ["      elsif wish.amount > cap.lid - taken and not wish.force then\n        verdict := 'exceeded';\n", ""],
      ["        order by u.k\n        on conflict (charge_key) do nothing", "        order by u.k"],
      [" and x.currency = w.currency for update", " and x.currency = w.currency"],
      ["        if wish.force then\n          insert", "        if true then\n          insert"],
      ["if wish.force and not exists (select 1 from purser.cap_events e where e.charge_key = wish.k and e.act = 'forced') then", "if false then"],
      [" where e.charge_key = wish.k and e.act", " where e.act"],
      [" and c.state in ('declined', 'rejected', 'canceled') and c.attempt", " and c.attempt"],
      " and c.attempt >= u.a",
      [" for update of c;", ";"],
      [" or c.room_attempt < u.a)", ")", "the row is written all the same; the lock is for the order in which two wait"],
      [" and c.room_attempt < w.attempt", " and c.room_attempt is not null"],
      " and m.holds is null",
      " or m.holds is not null"
    ],
    withMark: [" and c.room_attempt is not null"],
    release: [
      ["    order by c.namespace, c.billing_period, c.currency\n    for update;", "    ;", "a reservation is deleted by one; the lock is for the order in which two wait"],
      [" and r.attempt <= w.attempt", ""],
      "\n      and not exists (select 1 from purser.charges c where c.charge_key = w.k and c.state = 'succeeded')",
      "  delete from purser.cap_uncovered q using unnest(keys, attempts) as u(k, a) where q.charge_key = u.k and q.attempt <= u.a;\n",
      [" and q.attempt <= u.a", ""],
      [" and c.room_attempt is not null order by c.charge_key for update of c;", " and false;", "the row is written all the same; the lock is for the order in which two wait"],
      [" and c.room_attempt <= w.attempt", " and c.room_attempt is not null"],
      [" and c.room_attempt <= w.attempt", ""],
      " and c.state <> 'succeeded'"
    ]
  }),
  ...of("internal/refundSql.ts", [books, suite("PgRefundLedger")], {
    lockCharge: [" for no key update"],
    held: [
      [" and payment_intent_id = $2::text", " and $2::text is not null"],
      " and state in ('requested', 'pending', 'succeeded', 'already_refunded')"
    ],
    stored: [" for no key update"],
    take: [[" and r.state in ${open}", "", "the row is held since it was looked at"]],
    again: [[" and r.state = 'refused'", "", "the row is held since it was looked at"]],
    lockRefund: [" for no key update"],
    extend: [[" and r.lease_epoch = $2::bigint", " and $2::bigint is not null"], " and r.state in ${open}"],
    handBack: [[" and r.lease_epoch = $3::bigint", " and $3::bigint is not null"], " and r.state in ${open}"],
    takeExpired: [
      "r.lease_until <= (select now from t) and ",
      [" and r.state in ${open}", "", "what is over has no lease that could run out"],
      " for update skip locked",
      " skip locked"
    ],
    lockRevision: [" for no key update"]
  }),
  ...of("internal/runSql.ts", [suite("roomOfClaims")], { totals: [" or c.room_attempt is not null"] }),
  ...of("internal/runSql.ts", [books, suite("PgRunLedger"), suite("claimWithRoom")], {
    begin: ["\n  where purser.runs.planned_at is null"],
    stage: ["\non conflict (run_id, line) do nothing"],
    lockRun: [["on conflict (run_id) do update set source = purser.runs.source returning", "on conflict (run_id) do nothing returning"]],
    plan: [" and revision = 0"],
    planRows: [["\"on conflict (charge_key) do nothing\"", "\"\""]],
    markSettled: [" and c.state not in ${open}"],
    setPlanned: [["coalesce(planned, $2::bigint)", "$2::bigint"], ["coalesce(present, $3::bigint)", "$3::bigint"]],
    discard: [" and planned_at is null"],
    pending: [
      " and c.state in ${open}",
      " and c.quarantine is null",
      " and not (${conflict})",
      ["\n  and (c.lease_until is null or c.lease_until <= purser.now())", ""]
    ],
    unpaid: [" and c.quarantine is null", " and not (${conflict})"],
    absorb: [
      [" and not exists (select 1 from purser.run_rows r where r.run_id = $1::text and r.charge_key = f.charge_key)", ""],
      [" and planned_at is null", ""]
    ]
  }),
  ...of("internal/registrySql.ts", [books, suite("PgRunRegistry")], {
    lockDigest: [["pg_advisory_xact_lock(hashtextextended('purser.run_registry ' || $1::text, 0))", "$1::text"]],
    inHand: [" and ended_at is null", [" and params ->> 'digest' = $1::text", " and $1::text is not null"], " and not ${isLost(\"r\")}"],
    register: ["\n  on conflict (name) do nothing"],
    change: [[" and state = any($2::text[])", " and $2::text[] is not null"]],
    extend: [" and state in (${over})"],
    note: [" for update", " and b.runner is distinct from $2::text"]
  }),
  ...of("internal/dunningSql.ts", [books, suite("PgDunningBook")], {
    insertCases: ["\n  on conflict do nothing"],
    open: [" and c.state = 'declined'", " and c.quarantine is null", " for update"],
    openDue: [
      ["c.quarantine is null and c.settled_at", "c.settled_at"],
      "where c.dunning_due ",
      " for update skip locked",
      " skip locked",
      " where f.is_new"
    ],
    started: [" and workflow = 'due'"],
    waits: [[" and step = $2::integer", " and $2::integer is not null"], " and goes_on_at is not null"],
    close: [
      " and state = 'open'",
      [
        "($2::text = 'new_method' and c.state = 'declined') from u\n  where c.charge_key = u.charge_key and c.dunning_due <> ($2::text = 'new_method' and c.state = 'declined')",
        "($2::text = 'new_method') from u\n  where c.charge_key = u.charge_key and c.dunning_due <> ($2::text = 'new_method')",
        "a charge at work has no time since which it stands, and `openDue` passes over it"
      ]
    ],
    offer: [
      [" and d.state = 'open'\nreturning", "\nreturning"],
      [" and d.state = 'open'\n    and (", "\n    and (", "the write asks again"],
      "\n    and ($5::text is null or c.attached_payment_method is distinct from $5::text)",
      ["($5::text is null or c.namespace = any($6::text[]))", "$6::text[] is not null"]
    ],
    roomMade: [[" and d.state = 'open'\nreturning", "\nreturning"], ["d.state = 'open' and d.detail", "d.detail", "the write asks again"], " and d.detail is not null"]
  }),
  ...of("internal/pauseSql.ts", [suite("pause")], {
    pause: ["\n  on conflict (cause) do nothing"]
  }),
  ...of("internal/retentionSql.ts", [suite("PgRunRegistry"), suite("retention"), "test/e2e/test/pruneStore.test.ts"], {
    sweepOf: [["replies} where $3::boolean and", "replies} where $3::boolean is not null and"], ["messages} where $3::boolean and", "messages} where $3::boolean is not null and"]],
    pruneExecutions: [
      ["m.processed and ", "", "what has its last reply is processed"],
      ["r.id < $1::bigint", "$1::bigint is not null"],
      "\n    and (r.payload::jsonb ->> '_tag' = 'Failure' or r.payload::jsonb #>> '{value,_tag}' = 'Complete')"
    ],
    pruneRuns: [
      ["g.state in (${over}) and ", "", "what has ended is over"],
      "\n    and not exists (select 1 from ended g where g.run_id = r.run_id and not g.is_old)",
      ["c.settled_at is null or ", ""],
      " or c.state = 'requires_action'",
      " or c.quarantine is not null",
      "\n  and not exists (select 1 from purser.run_conflicts x where x.run_id = o.run_id and x.resolved_at is null)",
      ["purser.run_rows where $3::boolean and", "purser.run_rows where $3::boolean is not null and"],
      ["purser.run_registry where $3::boolean and", "purser.run_registry where $3::boolean is not null and"]
    ],
    pruneDunning: [
      ["d.state <> 'open' and ", "", "an open case has no end that could be old"],
      " d.workflow = 'over' and",
      ["exists (select 1 from purser.charges c where c.charge_key = d.charge_key and c.state = 'succeeded' and c.quarantine is null)", "true"],
      ["where $3::boolean and", "where $3::boolean is not null and"]
    ],
    pruneWebhooks: ["due_at is null and ", ["where $3::boolean and", "where $3::boolean is not null and"]]
  }),
  ...of("migrations/0008_create_feed.ts", [suite("PgEventLog")], {
    sequence_events: [
      "    perform pg_advisory_xact_lock(${lock});\n",
      "    if h.bound >= pg_snapshot_xmax(pg_current_snapshot()) then h.bound := null; end if;\n",
      "\n        and not exists (select 1 from purser.feed_log f where f.position = e.position offset 0)",
      ["if horizon >= h.bound then", "if true then"]
    ],
    trim_feed: [
      ["    perform pg_advisory_xact_lock(${lock});\n", "", "who trims and who gives places write the same row, and wait for each other there"],
      ["coalesce((select min(a.sequence) - 1 from (select f.sequence from purser.feed_log f where f.position > h.low offset 0) a), h.last)", "h.last"]
    ]
  })
]
