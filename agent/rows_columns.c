/* SPDX-License-Identifier: BSD-3-Clause */
/* rows_columns.c - COLUMN messages. */
#include <stdio.h>
#include <string.h>

#include "agent/doing_stack.h"
#include "agent/py_stack.h"
#include "agent/rows.h"
#include "common/rows.h"
#include "common/utf8.h"

enum { BUSY_POLLS = 60 }; /* each chunk changes all rows of its columns */

static bool is_known(const struct crema_column *c, unsigned int i,
		     const struct drain_unknown *unknown)
{
	const struct row_column_from *from = &row_column_from[i];

	if (from->kind != ROW_HOOK && c->flags & CREMA_COLUMN_UNSURE)
		return false;
	if (from->kind == ROW_TIME)
		return !(unknown->time >> from->id & 1);
	if (from->kind == ROW_COUNT)
		return !(unknown->count >> from->id & 1);
	switch (i) {
	case CREMA_COLUMN_N_requests:
	case CREMA_COLUMN_N_requested_ranges:
	case CREMA_COLUMN_N_requested_bytes:
		return !(c->flags & CREMA_COLUMN_UNASKED);
	case CREMA_COLUMN_N_tasks:
	case CREMA_COLUMN_N_preload_tasks:
	case CREMA_COLUMN_N_preload_used:
		return !(c->flags & CREMA_COLUMN_UNCOUNTED);
	case CREMA_COLUMN_N_baskets:
	case CREMA_COLUMN_N_basket_bytes:
	case CREMA_COLUMN_N_basket_raw_bytes:
		return !(unknown->count & CREMA_COUNT_BIT(basket_bytes));
	case CREMA_COLUMN_N_wait_min_ns:
		return c->wait_min_ns;
	default:
		return true;
	}
}

void rows_pack_line(msgpack_packer *pk, const struct view *v, const struct crema_line *line)
{
	char file[PY_FILE_BYTES], text[DOING_FRAME_BYTES];
	struct text path = view_text(v, line->file);

	snprintf(file, sizeof(file), "%.*s", (int)path.len, path.ptr ? path.ptr : "?");
	doing_stack_text(text, v, file, (int)line->line, view_text(v, line->function).ptr);
	pack_str(pk, text, utf8_whole(text, strlen(text)));
}

static void pack_lines(msgpack_packer *pk, const struct view *v, const struct crema_column *c)
{
	uint32_t n = c->lines < CREMA_COLUMN_LINES ? c->lines : CREMA_COLUMN_LINES;

	if (!n)
		return;
	pack_text(pk, "lines");
	pack_array(pk, n);
	for (uint32_t i = 0; i < n; i++)
		rows_pack_line(pk, v, &c->line[i]);
	pack_kv_true(pk, "more_lines", c->lines > n);
}

static uint64_t send_column(struct rows *r, const struct crema_column *c, enum outbox_class class)
{
	struct drain_unknown unknown =
		rows_unknown(r, c->time_unknown, c->count_unknown, c->fs_mask);
	struct text column = view_text(r->view, c->column), tree = view_text(r->view, c->tree);
	struct text dataset = view_text(r->view, c->dataset), span = view_text(r->view, c->span);
	msgpack_packer *pk = outbox_begin_map(r->out, class, CREMA_MSG_COLUMN);

	pack_kv_u64(pk, "number", c->number);
	pack_kv_str(pk, "column", column.ptr, column.len);
	pack_kv_str(pk, "tree", tree.ptr, tree.len);
	pack_kv_str(pk, "dataset", dataset.ptr, dataset.len);
	pack_kv_str(pk, "span", span.ptr, span.len);
	pack_kv_true(pk, "together", c->flags & CREMA_COLUMN_TOGETHER);
	pack_kv_true(pk, "beyond", c->flags & CREMA_COLUMN_BEYOND);
	pack_lines(pk, r->view, c);
	pack_kv_u64(pk, "rev", c->seq);
	for (unsigned int i = 0; i < CREMA_COLUMN_NUMBERS; i++)
		pack_kv_maybe(pk, row_column[i].name, is_known(c, i, &unknown), c->counted[i]);
	return outbox_end_map(r->out, class);
}

void rows_columns(struct rows *r, bool busy, bool last)
{
	r->columns_polls = busy ? r->columns_polls + 1 : 0;
	if (!last && r->columns_polls % BUSY_POLLS)
		return;
	for (uint32_t i = 0; i < CREMA_SHM_COLUMNS; i++) {
		struct crema_column *at = &r->view->shm->column[i], c;
		enum outbox_class class = last ? OUTBOX_RECORD : OUTBOX_LIGHT;

		if (__atomic_load_n(&at->state, __ATOMIC_ACQUIRE) != 2 ||
		    !rows_due(r, &r->column_sent[i], &at->seq, &at->safe_seq, &class))
			continue;
		rows_copy(&c, at, sizeof(c), &at->seq);
		r->column_sent[i].ticket = send_column(r, &c, class);
	}
}
