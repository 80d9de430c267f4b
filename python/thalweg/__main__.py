"""Entry point of `python -m thalweg`, which is equivalent to `thalweg`."""

import sys

from thalweg.cli.main import app

sys.exit(app())
