"""A user's table of networks: its parsing, and the network in which an address is found."""

import gzip
import ipaddress
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from thalweg.advise import DuckDb
from thalweg.advise.counting import prefix_table
from thalweg.advise.counting.prefixes import columns, located
from thalweg.errors import ThalwegError

CSV = """\
network,asn,country
192.0.2.0/24,64496,DE
192.0.0.0/16,AS64497,SE
192.0.2.128/25,64498,NO
0.0.0.0/0,64499,
2001:db8::/32,64500,FR
2001:db8:1::/48,64501,IT
2001:db8:2::/47,64502,ES
2001:db8:1:2::/64,64503,PL
"""


class Duck:
    """A DuckDB engine that looks up addresses."""

    def __init__(self) -> None:
        self.engine = DuckDb()

    def find(self, file: Path, addresses: list[str]) -> dict[str, tuple[Any, ...]]:
        """Return the table's attributes of some addresses."""
        rows = self.engine.put("addresses", pl.DataFrame({"net_address": addresses}))
        networks = self.engine.fetch(located(self.engine, rows, file))
        assert networks.height == len(addresses)
        return {row[0]: row[1:] for row in networks.iter_rows()}


@pytest.fixture
def duckdb_lookup() -> Iterator[Duck]:
    duckdb_lookup = Duck()
    yield duckdb_lookup
    duckdb_lookup.engine.close()


def table(folder: Path, text: str = CSV, name: str = "table.csv") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def test_the_longest_prefix_matches(duckdb_lookup: Duck, tmp_path: Path) -> None:
    networks = duckdb_lookup.find(
        table(tmp_path),
        ["192.0.2.7", "192.0.2.200", "192.0.3.7", "8.8.8.8", "2001:db8:1:2:3::9", "2001:db8:1:3::1", "2001:db8:3::1",
         "2001:db8::1", "2001:db9::1"],
    )  # fmt: skip
    assert networks == {
        "192.0.2.7": ("AS64496", "DE"),
        "192.0.2.200": ("AS64498", "NO"),
        "192.0.3.7": ("AS64497", "SE"),
        "8.8.8.8": ("AS64499", None),
        "2001:db8:1:2:3::9": ("AS64503", "PL"),
        "2001:db8:1:3::1": ("AS64501", "IT"),
        "2001:db8:3::1": ("AS64502", "ES"),
        "2001:db8::1": ("AS64500", "FR"),
        "2001:db9::1": (None, None),
    }


def test_a_truncated_address_matches_only_networks_that_contain_all_of_it(duckdb_lookup: Duck, tmp_path: Path) -> None:
    networks = duckdb_lookup.find(table(tmp_path), ["192.0.2.0/24", "2001:db8:1::/48", "192.0.0.0/12"])
    assert networks == {
        "192.0.2.0/24": ("AS64496", "DE"),
        "2001:db8:1::/48": ("AS64501", "IT"),
        "192.0.0.0/12": ("AS64499", None),
    }


def test_an_invalid_address_matches_no_prefix(duckdb_lookup: Duck, tmp_path: Path) -> None:
    addresses = ["h:49904e588c3b5db3", "unknown", "", "1.2.3", "999.1.2.3"]
    networks = duckdb_lookup.find(table(tmp_path), addresses)
    assert {networks[address] for address in addresses[:-1]} == {(None, None)}


def test_lookups_agree_with_the_ipaddress_module(duckdb_lookup: Duck, tmp_path: Path) -> None:
    chance = random.Random(7)
    networks = {ipaddress.ip_network((chance.getrandbits(32), chance.randint(4, 32)), strict=False) for _ in range(400)}
    networks |= {
        ipaddress.ip_network((0x20010DB8 << 96 | chance.getrandbits(96), chance.randint(33, 128)), strict=False)
        for _ in range(400)
    }
    listed = sorted(networks, key=str)
    file = table(tmp_path, "network,name\n" + "".join(f"{network},n{n}\n" for n, network in enumerate(listed)))
    inside = [network.network_address + chance.randrange(min(network.num_addresses, 2**60)) for network in listed]
    other = [ipaddress.ip_address(chance.getrandbits(32)) for _ in range(200)]
    addresses = sorted({str(network) for network in [*inside, *other]})
    matches = duckdb_lookup.find(file, addresses)
    for text in addresses:
        address = ipaddress.ip_address(text)
        holding = [
            (network.prefixlen, n)
            for n, network in enumerate(listed)
            if network.version == address.version and address in network
        ]
        wanted = f"n{max(holding)[1]}" if holding else None
        assert matches[text] == (wanted,), text


