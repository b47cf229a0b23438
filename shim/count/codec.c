/* SPDX-License-Identifier: BSD-3-Clause */
/* codec.c - counters and rows of codecs. */
#include "shim/count/codec.h"

#include "ids.h"
#include "shim/count/task.h"

__thread uint32_t codec_depth, codec_importing;

/* The row last used for a codec, + 1. */
static uint32_t hints[CREMA_CODECS];

void codec_forget(void)
{
	for (int id = 0; id < CREMA_CODECS; id++)
		hints[id] = 0;
	codec_depth = 0;
	codec_importing = 0;
}

static int row_is(const struct crema_codec_row *r, int id, uint32_t span)
{
	return r->codec == (uint32_t)id && r->span == span;
}

/* All threads search from the first row and take the first free one, so a codec has one row for
 * each span. */
static struct crema_codec_row *row_of(int id, uint32_t span)
{
	uint32_t row = LOAD(&hints[id]);

	if (row && row_is(&crema_shm->codec[row - 1], id, span))
		return &crema_shm->codec[row - 1];
	for (row = 0; row < CREMA_SHM_CODEC_ROWS; row++) {
		struct crema_codec_row *r = &crema_shm->codec[row];

		if (row_claim(&r->state)) {
			r->codec = (uint32_t)id;
			r->span = span;
			__atomic_store_n(&r->state, 2, __ATOMIC_RELEASE);
		} else if (!row_ready(&r->state)) {
			break;
		}
		if (row_is(r, id, span)) {
			STORE(&hints[id], row + 1);
			return r;
		}
	}
	ADD(&crema_shm->totals.codecs_refused, 1);
	return NULL;
}

static void times_unknown(int decompress, struct crema_codec_row *row)
{
	uint64_t bits = 3ull << (decompress ? CREMA_C_decompress_cpu_ns : CREMA_C_compress_cpu_ns);
	struct crema_task *task = task_slot(segment_owner());

	if (task)
		__atomic_fetch_or(&task->count_unknown, bits, __ATOMIC_RELAXED);
	__atomic_fetch_or(&crema_shm->totals.count_unknown, bits, __ATOMIC_RELAXED);
	if (row)
		STORE(&row->time_unknown, 1);
}

void codec_count(int id, int decompress, const struct codec_sum *sum)
{
	struct crema_thread *t = thread_self();
	uint64_t *n =
		t ? &t->seg.count[decompress ? CREMA_C_decompress_calls : CREMA_C_compress_calls]
		  : NULL;
	struct crema_codec_row *row;

	if (codec_importing && decompress) {
		if (n) {
			t->seg.count[CREMA_C_import_decompress_calls] += sum->calls;
			t->seg.count[CREMA_C_import_decompress_out_bytes] += sum->out_bytes;
		}
		return;
	}
	row = row_of(id, segment_span());
	if (sum->time_unknown)
		times_unknown(decompress, row);
	if (n) {
		/* counters.def keeps the five of a direction together, in this order */
		n[0] += sum->calls;
		n[1] += sum->in_bytes;
		n[2] += sum->out_bytes;
		n[3] += sum->cpu_ns;
		n[4] += sum->wall_ns;
	}
	if (row) {
		ADD(&row->calls, sum->calls);
		ADD(&row->in_bytes, sum->in_bytes);
		ADD(&row->out_bytes, sum->out_bytes);
		ADD(&row->cpu_ns, sum->cpu_ns);
		ADD(&row->wall_ns, sum->wall_ns);
	}
}
_Static_assert(CREMA_C_decompress_wall_ns == CREMA_C_decompress_calls + 4 &&
		       CREMA_C_compress_wall_ns == CREMA_C_compress_calls + 4,
	       "calls, in, out, cpu, wall stand together");
