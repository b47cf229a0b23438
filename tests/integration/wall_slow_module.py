# SPDX-License-Identifier: BSD-3-Clause
"""Takes its time when it is imported."""
import time

time.sleep(1.5)
