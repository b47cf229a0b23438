/* SPDX-License-Identifier: BSD-3-Clause */
/* pylines_row.c - reads a thread's stack and finds its row. */
#include <string.h>

#include "agent/pylines.h"
#include "agent/redact.h"
#include "own_code.h"

/* The place of a frame; a negative number: why there is none. */
static int place_of(struct pylines *l, const struct py_frame *frame)
{
	char function[PY_NAME_BYTES], file[PY_FILE_BYTES];
	int at = pyline_table_known(l->table, frame->key), line;
	struct text shown;

	if (at >= 0)
		return at;
	if (!py_stack_name(&l->process, frame, function, file, &line))
		return -PYLINES_TORN;
	shown = redact_file(l->view->redact, (struct text){file, strlen(file)});
	at = pyline_table_place(l->table, frame->key, function, shown.ptr, (uint32_t)line,
				crema_is_own_code(file) != 0);
	return at >= 0 ? at : -PYLINES_FULL;
}

static struct pyline_row *row_of(struct pylines *l, struct pyline_row *like,
				 const struct py_frame *frame, size_t n)
{
	static uint16_t place[PY_FRAMES]; /* one thread */
	int at = 0;

	for (size_t i = 0; i < n && at >= 0; i++) {
		at = place_of(l, &frame[i]);
		place[i] = (uint16_t)at;
	}
	if (at < 0)
		like->why = (uint8_t)-at;
	like->depth = like->why == PYLINES_WHOLE ? (uint16_t)n : 0;
	return pyline_table_row(l->table, like, place);
}

struct pyline_row *pylines_row(struct pylines *l, struct pyline_row *like, uint64_t python,
			       uint32_t tid, bool *cut)
{
	static struct py_frame frame[PY_FRAMES]; /* one thread */
	size_t whole = 0, n = py_stack_sample(&l->process, python, tid, frame, &whole);

	*cut = n < whole;
	like->why = n ? PYLINES_WHOLE : python ? PYLINES_TORN : PYLINES_NONE;
	return row_of(l, like, frame, n);
}

struct pyline_row *pylines_recorded(struct pylines *l, struct pyline_row *like,
				    const struct crema_py_frame *recorded, size_t n)
{
	static struct py_frame frame[PY_FRAMES]; /* one thread */

	for (size_t i = 0; i < n; i++)
		frame[i] = py_stack_frame(&l->process, &recorded[i]);
	if (n)
		like->why = PYLINES_WHOLE;
	else if (like->why == PYLINES_WHOLE)
		like->why = PYLINES_NONE;
	return row_of(l, like, frame, n);
}
