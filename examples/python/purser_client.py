"""A client of Purser's wire (docs/wire.md), joined form, over REQ: all that a producer in another language has to do."""
import hashlib, json, re, uuid


def period_of(written):
    """A quarter has three spellings and one meaning; other periods are written in one way."""
    quarter = re.fullmatch(r"(\d{4})-?Q([1-4])", written)
    return f"Q{quarter[2]}-{quarter[1]}" if quarter else written


def charge_key(customer, period, item=None, namespace="zmq-billing", revision=0):
    """What an answer is recognised by. It is made of what is billed, and of nothing that a socket knows."""
    parts = [customer, period_of(period), namespace] + ([item or ""] if item or revision else []) + ([f"r{revision}"] if revision else [])
    text = ":".join(part.replace("%", "%25").replace(":", "%3A") for part in parts)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def key_of(body):
    return charge_key(body["customer_id"], body["billing_period"], body.get("item"), body.get("namespace") or "zmq-billing", body.get("revision") or 0)


def write_requests(client, bodies, deadline_ms):
    items = [{"id": name, "deadline": deadline_ms, "body": body} for name, body in bodies.items()]
    return json.dumps({"v": 1, "client": client, "items": items}, ensure_ascii=False, separators=(",", ":"))


def read_replies(text, bodies):
    """Answers by id. One that cannot be read, or names another charge than was asked, is no answer: ask again."""
    answers = {}
    try:
        items = [item for item in json.loads(text)["items"] if isinstance(item, dict) and isinstance(item.get("body"), dict)]
    except (ValueError, TypeError, KeyError):
        return answers
    for item in items:
        kind = "outcome" if "outcome" in item["body"] else "error"
        name, fact = item.get("id"), item["body"].get(kind)
        if name in bodies and isinstance(fact, dict) and fact.get("chargeKey") in [key_of(bodies[name])] + [None] * (kind == "error"):
            answers[name] = fact
    return answers


class ZmqLine:
    """One REQ socket for each attempt: one that heard nothing cannot be used again (Lazy Pirate)."""
    def ask(self, endpoint, text, timeout_ms):
        import zmq
        with zmq.Context.instance().socket(zmq.REQ) as socket:
            socket.linger = 0
            socket.connect(endpoint)
            socket.send_string(text)
            return socket.recv_string() if socket.poll(timeout_ms) else None


def charge(endpoint, bodies, timeout_ms=30_000, attempts=4, line=ZmqLine()):
    """Charges all of `bodies`, {id: body}. What is missing in the result is UNKNOWN: call again with it, which is always safe."""
    client, answers = str(uuid.uuid4()), {}
    for _ in range(attempts):
        asked = {name: body for name, body in bodies.items() if name not in answers}
        text = line.ask(endpoint, write_requests(client, asked, timeout_ms), timeout_ms) if asked else None
        answers |= read_replies(text, asked) if text else {}
    return answers
