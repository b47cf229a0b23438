# SPDX-License-Identifier: BSD-3-Clause
"""crema for notebooks and processors. The measuring itself is done by the library that the workers preload."""

from crema.instrument import memory, metric, section

__all__ = ["memory", "metric", "section"]
