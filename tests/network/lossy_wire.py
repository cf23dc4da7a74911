"""A switch with latency and loss, for kernels without netem. Run in the network namespace that has the hosts' far ends:

    python lossy_wire.py DELAY_SECONDS LOSS SEED INTERFACE...

It learns who is where as a switch does, and holds each frame back for the delay. A line on standard input ends it; it
then prints how many frames it forwarded and how many it lost.
"""

import heapq
import random
import select
import socket
import sys
import time

ETH_P_ALL, OUTGOING = 3, 4
FRAME_BYTES = 65_535


def main():
    delay, loss, rng = float(sys.argv[1]), float(sys.argv[2]), random.Random(int(sys.argv[3]))
    ports = []
    for name in sys.argv[4:]:
        port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        port.bind((name, ETH_P_ALL))
        ports.append(port)
    print("ready", flush=True)
    where, waiting, count, lost = {}, [], 0, 0
    while True:
        left = None if not waiting else max(waiting[0][0] - time.monotonic(), 0.0)
        readable, _, _ = select.select([*ports, sys.stdin], [], [], left)
        for port in readable:
            if port is sys.stdin:
                print(count, lost)
                return
            frame, (_, _, kind, _, _) = port.recvfrom(FRAME_BYTES)
            if kind == OUTGOING:  # this program's own
                continue
            to, sender = frame[:6], frame[6:12]
            where[sender] = port
            count += 1
            if rng.random() < loss:
                lost += 1
                continue
            ends = [where[to]] if to in where else [other for other in ports if other is not port]
            heapq.heappush(waiting, (time.monotonic() + delay, count, frame, ends))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, frame, ends = heapq.heappop(waiting)
            for end in ends:
                end.send(frame)


if __name__ == "__main__":
    main()
