"""How an address stands in a record: whole, truncated to its network, or hashed with a key; as the agent does it."""

import hashlib
import hmac
import shlex
import string
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import Literal, get_args

from thalweg.errors import ThalwegError
from thalweg.files import read_regular

Form = Literal["whole", "truncated", "hashed"]
FORMS: tuple[str, ...] = get_args(Form)

KEPT_BITS = {4: 24, 6: 48}
"""Bits of an address that truncating keeps: what one customer's network usually has, and no less."""
DIGITS = 16
"""Hexadecimal digits of a hash that are kept: 64 bits."""

KEY = Path("/var/lib/thalweg/address.key")
"""Where the agent has its key unless --key says otherwise."""
MADE_BYTES = 32
"""Bytes of a new key: as many as the hash has (RFC 2104, section 3)."""
LARGEST_KEY = 4096
"""Bytes of a file with a key."""

LEAST_BYTES = 16
"""Bytes that a key has at least: fewer could be tried out."""
OTHERS = 0o077
"""Rights of others than the owner of a file."""

Address = IPv4Address | IPv6Address


@dataclass(frozen=True)
class Addresses:
    """What becomes of addresses."""

    form: Form = "truncated"
    key: bytes = field(default=b"", repr=False)

    def text(self, address: Address) -> str:
        """Write an address as it stands in a record.

        >>> Addresses().text(parsed("198.51.100.7")), Addresses().text(parsed("2001:db8:1:2::3"))
        ('198.51.100.0/24', '2001:db8:1::/48')
        >>> Addresses("hashed", b"secret").text(parsed("198.51.100.7"))
        'h:73a92d6adb7d024a'
        """
        return _text(self.form, self.key, address)


@lru_cache(maxsize=65_536)
def _text(form: Form, key: bytes, address: Address) -> str:
    if form == "whole":
        return str(address)
    if form == "truncated":
        return str(ip_network((address, KEPT_BITS[address.version]), strict=False))
    return "h:" + hmac.new(key, address.packed, hashlib.sha256).hexdigest()[:DIGITS]


@lru_cache(maxsize=65_536)
def parsed(text: str) -> Address | None:
    """Read an address; an IPv4 address in the clothes of an IPv6 address is IPv4, an interface is left out.

    None: it is none, such as `unix:` or `-`.

    >>> parsed("::ffff:198.51.100.7"), parsed("fe80::1%eth0"), parsed("unix:")
    (IPv4Address('198.51.100.7'), IPv6Address('fe80::1'), None)
    """
    try:
        address = ip_address(text.partition("%")[0].strip("[]"))
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return address.ipv4_mapped
    return address


def with_key(form: str, key: Path | None) -> Addresses:
    """Take what the user asked for; without a file, the key is where thalweg-agent has it.

    Raises `ThalwegError` if there is no such form, or if the file holds no key or is not its owner's alone.
    """
    if form not in FORMS:
        raise ThalwegError(
            "bad-usage",
            f"there is no form of addresses `{form}`",
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
    """Read a key in the form in which thalweg-agent makes it."""
    make = f"(umask 077; head -c {MADE_BYTES} /dev/urandom | od -An -v -tx1 | tr -d ' \\n' > {shlex.quote(str(file))})"
    try:
        mode = file.stat().st_mode
        text = read_regular(file, LARGEST_KEY).decode("ascii", errors="replace").strip()
    except FileNotFoundError:
        raise ThalwegError(
            "no-key",
            f"addresses are hashed with a key, and there is no file `{file}`",
            place="--key",
            expected="the key of thalweg-agent record, so that hashes of both are the same",
            hint=f"thalweg-agent makes it at first use; a new one: {make}",
        ) from None
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ThalwegError("cannot-read", f"the key `{file}` cannot be read: {why}", place="--key") from None
    if mode & OTHERS:
        raise ThalwegError(
            "bad-key",
            f"others than its owner have rights on the key `{file}`",
            place="--key",
            found=f"mode {mode & 0o7777:04o}",
            expected="mode 0600",
            hint=f"chmod 600 {shlex.quote(str(file))}",
        )
    if len(text) % 2 or len(text) < 2 * LEAST_BYTES or not set(text) <= set(string.hexdigits):
        raise ThalwegError(
            "bad-key",
            f"`{file}` holds no key",
            place="--key",
            expected=f"at least {2 * LEAST_BYTES} hexadecimal digits",
            hint=f"a new one: {make}",
        )
    return bytes.fromhex(text)
