"""A fleet's worker as it is: pyzmq and plain JSON. It says what it charged, answers COUNT requests and ends.

usage: worker.py PATTERN ENDPOINT ACK_ENDPOINT COUNT
"""
import json
import sys

import zmq

PATTERN, ENDPOINT, ACK_ENDPOINT, COUNT = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])


def charge(body):
    request = json.loads(body)
    print(json.dumps(request), flush=True)
    return {"status": "ok", "charge_id": "ch_" + request["customer_id"]}


context = zmq.Context()
if PATTERN == "req-rep":
    socket = context.socket(zmq.REP)
    socket.bind(ENDPOINT)
    for _ in range(COUNT):
        socket.send_json(charge(socket.recv()))
elif PATTERN == "router-dealer":
    socket = context.socket(zmq.ROUTER)
    socket.bind(ENDPOINT)
    for _ in range(COUNT):
        client, body = socket.recv_multipart()
        socket.send_multipart([client, json.dumps({**charge(body), "ack_seq": json.loads(body)["seq"]}).encode()])
elif PATTERN == "push-pull":
    socket = context.socket(zmq.PULL)
    socket.bind(ENDPOINT)
    acks = context.socket(zmq.PUSH)
    acks.connect(ACK_ENDPOINT)
    for _ in range(COUNT):
        body = socket.recv()
        acks.send_json({**charge(body), "ack_seq": json.loads(body)["seq"]})
elif PATTERN == "majordomo":
    # 18/MDP as its standard has it: one request at a time, a heartbeat each second.
    socket = context.socket(zmq.DEALER)
    socket.connect(ENDPOINT)
    socket.send_multipart([b"MDPW02", b"\x01", b"charge"])
    answered = 0
    while answered < COUNT:
        frames = socket.recv_multipart() if socket.poll(1000) else None
        if frames is None or frames[1][:1] != b"\x02":
            socket.send_multipart([b"MDPW02", b"\x05"])
            continue
        reply = {**charge(frames[4]), "ack_seq": json.loads(frames[4])["seq"]}
        socket.send_multipart([b"MDPW02", b"\x04", frames[2], b"", json.dumps(reply).encode()])
        answered += 1
    socket.send_multipart([b"MDPW02", b"\x06"])
else:
    sys.exit(f"{PATTERN} is not known here")
context.destroy(linger=2000)
