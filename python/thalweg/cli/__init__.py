"""The command line: one file per subcommand, which parses arguments, calls other layers and prints.

During imports, Ctrl-C ends the process silently, because there is nothing to clean up; `main` then restores
Python's handler, so that the interruption is reported.
"""

import os
import signal

# The matrices of a bootstrap are small, and BLAS threads that spin take CPU time from other threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

interrupt = signal.getsignal(signal.SIGINT)
if interrupt is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
