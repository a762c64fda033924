/**
 * `purser.decide`: in one statement, what came of earlier calls is written down (`purser.record`), and then it is decided about new ones. It takes both as
 * JSON, locks their vaults in the order of their ids, and only then looks, so that all processes of one store together permit exactly what fits.
 *
 * A key that Stripe may have forgotten (it keeps them for at least 24 hours) begins a new round, which is counted again:
 * after that time the same key is a new payment at Stripe.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const decide = `create function purser.decide(batch jsonb, outcomes jsonb)
returns table (ord integer, verdict text, code text, vault_id text, seq bigint, hold_id bigint, round integer,
  cap_minor bigint, used_minor bigint, period text, vault_currency text, first_key text, first_route text, request_body text, answer text, object_id text, object_kind text)
language plpgsql as $$
declare
  c record;
  v purser.vaults%rowtype;
  h purser.holds%rowtype;
  k purser.calls%rowtype;
  killed boolean;
  known boolean;
  again boolean;
  current text;
  dirty boolean := false;
  alarmed boolean := false;
begin
  if outcomes = '[]' and jsonb_array_length(batch) = 1 then
    -- The usual batch where calls are few, whose one vault is found without a join and a sort.
    perform 1 from purser.vaults w where w.id = (select y.vault_id from purser.vault_keys y where y.key_hash = batch -> 0 ->> 'keyHash') for update;
  else
    perform 1 from purser.vaults w where w.id in (
        select y.vault_id from purser.vault_keys y where y.key_hash in (select b ->> 'keyHash' from jsonb_array_elements(batch) b)
        union all select b ->> 'vaultId' from jsonb_array_elements(outcomes) b
      ) order by w.id for update;
  end if;
  if outcomes <> '[]' then alarmed := purser.record(outcomes); end if;
  if batch = '[]' then
    -- What came of calls may be lost with the machine: their room stands until their keys come again. What is decided may not.
    if not alarmed then perform set_config('synchronous_commit', 'off', true); end if;
    return;
  end if;
  select s.killed into killed from purser.kill_switch s;
  for c in
    select x.*, y.vault_id as opens, y.expires_at, y.revoked_at from jsonb_to_recordset(batch) as x("ord" integer, "keyHash" text, "kind" text, "method" text, "path" text, "key" text,
      "fingerprint" text, "amountMinor" bigint, "currency" text, "customer" text, "period" text, "account" text, "intentId" text, "body" text, "fetched" boolean, "problem" text)
      left join purser.vault_keys y on y.key_hash = x."keyHash" order by y.vault_id, x.ord
  loop
    ord := c.ord; verdict := 'permitted'; code := null; vault_id := null; hold_id := null; round := 0;
    first_key := null; first_route := null; request_body := null; answer := null; object_id := null; object_kind := null; seq := null; known := false; again := false;
    -- Calls of one vault follow each other, and its row is written once for all of them.
    if c.opens is distinct from current or current is null then
      if dirty then
        update purser.vaults w set calls = v.calls, held_minor = v.held_minor, refunded_minor = v.refunded_minor where w.id = v.id;
      end if;
      select * into v from purser.vaults w where w.id = c.opens;
      current := c.opens; dirty := false;
    end if;
    h := null;
    if v.id is null then
      verdict := 'refused'; code := 'vault_key_unknown';
    else
      vault_id := v.id;
      if killed then code := 'vault_kill_switch';
      elsif c.revoked_at is not null then code := 'vault_key_revoked';
      elsif c.expires_at is not null and c.expires_at <= purser.now() then code := 'vault_key_expired';
      elsif c.kind = 'closed' or not ((c.method || ' ' || c.path) ~ any (v.allow_pattern)) then code := 'endpoint_not_allowed';
      elsif c.problem is not null then code := c.problem;
      elsif c.period <> v.billing_period then code := 'period_not_allowed';
      end if;

      if code is null and c.kind in ('charge', 'intent', 'confirm', 'refund') then
        select * into k from purser.calls x where x.vault_id = v.id and x.idempotency_key = c.key order by x.round desc limit 1;
        known := found and k.first_at > purser.now() - interval '23 hours';
        round := case when known then k.round else coalesce(k.round, 0) + 1 end;
        if known and k.fingerprint <> c.fingerprint then
          code := case when k.route = c.method || ' ' || c.path then 'idempotency_key_reused' else 'idempotency_key_of_other_route' end;
        elsif k.stopped then
          code := 'idempotency_key_stopped';
        end if;
        h := null;
        if code is null and known then
          select * into h from purser.holds x where x.id = k.hold_id;
        elsif code is null and c.kind = 'confirm' then
          select * into h from purser.holds x where x.vault_id = v.id and x.intent_id = c."intentId";
          if h.id is null and not coalesce(c.fetched, false) then verdict := 'unknown_intent'; end if;
        end if;

        -- One paid charge for each customer, whatever the keys say: a second one gets the first one's answer.
        if code is null and verdict = 'permitted' and v.duplicate_guard and not known and c.kind in ('charge', 'intent', 'confirm') then
          if c.kind = 'confirm' and h.id is not null then
            if h.state = 'paid' and h.answer is not null then
              verdict := 'duplicate'; hold_id := h.id; answer := h.answer;
            end if;
          elsif c.currency is distinct from v.currency and h.id is null then
            code := 'currency_not_allowed';
          elsif c.customer is null then
            code := 'customer_required';
          else
            select * into h from purser.holds x where x.vault_id = v.id and x.customer = c.customer and x.account = c.account and x.state <> 'released'
              order by x.state = 'paid' desc, x.answer is not null desc, x.id desc limit 1;
            if h.id is not null then
              hold_id := h.id;
              if c.kind = 'confirm' or h.amount_minor <> c."amountMinor" or h.kind <> c.kind then
                code := 'duplicate_differs';
              elsif h.answer is not null then
                -- What is not paid yet may be by now: Stripe is asked before its old answer is given again.
                verdict := case when h.state = 'paid' or h.object_id is null then 'duplicate' else 'look' end;
                answer := h.answer; object_id := h.object_id; object_kind := h.kind;
              else
                verdict := 'resumed'; first_key := h.first_key; request_body := h.request_body;
                select * into k from purser.calls x where x.vault_id = v.id and x.idempotency_key = h.first_key order by x.round desc limit 1;
                select * into h from purser.holds x where x.id = k.hold_id;
                round := k.round; first_route := k.route;
                if k.first_at <= purser.now() - interval '23 hours' then code := 'duplicate_in_doubt';
                elsif k.stopped then code := 'idempotency_key_stopped';
                end if;
              end if;
            end if;
          end if;
        end if;

        if code is null and verdict in ('permitted', 'resumed') then
          -- Stripe answered the last attempt with a 5xx and may have forgotten it: this one may pay a second time.
          again := (known or verdict = 'resumed') and c.kind in ('charge', 'intent') and coalesce(h.state = 'held' and h.doubtful and not k.remembered, false);
          if verdict = 'permitted' and not known and v.max_calls is not null and v.calls >= v.max_calls then
            code := 'call_limit_reached';
          elsif c.kind = 'refund' then
            if not known or k.refund_minor is null then
              if v.refunded_minor + c."amountMinor" > v.paid_minor then code := 'refund_limit_exceeded';
              else v.refunded_minor := v.refunded_minor + c."amountMinor"; dirty := true;
              end if;
            end if;
          elsif v.customers is not null and not (coalesce(h.customer, c.customer, '') = any (v.customers)) then
            code := 'customer_not_allowed';
          elsif h.id is null or h.state = 'released' or again then
            -- Room is taken here and nowhere else.
            if h.id is null and c.currency is distinct from v.currency then code := 'currency_not_allowed';
            elsif v.max_per_charge_minor is not null and coalesce(h.amount_minor, c."amountMinor") > v.max_per_charge_minor then code := 'charge_too_large';
            elsif v.held_minor + v.paid_minor + coalesce(h.amount_minor, c."amountMinor") > v.cap_minor then code := 'spend_cap_exceeded';
            elsif h.id is null then
              insert into purser.holds (vault_id, kind, account, customer, amount_minor, state, intent_id, object_id, first_key, request_body, made_at)
                values (v.id, case when c.kind = 'confirm' then 'intent' else c.kind end, c.account, c.customer, c."amountMinor", 'held', c."intentId", c."intentId", c.key,
                  case when v.duplicate_guard then c.body end, purser.now())
                returning * into h;
            elsif again then
              insert into purser.holds (vault_id, kind, account, customer, amount_minor, state, first_key, request_body, earlier_id, made_at)
                values (v.id, h.kind, h.account, h.customer, h.amount_minor, 'held', h.first_key, h.request_body, h.id, purser.now())
                returning * into h;
            else
              update purser.holds x set state = 'held', open = x.open + 1, earlier_id = null, request_body = case when v.duplicate_guard then coalesce(x.request_body, c.body) end where x.id = h.id;
            end if;
            if code is null then v.held_minor := v.held_minor + h.amount_minor; dirty := true; end if;
          elsif known or verdict = 'resumed' then
            update purser.holds x set open = x.open + 1 where x.id = h.id;
          end if;
          hold_id := h.id;
        end if;
      end if;
    end if;

    if code is not null then verdict := 'refused'; end if;
    cap_minor := v.cap_minor; used_minor := v.held_minor + v.paid_minor; period := v.billing_period; vault_currency := v.currency;
    if verdict = 'unknown_intent' then
      return next;
      continue;
    end if;
    if verdict = 'permitted' then
      if c.kind in ('charge', 'intent', 'confirm', 'refund') then
        if known then
          -- Counted before, as a call too.
          verdict := 'replayed';
          update purser.calls x set doubts = x.doubts + 1, hold_id = h.id, refund_minor = case when c.kind = 'refund' then c."amountMinor" end
            where x.vault_id = v.id and x.idempotency_key = c.key and x.round = k.round;
        else
          insert into purser.calls (vault_id, idempotency_key, round, fingerprint, route, hold_id, refund_minor, doubts, final, first_at)
            values (v.id, c.key, decide.round, c.fingerprint, c.method || ' ' || c.path, h.id, case when c.kind = 'refund' then c."amountMinor" end, 1, false, purser.now());
        end if;
      end if;
    elsif verdict = 'resumed' then
      update purser.calls x set doubts = x.doubts + 1, hold_id = h.id where x.vault_id = v.id and x.idempotency_key = decide.first_key and x.round = k.round;
    end if;
    if verdict = 'permitted' then
      v.calls := v.calls + 1; dirty := true;
    end if;
    insert into purser.audit (at, vault_id, act, method, path, amount_minor, currency, customer, idempotency_key, verdict, code)
      values (purser.now(), vault_id, 'decision', c.method, c.path, coalesce(h.amount_minor, c."amountMinor"), coalesce(c.currency, v.currency),
        coalesce(h.customer, c.customer), c.key, verdict, code)
      returning audit.seq into decide.seq;
    return next;
  end loop;
  if dirty then
    update purser.vaults w set calls = v.calls, held_minor = v.held_minor, refunded_minor = v.refunded_minor where w.id = v.id;
  end if;
end $$`

const record = `create function purser.record(batch jsonb) returns boolean language plpgsql as $$
declare
  c record;
  v purser.vaults%rowtype;
  h purser.holds%rowtype;
  k purser.calls%rowtype;
  earlier bigint;
  amount bigint;
  in_doubt boolean;
  alarmed boolean := false;
  dirty boolean := false;
begin
  for c in
    select x.* from jsonb_to_recordset(batch) as x("ord" integer, "seq" bigint, "vaultId" text, "kind" text, "key" text, "round" integer, "holdId" bigint,
      "effect" text, "objectId" text, "intentId" text, "amountMinor" bigint, "status" integer, "requestId" text, "replayed" boolean, "detail" text, "answer" text) order by x."vaultId", x.ord
  loop
    if c."vaultId" is distinct from v.id then
      if dirty then
        update purser.vaults w set held_minor = v.held_minor, paid_minor = v.paid_minor, refunded_minor = v.refunded_minor, payments = v.payments where w.id = v.id;
      end if;
      select * into v from purser.vaults w where w.id = c."vaultId";
      dirty := false;
    end if;
    h := null; k := null;
    if c.kind in ('charge', 'intent', 'confirm', 'refund') then
      update purser.calls x set
          doubts = case when c.effect in ('paid', 'held', 'declined', 'canceled', 'read') then 0 when c.effect = 'nothing' then greatest(x.doubts - 1, 0) else x.doubts end,
          final = x.final or c.effect in ('paid', 'held', 'declined', 'canceled', 'read'),
          remembered = x.remembered or c.replayed,
          stopped = x.stopped or c.effect in ('paid', 'held') and coalesce(x.object_id <> c."objectId", false),
          object_id = coalesce(x.object_id, c."objectId")
        where x.vault_id = c."vaultId" and x.idempotency_key = c.key and x.round = c.round
        returning * into k;
    end if;
    if k.refund_minor is not null and (c.effect = 'declined' or c.effect = 'nothing' and k.doubts = 0 and not k.final) then
      update purser.calls x set refund_minor = null where x.vault_id = k.vault_id and x.idempotency_key = k.idempotency_key and x.round = k.round;
      v.refunded_minor := v.refunded_minor - k.refund_minor; dirty := true;
    end if;
    if c."holdId" is not null then
      select * into h from purser.holds x where x.id = c."holdId";
    elsif c."intentId" is not null then
      select * into h from purser.holds x where x.vault_id = c."vaultId" and x.intent_id = c."intentId";
    end if;
    in_doubt := c.effect = 'unknown' and c.status >= 500 and not c.replayed and c.kind in ('charge', 'intent');
    if h.earlier_id is not null and h.state = 'released' and c.replayed and k.hold_id = h.earlier_id then
      -- Written down before.
      select * into h from purser.holds x where x.id = k.hold_id;
    end if;
    if h.earlier_id is not null and h.state = 'held' and h.object_id is null and not h.doubtful and h.open <= 1 and (c.effect = 'nothing' or c.replayed) then
      -- This attempt did nothing of its own, or was given an earlier one's answer: its room is free, and the answer belongs to the hold before.
      earlier := h.earlier_id;
      update purser.holds x set state = 'released', request_body = null where x.id = h.id;
      update purser.calls x set hold_id = earlier where x.vault_id = v.id and x.idempotency_key = c.key and x.round = c.round;
      v.held_minor := v.held_minor - h.amount_minor; dirty := true;
      select * into h from purser.holds x where x.id = earlier;
      if c.replayed and c.effect <> 'unknown' then
        update purser.holds x set doubtful = false where x.id = h.id;
        h.doubtful := false;
      end if;
    elsif h.state = 'held' and c.effect = 'nothing' then
      update purser.holds x set open = greatest(x.open - 1, 0) where x.id = h.id;
    end if;
    if h.state = 'held' and h.doubtful and not c.replayed and c.kind in ('charge', 'intent') and (c.effect in ('paid', 'held') or in_doubt) then
      -- Two attempts were under way in one room, and the other one was answered with a 5xx: each may have paid. Both are counted, whether they fit or not.
      insert into purser.holds (vault_id, kind, account, customer, amount_minor, state, first_key, request_body, doubtful, made_at)
        values (v.id, h.kind, h.account, h.customer, h.amount_minor, 'held', h.first_key, h.request_body, true, purser.now());
      v.held_minor := v.held_minor + h.amount_minor; dirty := true; alarmed := true;
      insert into purser.audit (at, vault_id, act, decision, idempotency_key, amount_minor, currency, customer, verdict, code, status, request_id, detail)
        values (purser.now(), v.id, 'alarm', c.seq, c.key, h.amount_minor, v.currency, h.customer, c.effect, 'attempts_overlapped', c.status, c."requestId",
          'two attempts with this key were under way at once, and the other one was answered with a 5xx: both are counted');
      update purser.holds x set doubtful = in_doubt where x.id = h.id;
      h.doubtful := in_doubt;
    elsif h.state = 'held' and in_doubt then
      update purser.holds x set doubtful = true where x.id = h.id;
      h.doubtful := true;
    end if;
    if h.id is not null and k.object_id <> c."objectId" then
      -- One key has two objects: Stripe has carried it out twice. The second is counted too, whether it fits or not, and the key ends.
      if c.effect in ('paid', 'held') and not exists (select 1 from purser.holds x where x.vault_id = v.id and x.object_id = c."objectId") then
        insert into purser.holds (vault_id, kind, account, customer, amount_minor, state, intent_id, object_id, first_key, answer, made_at)
          values (v.id, h.kind, h.account, h.customer, coalesce(c."amountMinor", h.amount_minor), c.effect, c."intentId", c."objectId", c.key, c.answer, purser.now());
        amount := coalesce(c."amountMinor", h.amount_minor);
        if c.effect = 'paid' then v.paid_minor := v.paid_minor + amount; v.payments := v.payments + 1;
        else v.held_minor := v.held_minor + amount;
        end if;
        dirty := true; alarmed := true;
        insert into purser.audit (at, vault_id, act, decision, idempotency_key, amount_minor, currency, customer, verdict, code, status, request_id, detail)
          values (purser.now(), v.id, 'alarm', c.seq, c.key, amount, v.currency, h.customer, c.effect, 'stripe_repeated_a_key', c.status, c."requestId",
            'this key was answered with ' || k.object_id || ' before, now with ' || c."objectId" || ': both are counted, and the key is stopped');
      end if;
    elsif h.id is not null then
      if h.object_id is null and c."objectId" is not null and c.effect in ('paid', 'held') then
        update purser.holds x set object_id = c."objectId" where x.id = h.id;
      end if;
      if c.kind in ('charge', 'intent') and h.intent_id is null and c."intentId" is not null then
        -- An intent that is bound to another hold already (a replay past the window) keeps that one.
        if not exists (select 1 from purser.holds x where x.vault_id = h.vault_id and x.intent_id = c."intentId") then
          update purser.holds x set intent_id = c."intentId" where x.id = h.id;
        end if;
      end if;
      if c.effect = 'paid' and h.state <> 'paid' then
        -- The money has moved: what was really taken counts, whether it fits or not.
        amount := greatest(h.amount_minor, coalesce(c."amountMinor", 0));
        update purser.holds x set state = 'paid', amount_minor = amount where x.id = h.id;
        v.paid_minor := v.paid_minor + amount; v.payments := v.payments + 1; dirty := true;
        if h.state = 'held' then v.held_minor := v.held_minor - h.amount_minor; end if;
        if v.duplicate_guard and exists (
          select 1 from purser.holds x where x.vault_id = v.id and x.customer = h.customer and x.account = h.account and x.state = 'paid' and x.id <> h.id
        ) then
          alarmed := true;
          insert into purser.audit (at, vault_id, act, decision, idempotency_key, amount_minor, currency, customer, verdict, code, status, request_id, detail)
            values (purser.now(), v.id, 'alarm', c.seq, c.key, amount, v.currency, h.customer, 'paid', 'customer_paid_twice', c.status, c."requestId",
              'this customer has another paid charge under the duplicate guard');
        end if;
      elsif h.state = 'held' and (
        c.effect = 'canceled' and (h.intent_id is null and not h.doubtful or h.intent_id is not distinct from c."intentId")
        or c.kind in ('charge', 'intent') and h.intent_id is null and not h.doubtful and (c.effect = 'declined' or c.effect = 'nothing' and k.doubts = 0 and not k.final)
        -- A confirmation that took room for an intent of others, and is the only one that did.
        or c.kind = 'confirm' and c.effect = 'nothing' and h.first_key = c.key and not k.final
          and not exists (select 1 from purser.calls x where x.hold_id = h.id and (x.doubts > 0 or x.final))
      ) then
        update purser.holds x set state = 'released', request_body = null where x.id = h.id;
        v.held_minor := v.held_minor - h.amount_minor; dirty := true;
      end if;
      if v.duplicate_guard and c.answer is not null and (c.effect = 'paid' or c.effect = 'held' and h.state = 'held') then
        update purser.holds x set answer = c.answer, request_body = null where x.id = h.id;
      end if;
    end if;
    insert into purser.audit (at, vault_id, act, decision, idempotency_key, amount_minor, currency, verdict, status, request_id, detail)
      values (purser.now(), c."vaultId", 'result', c.seq, c.key, h.amount_minor, case when h.id is not null then v.currency end, c.effect, c.status, c."requestId", c.detail);
  end loop;
  if dirty then
    update purser.vaults w set held_minor = v.held_minor, paid_minor = v.paid_minor, refunded_minor = v.refunded_minor, payments = v.payments where w.id = v.id;
  end if;
  return alarmed;
end $$`

export default Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  yield* sql.unsafe(decide)
  yield* sql.unsafe(record)
})
