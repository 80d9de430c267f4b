"""The command line: one file per subcommand, which parses, calls and prints. No other layer imports this one.

While the rest of it is imported, Ctrl-C ends the process without a word, as it does a program that has nothing to tidy
up; `main` then takes it back, and says that it was interrupted.
"""

import os
import signal

# The matrices of a bootstrap are small, and threads that wait for pieces of them take the CPUs from those who count.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

interrupt = signal.getsignal(signal.SIGINT)
if interrupt is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