def test_routeviews_lines_are_parsed(duckdb_lookup: Duck, tmp_path: Path) -> None:
    file = tmp_path / "routeviews.pfx2as.gz"
    file.write_bytes(
        gzip.compress(b"# of today\n192.0.2.0\t24\t64496\n198.51.100.0\t24\t64497_64498\n2001:db8::\t32\t64499,64500\n")
    )
    assert columns(file) == {"as"}
    networks = duckdb_lookup.find(file, ["192.0.2.1", "198.51.100.1", "2001:db8::1"])
    assert networks == {"192.0.2.1": ("AS64496",), "198.51.100.1": ("AS64497",), "2001:db8::1": ("AS64499,64500",)}


def test_a_maxmind_folder_is_parsed(duckdb_lookup: Duck, tmp_path: Path) -> None:
    heading = "network,autonomous_system_number,autonomous_system_organization"
    table(tmp_path, f'{heading}\n192.0.2.0/24,64496,"One, Inc."\n', "GeoLite2-ASN-Blocks-IPv4.csv")
    table(tmp_path, "network,geoname_id,is_anycast\n192.0.0.0/16,17,0\n", "GeoLite2-Country-Blocks-IPv4.csv")
    table(tmp_path, "network,geoname_id,is_anycast\n2001:db8::/32,18,0\n", "GeoLite2-Country-Blocks-IPv6.csv")
    table(tmp_path, "geoname_id,locale_code,country_iso_code\n17,en,DE\n18,en,SE\n",
          "GeoLite2-Country-Locations-en.csv")  # fmt: skip
    assert columns(tmp_path) == {"as", "as_name", "country", "is_anycast"}
    networks = duckdb_lookup.find(tmp_path, ["192.0.2.1", "2001:db8::1"])
    assert networks["192.0.2.1"] == ("AS64496", "One, Inc.", "DE", "0")
    assert networks["2001:db8::1"] == (None, None, "SE", "0")


def test_tables_of_a_folder_complete_one_another(duckdb_lookup: Duck, tmp_path: Path) -> None:
    table(tmp_path, "network,asn,as_name\n192.0.2.0/24,64496,One\n", "a.csv")
    table(tmp_path, "network,asn\n192.0.2.0/25,64497\n2001:db8::/32,64498\n", "b.csv")
    networks = duckdb_lookup.find(tmp_path, ["192.0.2.1", "2001:db8::1", "198.51.100.1"])
    assert networks == {
        "192.0.2.1": ("AS64496", "One"),
        "2001:db8::1": ("AS64498", None),
        "198.51.100.1": (None, None),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ip,asn\n1.2.3.4,5\n", "no column `network` in the heading"),
        ("network,asn\n192.0.2.0/33,5\n", "`192.0.2.0/33` is not a network"),
        ("network,asn\n192.0.2.0/24,5\nnetwork,asn\n2001:db8::/32,5\n", "this line repeats the heading: remove it"),
        ("network,asn\n192.0.2.1/24,5\n", "bits set beyond its length"),
        ("network,asn\n2001:db8::1/32,5\n", "`2001:db8::1/32` is not a network"),
        ("network,asn\n192.0.2.0/24\n", "1 fields; the heading has 2"),
        ("network\n192.0.2.0/24\n", "has no attributes of its networks"),
        ("192.0.2.0\t24\n", "is not a network"),
        ("network,asn\n", "no networks"),
        ("", "no column `network` in the heading"),
    ],
)
def test_a_malformed_table_is_reported(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ThalwegError) as wrong:
        prefix_table.read(table(tmp_path, text))
    assert message in wrong.value.message
    assert "table.csv" in wrong.value.text()


def test_a_binary_file_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_bytes(b"network,asn\n192.0.2.0/24,\xff\n")
    with pytest.raises(ThalwegError, match="it is not text"):
        prefix_table.read(file)


def test_a_file_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ThalwegError, match="cannot be read: no such file"):
        prefix_table.read(tmp_path / "nowhere.csv")


def test_the_last_entry_of_a_duplicate_network_wins(duckdb_lookup: Duck, tmp_path: Path) -> None:
    file = table(tmp_path, "network,name\n192.0.2.0/24,old\n192.0.2.0/24,new\n")
    assert duckdb_lookup.find(file, ["192.0.2.1"]) == {"192.0.2.1": ("new",)}
