"""Gets kernels and keeps them: builds those that run in virtual time, fetches those that guests run.

    result = build(Order(), progress)        the distribution's kernel; result.kernel.folder holds it
    current()                                the one that the engine takes
    fetch("linux-image-amd64", None, progress)    a kernel for guests; guests.current() is the one that they run

A kernel in virtual time is made from the distribution's source package or from a developer's own tree, without root,
outside of the tree. All are kept in the user's cache: complete or absent. The engine finds them there; nothing here
knows the engine.
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
