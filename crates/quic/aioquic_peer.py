"""A server and a client on aioquic, with the options and the protocol of `thalweg-quic-peer`.

    python crates/quic/aioquic_peer.py server aioquic-newreno --address 10.0.0.1 --port 4433 --qlog qlog
    python crates/quic/aioquic_peer.py client aioquic-newreno --address 10.0.0.1 --port 4433 --size 1000000

The client exits with 0 only if all bytes have arrived. At the end of a connection the server prints the congestion
control that the stack has used.
"""

import argparse
import asyncio
import sys
from pathlib import Path

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.congestion.cubic import CubicCongestionControl
from aioquic.quic.congestion.reno import RenoCongestionControl
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated, QuicEvent
from aioquic.quic.logger import QuicFileLogger

CERTIFICATE = Path(__file__).parent / "certificate" / "cert.pem"
KEY = CERTIFICATE.with_name("key.pem")
ALGORITHMS = {"aioquic-cubic": "cubic", "aioquic-newreno": "reno"}
"""Names of senders, and aioquic's names of their algorithms; it has no BBR."""

CONTROLLERS = {CubicCongestionControl: "cubic", RenoCongestionControl: "newreno"}

WINDOW_BYTES = 256 * 1024 * 1024
"""Flow control window: congestion control is the limit on any path of a study."""

CHUNK_BYTES = 64 * 1024
"""Bytes that are handed to the stack at a time."""

BUFFER_BYTES = 4 * 1024 * 1024
"""Bytes of a stream that may be unsent or not acknowledged: above any window of a study."""

POLL_S = 0.002
"""Interval between checks of a full buffer."""

SIZE_BYTES = 8
"""Length of the request: the size, big-endian."""


class ReportedConnection(QuicConnectionProtocol):
    """A connection of the server, whose congestion control is printed at its end."""

    def quic_event_received(self, event: QuicEvent) -> None:
        """Handle an event of the connection."""
        super().quic_event_received(event)
        if isinstance(event, ConnectionTerminated):
            controller = type(self._quic._loss._cc)  # aioquic has no public name of it
            _report(f"connection: stack=aioquic cc={CONTROLLERS.get(controller, controller.__name__)}")


def main() -> int:
    """Run a peer; return the exit code."""
    options = _parser().parse_args()
    try:
        return asyncio.run(_serve(options) if options.role == "server" else _fetch(options))
    except OSError as error:
        return _fail(options, str(error) or "the connection was lost")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    roles = parser.add_subparsers(dest="role", required=True)
    for role in ("server", "client"):
        options = roles.add_parser(role)
        options.add_argument("sender", choices=ALGORITHMS, help="stack, and congestion control of the server")
        options.add_argument("--address", default="127.0.0.1", help="address of the server")
        options.add_argument("--port", type=int, default=4433, help="port of the server")
        options.add_argument(
            "--idle-timeout", type=float, default=10.0, help="seconds without a packet after which a connection ends"
        )
        options.add_argument("--qlog", type=Path, help="folder for a qlog file per connection")
    roles.choices["client"].add_argument("--size", type=int, required=True, help="bytes to receive")
    return parser


def _configuration(options: argparse.Namespace) -> QuicConfiguration:
    configuration = QuicConfiguration(
        is_client=options.role == "client",
        congestion_control_algorithm=ALGORITHMS[options.sender],
        idle_timeout=options.idle_timeout,
        max_data=WINDOW_BYTES,
        max_stream_data=WINDOW_BYTES,
        server_name="localhost",
    )
    if options.qlog:
        options.qlog.mkdir(parents=True, exist_ok=True)
        configuration.quic_logger = QuicFileLogger(str(options.qlog))
    return configuration


async def _serve(options: argparse.Namespace) -> int:
    configuration = _configuration(options)
    configuration.load_cert_chain(CERTIFICATE, KEY)
    answers = set()

    def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answer = asyncio.ensure_future(_answer(reader, writer))
        answers.add(answer)
        answer.add_done_callback(answers.discard)

    await serve(
        options.address,
        options.port,
        configuration=configuration,
        create_protocol=ReportedConnection,
        stream_handler=handle,
    )
    _report(f"listening on {options.address}:{options.port}")
    await asyncio.Event().wait()
    return 0


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    left = int.from_bytes(await reader.readexactly(SIZE_BYTES), "big")
    connection = writer.transport.protocol._quic  # aioquic does not report the unacknowledged part of a stream
    sender = connection._streams[writer.get_extra_info("stream_id")].sender
    while left:
        if len(sender._buffer) < BUFFER_BYTES:
            count = min(left, CHUNK_BYTES)
            writer.write(bytes(count))
            left -= count
        else:
            await asyncio.sleep(POLL_S)
        await asyncio.sleep(0)
    writer.write_eof()


async def _fetch(options: argparse.Namespace) -> int:
    configuration = _configuration(options)
    configuration.load_verify_locations(cafile=str(CERTIFICATE))
    # aioquic's connect() is not used, because it opens IPv6 sockets: kernels of the engine `uml` have only IPv4.
    transport, client = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: QuicConnectionProtocol(QuicConnection(configuration=configuration)),
        remote_addr=(options.address, options.port),
    )
    client.connect(transport.get_extra_info("peername"))
    await client.wait_connected()
    received = await _receive(client, options.size)
    client.close()
    await client.wait_closed()
    transport.close()
    if received != options.size:
        return _fail(options, f"{received} bytes arrived, {options.size} were expected")
    return 0


async def _receive(client: QuicConnectionProtocol, size: int) -> int:
    """Request `size` bytes; return the number of those that arrived."""
    reader, writer = await client.create_stream()
    writer.write(size.to_bytes(SIZE_BYTES, "big"))
    writer.write_eof()
    received = 0
    while chunk := await reader.read(65536):
        received += len(chunk)
    return received


def _report(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _fail(options: argparse.Namespace, reason: str) -> int:
    sys.stderr.write(f"aioquic_peer: {options.role} at {options.address}:{options.port}: {reason}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
