"""`python -m thalweg` is `thalweg`."""

import sys

from thalweg.cli.main import app

sys.exit(app())
