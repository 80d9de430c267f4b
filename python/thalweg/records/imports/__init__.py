"""Importers convert logs and dumps of other sources to records with the agent's columns.

Values that a source lacks are null. docs/reference/importing.md lists the origin of each column.
"""

from thalweg.records.imports.addresses import Addresses
from thalweg.records.imports.convert import Imported, convert
from thalweg.records.imports.haproxy import Haproxy
from thalweg.records.imports.iperf3 import Iperf3
from thalweg.records.imports.items import Importer
from thalweg.records.imports.json_lines import JsonLines
from thalweg.records.imports.mapped import Mapped, Notation, mapping
from thalweg.records.imports.ndt import Ndt
from thalweg.records.imports.nginx import Nginx
from thalweg.records.imports.nginx_config import COMBINED, log_format
from thalweg.records.imports.ss import Ss
from thalweg.records.imports.table import CsvTable
from thalweg.records.imports.varnish import Varnish

__all__ = [
    "COMBINED",
    "Addresses",
    "CsvTable",
    "Haproxy",
    "Imported",
    "Importer",
    "Iperf3",
    "JsonLines",
    "Mapped",
    "Ndt",
    "Nginx",
    "Notation",
    "Ss",
    "Varnish",
    "convert",
    "log_format",
    "mapping",
]
