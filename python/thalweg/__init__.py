"""thalweg measures TCP congestion control and explains what it measured.

The main layers; of these, each imports only earlier ones:

- `thalweg.scenario`: the TOML file, checked; imports no other layer;
- `thalweg.plan`: the resolved experiments of a scenario;
- `thalweg.run`: runs a plan with `thalweg-engine`;
- `thalweg.results`: reads run directories; imports no other layer;
- `thalweg.analysis`: metrics of run directories, with their uncertainty;
- `thalweg.report`: the report, as one HTML file;
- `thalweg.api`: the Python API, whose names are also available in `thalweg`: `load_scenario`, `open_run`;
- `thalweg.cli`: the command line.

All may import `thalweg.errors`, `thalweg.engine` and the other shared modules. tools/check_layers.py lists all layers.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thalweg.api import Result, Scenario, ThalwegError, load_scenario, open_run

__all__ = ["Result", "Scenario", "ThalwegError", "__version__", "load_scenario", "open_run"]

__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    """Import the API on first use, because the command line does not need it at start."""
    if name in __all__:
        from thalweg import api

        return getattr(api, name)
    raise AttributeError(f"module `thalweg` has no attribute `{name}`")
