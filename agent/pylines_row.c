/* SPDX-License-Identifier: BSD-3-Clause */
/* pylines_row.c - reads a thread's stack and finds its row. */
#include <string.h>

#include "agent/pylines.h"
#include "agent/redact.h"
#include "own_code.h"

struct pyline_row *pylines_row(struct pylines *l, struct pyline_row *like, uint64_t python,
			       uint32_t tid, bool *cut)
{
	char function[PY_NAME_BYTES], file[PY_FILE_BYTES];
	static struct py_frame frame[PY_FRAMES]; /* one thread */
	static uint16_t place[PY_FRAMES];
	size_t whole = 0, n = py_stack_sample(&l->process, python, tid, frame, &whole);
	struct text shown;
	int at, line;

	*cut = n < whole;
	like->why = n ? PYLINES_WHOLE : python ? PYLINES_TORN : PYLINES_NONE;
	for (size_t i = 0; i < n; i++) {
		at = pyline_table_known(l->table, frame[i].key);
		if (at < 0 && !py_stack_name(&l->process, &frame[i], function, file, &line)) {
			like->why = PYLINES_TORN;
			break;
		}
		if (at < 0) {
			shown = redact_file(l->view->redact, (struct text){file, strlen(file)});
			at = pyline_table_place(l->table, frame[i].key, function, shown.ptr,
						(uint32_t)line, crema_is_own_code(file) != 0);
		}
		if (at < 0) {
			like->why = PYLINES_FULL;
			break;
		}
		place[i] = (uint16_t)at;
	}
	like->depth = like->why == PYLINES_WHOLE ? (uint16_t)n : 0;
	return pyline_table_row(l->table, like, place);
}
