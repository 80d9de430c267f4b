"""A client: for each line of standard input it fetches all there is from a server.

    fetch.py ADDRESS PORT

It prints its port, how many bytes came, and how long they took in seconds, from the connection's opening to its end.
"""

import socket
import sys
import time

PIECE = 1 << 20


def main() -> None:
    """Fetch once per line of standard input."""
    address, port = sys.argv[1], int(sys.argv[2])
    buffer = bytearray(PIECE)
    for _ in sys.stdin:
        with socket.create_connection((address, port)) as connection:
            begin = time.monotonic()
            mine = connection.getsockname()[1]
            size = 0
            while count := connection.recv_into(buffer):
                size += count
            took = time.monotonic() - begin
        print(mine, size, took, flush=True)


if __name__ == "__main__":
    main()
