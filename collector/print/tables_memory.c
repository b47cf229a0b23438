/* SPDX-License-Identifier: BSD-3-Clause */
/* tables_memory.c - the parts of the workers' resident memory. */
#include "collector/emit/emit_text.h"
#include "collector/print/print.h"
#include "collector/report/memory.h"

#define TOP 16

void report_table_memory(const struct report *r, struct sink *s, bool colour)
{
	struct worker_memory m;
	struct grid g;
	size_t i, n = 0;

	table_section(s, colour, "Memory of workers");
	grid_init(&g, s, colour);
	grid_columns(&g, "<worker", ">resident", ">in use", ">free in malloc", ">returnable",
		     ">all the time", ">files", ">shared", ">readings", NULL);
	for (i = 0; i < r->run->workers.n && i < TOP; i++) {
		m = worker_memory(r->run, r->run->workers.v[i]);
		n += m.readings > 0;
		grid_text(&g, m.worker->label);
		grid_value(&g, m.resident, AS_BYTES);
		grid_value(&g, m.in_use, AS_BYTES);
		grid_value(&g, m.held, AS_BYTES);
		grid_value(&g, m.returnable, AS_BYTES);
		grid_value(&g, m.kept, AS_BYTES);
		grid_value(&g, m.file, AS_BYTES);
		grid_value(&g, m.shared, AS_BYTES);
		grid_value(&g, value_uint(m.readings), AS_COUNT);
	}
	grid_print(&g);
	table_more(s, r->run->workers.n, TOP);
	text_paragraph(s, "  ",
		       n ? "when the resident set was largest of the readings; returnable: what "
			   "malloc_trim(0) returns of the free blocks; all the time: the least "
			   "of it in the second half of the readings"
			 : "no worker's heaps could be read: glibc only, and CREMA_HEAP=on");
	lines_large_table(&r->lines, s, colour);
}
