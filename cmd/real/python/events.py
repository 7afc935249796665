"""Prints KV-event messages as JSON lines: events.py ENDPOINT.

Each line has the frames as they came (in hex) and the payload decoded, bytes as
hex. The line "ready" comes first: a subscriber that joins late misses messages.
"""

import json
import sys

import msgspec
import zmq


def plain(value):
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {plain(k) if isinstance(k, str) else str(k): plain(v) for k, v in value.items()}
    return value


def main(endpoint):
    subscriber = zmq.Context().socket(zmq.SUB)
    subscriber.connect(endpoint)
    subscriber.setsockopt(zmq.SUBSCRIBE, b"")
    print("ready", flush=True)
    while True:
        frames = subscriber.recv_multipart()
        payload = msgspec.msgpack.decode(frames[-1])
        print(json.dumps({"frames": [f.hex() for f in frames], "topic": frames[0].decode(),
                          "seq": int.from_bytes(frames[1], "big"), "payload": plain(payload)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
