/* SPDX-License-Identifier: BSD-3-Clause */
/* gen_pythons.c - docs/pythons.md: the versions of CPython, from contract/pythons.def. */
#include <stdio.h>

static const struct python {
	int minor, told;
	const char *release, *particular;
} table[] = {
#define PYTHON(minor, release, particular, told, ...) {minor, told, release, particular},
#include "pythons.def"
};

int main(void)
{
	printf("# Python versions\n\nGenerated from `contract/pythons.def` by `make docs`; do not "
	       "edit.\n\n"
	       "One library and one agent serve all versions of CPython. Tests compare counts, "
	       "waits, "
	       "killed tasks and lines with known\nvalues (`test_pythons.py`, `test_lines.py`), "
	       "and run CPython's own tests with and without the library\n"
	       "(`scripts/compare-suites`).\n\n"
	       "| version | tested release | Python frames | notes |\n"
	       "|---|---|---|---|\n");
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		printf("| 3.%d | %s | %s | %s |\n", table[i].minor, table[i].release,
		       table[i].told ? "`_Py_DebugOffsets`" : "table of offsets",
		       table[i].particular);
	printf("\n**Any other version** is measured, and its workers have a note. Waits for the "
	       "interpreter lock and for other locks are\n"
	       "unknown, because crema distinguishes them by the address of the interpreter's "
	       "lock. No lines of Python are sampled. Bytes,\n"
	       "calls, CPU, other waits, codecs and tasks are known.\n\n"
	       "**Free-threaded builds** of 3.14 and newer are measured (tested: 3.14.7 "
	       "and 3.15.0rc1). There is no interpreter lock to wait\n"
	       "for, so that wait is 0; what crema does in a task's Python is protected "
	       "by a critical section of an object of its own. The\n"
	       "interpreter's allocator does not use malloc: memory by line lacks large "
	       "objects of Python itself (bytes, lists), and the\n"
	       "worker has a note. A thread that waits for a lock of Python's first "
	       "gives its core away up to 40 times: on a busy machine that\n"
	       "time is a wait for a core, as the kernel sees it. 3.13 runs unmeasured, "
	       "and one line on standard error reports it.\n");
	return 0;
}
