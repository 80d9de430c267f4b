"""A server that sends BYTES bytes to each client and closes the connection; it sets no algorithm.

    serve.py ADDRESS PORT BYTES

For each connection it prints the peer's port, and the algorithm at the end of the connection.
"""

import socket
import sys
import threading

PIECE = bytes(1 << 16)
TCP_CONGESTION = 13


def send(connection: socket.socket, port: int, size: int) -> None:
    """Send all data, wait until the peer closes, and print its port and the algorithm that the kernel used."""
    with connection:
        for at in range(0, size, len(PIECE)):
            connection.sendall(PIECE[: size - at])
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)
        name = connection.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16)
        print(port, name.rstrip(b"\0").decode(), flush=True)


def main() -> None:
    """Serve until killed."""
    address, port, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with socket.create_server((address, port), backlog=128) as listener:
        print("ready", flush=True)
        while True:
            connection, peer = listener.accept()
            threading.Thread(target=send, args=(connection, peer[1], size), daemon=True).start()


if __name__ == "__main__":
    main()
