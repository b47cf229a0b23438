# SPDX-License-Identifier: BSD-3-Clause
"""Takes time when it is imported."""
import time

time.sleep(1.5)
