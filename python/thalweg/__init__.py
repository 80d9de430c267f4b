"""thalweg measures TCP congestion control and explains what it measured.

The layers, each importing only what stands before it:

- `thalweg.scenario`: the TOML file, checked; imports nothing of ours;
- `thalweg.plan`: the resolved experiments of a scenario;
- `thalweg.run`: hands a plan to `thalweg-engine`;
- `thalweg.results`: reads run directories; imports nothing of ours;
- `thalweg.analysis`: numbers with their uncertainty, from run directories;
- `thalweg.report`: one HTML file;
- `thalweg.cli`: the command line; nobody imports it.

`thalweg.errors` and `thalweg.engine` may be imported by all.
"""

__version__ = "0.2.0"
