"""Builds the user-mode Linux kernels of the engine `uml`, and keeps them.

    result = build(Order(), progress)        the distribution's kernel; result.kernel.folder holds it
    current()                                the one that the engine takes

A kernel is made from the distribution's source package or from a developer's own tree, without root, outside of the
tree, and kept in the user's cache: complete or absent. The engine finds it there; nothing here knows the engine.
"""

from thalweg.kernel.build import Order, Result, build
from thalweg.kernel.progress import Progress
from thalweg.kernel.store import VARIABLE, Kernel, current, kernels, named, remove, use

__all__ = ["VARIABLE", "Kernel", "Order", "Progress", "Result", "build", "current", "kernels", "named", "remove", "use"]
