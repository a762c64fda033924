"""A fleet's senders as they are: pyzmq and plain JSON. Bills every customer that is named and prints each answer as a line.

usage: plain.py PATTERN ENDPOINT ACK_ENDPOINT CUSTOMER...
"""
import json
import sys

import zmq

PATTERN, ENDPOINT, ACK_ENDPOINT, *CUSTOMERS = sys.argv[1:]
PERIOD = "Q3-2026"


def bill(seq, customer):
    return {
        "customer_id": customer,
        "billing_period": PERIOD,
        "amount_cents": 4900,
        "stripe_customer_id": "cus_" + str(seq),
        "payment_method": "pm_card_visa",
        "seq": seq,
        "idempotency_key": f"{PATTERN}-{seq}",
    }


def show(direction, frames):
    print(json.dumps([direction, [frame.hex() for frame in frames]]), flush=True)


def send(socket, frames):
    show("sent", frames)
    socket.send_multipart(frames)


def receive(socket):
    if not socket.poll(20_000):
        sys.exit("no answer within 20 s")
    show("received", socket.recv_multipart())


context = zmq.Context()
bills = [json.dumps(bill(seq, customer)).encode() for seq, customer in enumerate(CUSTOMERS, 1)]

if PATTERN == "req-rep":
    socket = context.socket(zmq.REQ)
    socket.connect(ENDPOINT)
    for body in bills:
        send(socket, [body])
        receive(socket)
elif PATTERN == "router-dealer":
    socket = context.socket(zmq.DEALER)
    socket.connect(ENDPOINT)
    # With the delimiter and without it: fleets have both.
    for number, body in enumerate(bills):
        send(socket, [b"", body] if number % 2 else [body])
    for _ in bills:
        receive(socket)
elif PATTERN == "majordomo":
    # To a broker, knowing nothing of its protocol: the delimiter is a REQ socket's, which a DEALER may leave out.
    socket = context.socket(zmq.DEALER)
    socket.connect(ENDPOINT)
    for number, body in enumerate(bills):
        send(socket, [b"", body] if number % 2 else [body])
    for _ in bills:
        receive(socket)
elif PATTERN == "pub-sub":
    acks = context.socket(zmq.PULL)
    acks.bind(ACK_ENDPOINT)
    # It sees subscriptions come in, which a PUB socket does not; the messages are the same.
    socket = context.socket(zmq.XPUB)
    socket.connect(ENDPOINT)
    if not socket.poll(20_000):
        sys.exit("nobody subscribed within 20 s")
    socket.recv()
    # With a topic and without: fleets have both.
    for number, body in enumerate(bills):
        send(socket, [b"bills", body] if number % 2 else [body])
    for _ in bills:
        receive(acks)
elif PATTERN == "push-pull":
    acks = context.socket(zmq.PULL)
    acks.bind(ACK_ENDPOINT)
    socket = context.socket(zmq.PUSH)
    socket.connect(ENDPOINT)
    for body in bills:
        send(socket, [body])
    for _ in bills:
        receive(acks)
else:
    sys.exit(f"{PATTERN} is not known here")
context.destroy(linger=0)
