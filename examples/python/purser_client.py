"""A client of Purser's wire (docs/wire.md), joined form, over REQ: all that a producer in another language has to do."""
import hashlib, json, re, uuid
TEXT, ANY_TEXT = {str}, {str, type(None)}
OUTCOMES = {"Succeeded": {"paymentIntentId": TEXT, "chargeId": ANY_TEXT, "amountReceivedMinor": {int}}, "Processing": {"paymentIntentId": TEXT},
            "Declined": {"paymentIntentId": ANY_TEXT, "code": TEXT, "declineCode": ANY_TEXT, "detail": TEXT}, "Rejected": {"code": TEXT, "detail": TEXT},
            "RequiresAction": {"paymentIntentId": TEXT, "detail": TEXT}, "Canceled": {"paymentIntentId": ANY_TEXT, "detail": TEXT}}
FACTS = {"outcome": {tag: {**fields, "alreadySettled": {bool}} for tag, fields in OUTCOMES.items()},
         "error": {tag: {"reason": {dict}} for tag in ("LedgerError", "ChargeError", "SpendCapError", "TransportError")}}

def period_of(written):
    """A quarter has three spellings and one meaning; other periods are written in one way. Which ones exist is the worker's to say."""
    return re.sub(r"\A([0-9]{4})-?Q([1-4])\Z", r"Q\2-\1", written)

def charge_key(customer, period, item=None, namespace="zmq-billing", revision=0):
    """What an answer is recognised by. It is made of what is billed, and of nothing that a socket knows."""
    parts = [customer, period_of(period), namespace] + ([item or ""] if item or revision else []) + ([f"r{revision}"] if revision else [])
    return hashlib.sha256(":".join(part.replace("%", "%25").replace(":", "%3A") for part in parts).encode()).hexdigest()[:32]

def key_of(body):
    return charge_key(body["customer_id"], body["billing_period"], body.get("item"), body.get("namespace") or "zmq-billing", body.get("revision") or 0)

def write_requests(client, bodies, deadline_ms):
    frame = {"v": 1, "client": client, "items": [{"id": name, "deadline": deadline_ms, "body": body} for name, body in bodies.items()]}
    return json.dumps(frame, ensure_ascii=False, separators=(",", ":"))

def is_fact(kind, fact, key):
    """Of a known tag, with all that belongs to it, about the charge that was asked."""
    fields = FACTS[kind].get(fact["_tag"]) if isinstance(fact, dict) and isinstance(fact.get("_tag"), str) else None
    return (fields is not None and all(type(fact.get(name, ...)) in types for name, types in fields.items())
            and (kind == "outcome" or isinstance(fact["reason"].get("_tag"), str)) and fact.get("chargeKey") in ([key] if kind == "outcome" else [key, None]))

def read_replies(reply, bodies):
    """Answers by id, of bytes or text. One that cannot be read, or names another charge than was asked, is no answer: ask again."""
    try:
        frame = json.loads(reply.decode() if isinstance(reply, bytes) else reply, parse_constant=int)
        items = frame["items"] if type(frame["v"]) is int and frame["v"] == 1 and isinstance(frame["items"], list) else []
    except (ValueError, TypeError, KeyError, RecursionError):
        return {}
    read = [item for item in items if isinstance(item, dict) and isinstance(item.get("id"), str) and isinstance(item.get("body"), dict)]
    return {item["id"]: item["body"][kind] for item in read if item["id"] in bodies
            for kind in ("error", "outcome") if is_fact(kind, item["body"].get(kind), key_of(bodies[item["id"]]))}

def ask_once(endpoint, text, timeout_ms):
    """One REQ socket for each attempt: one that heard nothing cannot be used again (Lazy Pirate)."""
    import zmq
    with zmq.Context.instance().socket(zmq.REQ) as socket:
        socket.linger = 0
        socket.connect(endpoint)
        socket.send_string(text)
        return socket.recv() if socket.poll(timeout_ms) else None

def charge(endpoint, bodies, timeout_ms=30_000, attempts=4, ask=ask_once):
    """Charges all of `bodies`, {id: body}. What is missing in the result is UNKNOWN: call again with it, which is always safe."""
    client, answers = str(uuid.uuid4()), {}
    for _ in range(attempts):
        asked = {name: body for name, body in bodies.items() if name not in answers}
        reply = ask(endpoint, write_requests(client, asked, timeout_ms), timeout_ms) if asked else None
        answers |= read_replies(reply, asked) if reply else {}
    return answers
