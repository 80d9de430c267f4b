"""Builds kernels for virtual time, fetches kernels for guests, and stores both.

    result = build(Order(), progress)        the distribution's kernel; result.kernel.folder holds it
    current()                                the one that the engine uses
    fetch("linux-image-amd64", None, progress)    a kernel for guests; guests.current() is the one that they run

A kernel for virtual time is built without root from the distribution's source package or from a developer's own tree.
Kernels are stored in the user's cache, where the engine finds them.
"""

from thalweg.kernel import guests
from thalweg.kernel.build import Built, Order, build
from thalweg.kernel.fetch import PACKAGE, Fetched, fetch
from thalweg.kernel.guests import GuestKernel
from thalweg.kernel.progress import KernelProgress
from thalweg.kernel.store import VARIABLE, Kernel, current, kernels, named

__all__ = [
    "PACKAGE",
    "VARIABLE",
    "Built",
    "Fetched",
    "GuestKernel",
    "Kernel",
    "KernelProgress",
    "Order",
    "build",
    "current",
    "fetch",
    "guests",
    "kernels",
    "named",
]
