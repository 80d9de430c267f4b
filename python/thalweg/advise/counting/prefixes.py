"""Maps addresses to networks: the engine finds the longest matching prefix of a user's table.

Hashed addresses match no network. A truncated address matches only networks that contain all of it.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import ibis
from ibis.expr.types import IntegerValue, StringValue, Table

from thalweg.advise.counting.prefix_table import BITS, DIGIT_BITS, PrefixTable, read

if TYPE_CHECKING:
    from thalweg.advise.counting.engines import QueryEngine

ADDRESS = "net_address"

HEX = "".join(f"{number:02x}" for number in range(256))

V4 = "^([0-9]{1,3})[.]([0-9]{1,3})[.]([0-9]{1,3})[.]([0-9]{1,3})(/[0-9]{1,2})?$"
V6 = "^[0-9a-f]*:[0-9a-f:]*(/[0-9]{1,3})?$"
V6_GROUPS = 8
V6_GROUP_DIGITS = 4


def columns(file: Path) -> set[str]:
    """Return the names of a table's columns.

    Raises:
        ThalwegError: If the file is not a table of networks.
    """
    return {name for table in read(file) for name in table.columns}


def located(engine: "QueryEngine", addresses: Table, file: Path) -> Table:
    """Add the columns of a user's table to each address: those of the longest network that contains it, or null.

    `addresses` has one row per address, in the column `net_address`. If several tables of a folder have a column, the
    first with a value for the address applies.

    Raises:
        ThalwegError: If a file cannot be read, or is not a table of networks.
    """
    for number, table in enumerate(read(file)):
        addresses = _joined(engine, addresses, table, number)
    return addresses


def _joined(engine: "QueryEngine", addresses: Table, table: PrefixTable, number: int) -> Table:
    frame = table.frame()
    networks = engine.put(f"prefixes_{number}", frame)
    lengths = frame["key"].str.len_chars().unique().sort().to_list()
    max_digits = max((len(key) for key in frame["key"] if key[0] == "6"), default=1) - 1
    with_digits = addresses.select(
        ADDRESS, digits=digits(addresses[ADDRESS], max_digits), digits_n=_matched_bits(addresses[ADDRESS])
    )
    with_digits = engine.keep(f"digits_{number}", with_digits.filter(with_digits["digits"].notnull()))
    # The candidate keys of an address, one of each length; of those in the table, the longest sorts last.
    of_length = [_keys(with_digits, length) for length in lengths]
    tried = ibis.union(*of_length, distinct=False) if len(of_length) > 1 else of_length[0]
    met = tried.semi_join(networks, "key")
    best = met.group_by(ADDRESS).agg(key=met["key"].max())
    found = {f"found_{name}": name for name in table.columns}
    located = best.inner_join(networks, "key").select(found_address=ADDRESS, **found)
    joined = addresses.left_join(located, [addresses[ADDRESS] == located["found_address"]])
    known = {name: joined[name] for name in addresses.columns}
    added = {
        name: ibis.coalesce(known[name], joined[temporary]) if name in known else joined[temporary]
        for temporary, name in found.items()
    }
    return joined.select(**{**known, **added})


def _keys(addresses: Table, length: int) -> Table:
    return addresses.filter(addresses["digits_n"] >= length).select(ADDRESS, key=addresses["digits"].substr(0, length))


def digits(address: StringValue, most: int = BITS[6] // DIGIT_BITS) -> StringValue:
    """Return an address as its version and hexadecimal digits (IPv6: at least `most`); null if malformed."""
    text = address.lower()
    octets = (text.re_extract(V4, place).nullif("").cast("int64") for place in range(1, 5))
    v4 = _concatenated(["4", *(ibis.literal(HEX).substr(octet * 2, 2) for octet in octets)])
    plain = text.re_extract("^([0-9a-f:]*)", 1)
    is_short = plain.contains("::")
    head = ibis.ifelse(is_short, plain.re_extract("^([0-9a-f:]*?)::", 1), plain)
    tail = plain.re_extract("::([0-9a-f:]*)$", 1)
    needed = min(V6_GROUPS, -(-most // V6_GROUP_DIGITS))
    v6 = _concatenated(["6", *(_group(head, tail, place) for place in range(needed))])
    return ibis.cases((text.re_search(V4), v4), (text.re_search(V6), v6), else_=ibis.null("string"))


def _group(head: StringValue, tail: StringValue, place: int) -> StringValue:
    """Return a group of an IPv6 address; groups that `::` replaces are zero."""
    front = head.re_extract(f"^(?:[0-9a-f]+:){{{place}}}([0-9a-f]+)", 1)
    back = tail.re_extract(f"([0-9a-f]+)(?::[0-9a-f]+){{{V6_GROUPS - 1 - place}}}$", 1)
    return ibis.ifelse(front != "", front, back).lpad(V6_GROUP_DIGITS, "0")


def _matched_bits(address: StringValue) -> IntegerValue:
    """Return the maximum length of an address's key in characters: its version, and the digits left by truncation."""
    length = address.re_extract("/([0-9]{1,3})$", 1).nullif("").cast("int64")
    full_length = ibis.ifelse(address.contains(":"), BITS[6], BITS[4])
    return 1 + (ibis.coalesce(length, full_length) / DIGIT_BITS).floor().cast("int64")


def _concatenated(parts: list[StringValue | str]) -> StringValue:
    text: StringValue = ibis.literal(parts[0])
    for part in parts[1:]:
        text = text.concat(part)
    return text
