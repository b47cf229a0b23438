# SPDX-License-Identifier: BSD-3-Clause
"""roastcoffea's names for parts of a processor, so you change only the import.

Chunks need no decorator here, and a section measures time, CPU, waits and bytes at once.
"""

from crema.instrument import memory, section


def track_metrics(function):
    return function


def track_time(processor_self, section_name):
    return section(section_name)


def track_section(processor_self, section_name):
    return section(section_name)


def track_bytes(processor_self, events, section_name):
    return section(section_name)


def track_memory(processor_self, section_name):
    return memory(section_name)
