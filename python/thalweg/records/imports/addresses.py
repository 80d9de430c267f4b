"""Formats of addresses in a record: complete, truncated to the network, or hashed with a key."""

import hashlib
import hmac
import re
import shlex
import string
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import Literal, get_args

from thalweg.errors import ThalwegError
from thalweg.files import read_regular
from thalweg.records.imports.items import ImportedRow, Unread
from thalweg.records.imports.values import count

AddressForm = Literal["whole", "truncated", "hashed"]
FORMS: tuple[str, ...] = get_args(AddressForm)

KEPT_BITS = {4: 24, 6: 48}
"""Prefix lengths of truncated IPv4 and IPv6 addresses."""
DIGITS = 16
"""Hexadecimal digits of a hash: 64 bits."""

KEY = Path("/var/lib/thalweg/address.key")
"""Default path of the agent's key."""
MADE_BYTES = 32
"""Bytes of a new key: the length of the hash (RFC 2104, section 3)."""
LARGEST_KEY = 4096

MIN_BYTES = 16
"""Minimum length of a key in bytes; shorter keys could be found by brute force."""
OTHERS = 0o077
"""Permissions of users other than the owner of a file."""

MAX_PORT = 65_535

Address = IPv4Address | IPv6Address


@dataclass(frozen=True)
class Addresses:
    """Conversion of addresses to their format in records."""

    form: AddressForm = "truncated"
    key: bytes = field(default=b"", repr=False)

    def text(self, address: Address) -> str:
        """Return an address in the format of records.

        >>> Addresses().text(IPv4Address("198.51.100.7")), Addresses().text(IPv6Address("2001:db8:1:2::3"))
        ('198.51.100.0/24', '2001:db8:1::/48')
        >>> Addresses("hashed", b"secret").text(IPv4Address("198.51.100.7"))
        'h:73a92d6adb7d024a'
        """
        return _text(self.form, self.key, address)


@lru_cache(maxsize=65_536)
def _text(form: AddressForm, key: bytes, address: Address) -> str:
    if form == "whole":
        return str(address)
    if form == "truncated":
        return str(ip_network((address, KEPT_BITS[address.version]), strict=False))
    return "h:" + hmac.new(key, address.packed, hashlib.sha256).hexdigest()[:DIGITS]


BRACKETED = re.compile(r"\[([^\[\]]+)\](?:%[^:\[\]]+)?(?::(\d{1,5}))?", re.ASCII)
"""An address in brackets, with an optional interface and port."""
WITH_PORT = re.compile(r"([\d.]+)(?:%[^:]+)?:(\d{1,5})", re.ASCII)
HASHED = re.compile(rf"h:[\da-f]{{{DIGITS}}}", re.ASCII)
NO_ADDRESS = frozenset(("", "-", "null", "NULL"))


@lru_cache(maxsize=65_536)
def endpoint(text: str) -> tuple[Address | None, int | None]:
    """Parse an address, with or without a port; IPv4-mapped addresses become IPv4, and an interface is dropped.

    Returns:
        The address and the port; `None` if unknown.

    Raises:
        Unread: It is not an address, or the port is above 65535.

    >>> endpoint("::ffff:198.51.100.7"), endpoint("[2001:db8::1]:443"), endpoint("unix:")
    ((IPv4Address('198.51.100.7'), None), (IPv6Address('2001:db8::1'), 443), (None, None))
    """
    if text in NO_ADDRESS or text.startswith("unix:"):
        return None, None
    match = BRACKETED.fullmatch(text) or WITH_PORT.fullmatch(text)
    host, port = match.groups() if match else (text, None)
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        raise Unread("not an address", f"`{text}`") from None
    if port is not None and int(port) > MAX_PORT:
        raise Unread("a port above 65535", f"`{text}`")
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return address, None if port is None else int(port)


def known_form(text: str) -> Address | str | None:
    """Parse an address that was already truncated or hashed; `None` if it has neither format.

    >>> known_form("198.51.100.0/24"), known_form("198.51.100.7/32"), known_form("h:73a92d6adb7d024a"), known_form("/a")
    ('198.51.100.0/24', IPv4Address('198.51.100.7'), 'h:73a92d6adb7d024a', None)
    """
    if HASHED.fullmatch(text):
        return text
    if "/" not in text:
        return None
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        return None
    return network.network_address if network.prefixlen == network.max_prefixlen else str(network)


def ends(side: str, address: str, port: str = "") -> ImportedRow:
    """Return the columns of one end of a connection; the address may contain the port.

    Args:
        side: `local` or `remote`.
        address: The address as the source has it.
        port: The port as the source has it, if it is separate.

    Raises:
        Unread: The address or the port is malformed.
    """
    host, own_port = endpoint(address.strip())
    number = count(port.strip())
    if number is not None and number > MAX_PORT:
        raise Unread("a port above 65535", f"`{port}`")
    return {f"{side}_address": host, f"{side}_port": own_port if number is None else number}


def with_key(form: str, key: Path | None) -> Addresses:
    """Return the conversion for the requested format.

    Raises:
        ThalwegError: If the format is unknown, a key is superfluous, or the key file cannot be used.
    """
    if form not in FORMS:
        raise ThalwegError(
            "bad-usage",
            f"unknown form of addresses: `{form}`",
            place="--addresses",
            expected=", ".join(FORMS),
            hint="--addresses truncated",
        )
    if form != "hashed":
        if key is not None:
            raise ThalwegError(
                "bad-usage", "--key is for hashed addresses", place="--key", hint=f"--addresses hashed --key {key}"
            )
        return Addresses("whole" if form == "whole" else "truncated")
    return Addresses("hashed", _key(KEY if key is None else key))


def _key(file: Path) -> bytes:
    """Read a key, written as hexadecimal digits."""
    make = f"(umask 077; head -c {MADE_BYTES} /dev/urandom | od -An -v -tx1 | tr -d ' \\n' > {shlex.quote(str(file))})"
    try:
        mode = file.stat().st_mode
        text = read_regular(file, LARGEST_KEY).decode("ascii", errors="replace").strip()
    except FileNotFoundError:
        raise ThalwegError(
            "no-key",
            f"addresses are hashed with a key, but there is no file `{file}`",
            place="--key",
            expected="the key of thalweg-agent record, so that hashes of both are the same",
            hint=f"thalweg-agent creates it at first use; to create one: {make}",
        ) from None
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ThalwegError("cannot-read", f"the key `{file}` cannot be read: {why}", place="--key") from None
    if mode & OTHERS:
        raise ThalwegError(
            "bad-key",
            f"the key `{file}` is accessible to users other than its owner",
            place="--key",
            found=f"mode {mode & 0o7777:04o}",
            expected="mode 0600",
            hint=f"chmod 600 {shlex.quote(str(file))}",
        )
    if len(text) % 2 or len(text) < 2 * MIN_BYTES or not set(text) <= set(string.hexdigits):
        raise ThalwegError(
            "bad-key",
            f"`{file}` contains no key",
            place="--key",
            expected=f"at least {2 * MIN_BYTES} hexadecimal digits",
            hint=f"to create a new one: {make}",
        )
    return bytes.fromhex(text)
