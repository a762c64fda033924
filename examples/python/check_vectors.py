"""Holds the client against docs/wire/vectors.json: python3 check_vectors.py VECTORS"""
import json
import sys

import producer
import purser_client as client


def stands_twice(text):
    """Whether an object in the text has a name twice, which `json.loads` does not tell."""
    def read(pairs):
        found.append(len(dict(pairs)) < len(pairs))
        return dict(pairs)
    found = []
    json.loads(text, object_pairs_hook=read)
    return any(found)


vectors = json.load(open(sys.argv[1], encoding="utf-8"))
held = 0


def same(what, ours, theirs):
    global held
    if ours != theirs:
        sys.exit(f"{what}: {ours!r} is not {theirs!r}")
    held += 1


for one in vectors["keys"]:
    same(one["text"], client.charge_key(one["customer_id"], one["billing_period"], one.get("item"), one["namespace"], one.get("revision", 0)), one["charge_key"])
for one in vectors["periods"]:
    if one["read"] is not None:
        same(one["written"], client.period_of(one["written"]), one["read"])
same("exponents", producer.DIGITS, vectors["exponents"])
for one in vectors["amounts"]:
    try:
        read = producer.money(one["amount"], one["currency"])[0]
    except ValueError:
        read = None
    same(f"{one['amount']} {one['currency']}", read, one["amount_minor"])
for one in vectors["joined"] + vectors["plain"]:
    if stands_twice(one["request"]):
        # Receivers refuse it, so that a client must not write it; ours cannot.
        read = one["items"][-1:] if "items" in one else [one]
        same(one["name"], [item["charge_key"] for item in read], [None] * len(read))
for one in vectors["joined"]:
    if one["written_by_clients"]:
        frame = json.loads(one["request"])
        bodies = {item["id"]: item["body"] for item in frame["items"]}
        same(one["name"], json.loads(client.write_requests(frame["client"], bodies, frame["items"][0]["deadline"])), frame)
    for item, read in zip(json.loads(one["request"]).get("items", []), one["items"]):
        if read["charge_key"] is not None:
            same(one["name"], client.key_of(item["body"]), read["charge_key"])
for one in vectors["plain"]:
    if one["charge_key"] is not None:
        same(one["name"], client.key_of(json.loads(one["request"])), one["charge_key"])
for one in vectors["joined_replies"]:
    for reply in (one["reply"], one["reply"].encode()):
        same(one["name"], {name: fact["_tag"] for name, fact in client.read_replies(reply, one["asked"]).items()}, one["answers"])
paid = vectors["joined_replies"][0]
for name, reply in [("not UTF-8", paid["reply"].encode().replace(b"pi_1", b"pi_\xff")), ("UTF-16", paid["reply"].encode("utf-16")), ("too deep", "[" * 100_000), ("nothing", b"")]:
    same(name, client.read_replies(reply, paid["asked"]), {})
print(f"{held} vectors hold")
