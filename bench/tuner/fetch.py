"""A client that fetches all data from a server for each line of standard input.

    fetch.py ADDRESS PORT

It prints its port, the number of bytes received, and the seconds from the handshake to the end of the data.
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
