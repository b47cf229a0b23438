/* SPDX-License-Identifier: BSD-3-Clause */
/* unseen.c - what is unknown about a task that makes calls that hide codecs; frames of threads
 * without a task. */
#include "unseen.h"

#include "shim/count/codec.h"
#include "shim/python/hides.h"
#include "shim/python/patch.h"
#include "shim/count/task.h"

/* By slot: the unattributed zstd frames at the task's first call of a reader, + 1; 0: none yet. */
static uint64_t reads_since[CREMA_SHM_TASKS];

void unseen_task_begins(uint32_t owner)
{
	if (owner - 1 < CREMA_SHM_TASKS)
		STORE(&reads_since[owner - 1], 0);
}

void unseen_task_ends(uint32_t owner)
{
	uint64_t since = owner - 1 < CREMA_SHM_TASKS ? LOAD(&reads_since[owner - 1]) : 0;

	if (since && since != LOAD(&zstd_frames_of_nobody) + 1)
		task_counts_unknown(task_name(owner), HIDES_READS);
}

static HIDES(always_reads)
{
	(void)c, (void)self, (void)argument, (void)result;
	return HIDES_READS;
}

static HIDES(always_both)
{
	(void)c, (void)self, (void)argument, (void)result;
	return HIDES_BOTH;
}

/* What a writer compresses with zstd in this thread is counted. */
static HIDES(unless_zstd)
{
	(void)self, (void)argument, (void)result;
	return zstd_frames_here == c->unused ? HIDES_WRITES : 0;
}

/* By codecs.def's way; `counts`: all that it may hide. A check at the end of the call needs its
 * result or its effect. `stays`: the data is compressed later, whatever causes it (packed.h). */
static const struct {
	uint64_t counts;
	HIDES((*hides));
	int at_end, stays;
} ways[] = {
	[UNSEEN_READS] = {HIDES_READS, always_reads, 0, 0},
	[UNSEEN_WRITES] = {HIDES_WRITES, unless_zstd, 1, 0},
	[UNSEEN_BOTH] = {HIDES_BOTH, always_both, 0, 0},
	[UNSEEN_PARQUET] = {HIDES_READS, hides_parquet, 0, 0},
	[UNSEEN_IPC] = {HIDES_READS, hides_ipc, 0, 0},
	[UNSEEN_OPTIONS] = {HIDES_WRITES, hides_options, 0, 0},
	[UNSEEN_WRITER] = {HIDES_WRITES, hides_writer, 0, 0},
	[UNSEEN_NAMED] = {HIDES_READS, hides_named, 0, 0},
	[UNSEEN_SINK] = {HIDES_WRITES, hides_sink, 0, 0},
	[UNSEEN_STREAM] = {HIDES_BOTH, hides_stream, 0, 0},
	[UNSEEN_H5PY_READ] = {HIDES_READS, hides_h5py_read, 0, 0},
	[UNSEEN_H5PY_WRITE] = {HIDES_BOTH, hides_h5py_write, 0, 1},
	[UNSEEN_H5PY_MADE] = {HIDES_WRITES, hides_h5py_made, 1, 0},
	[UNSEEN_TABLES_READ] = {HIDES_READS, hides_tables_read, 0, 0},
	[UNSEEN_TABLES_WRITE] = {HIDES_BOTH, hides_tables_write, 0, 1},
	[UNSEEN_TABLES_MADE] = {HIDES_WRITES, hides_tables_made, 1, 1},
	[UNSEEN_NETCDF_READ] = {HIDES_READS, hides_netcdf_read, 0, 0},
	[UNSEEN_NETCDF_WRITE] = {HIDES_BOTH, hides_netcdf_write, 0, 1},
};

static void apply(uint64_t name, uint32_t owner, uint64_t hidden)
{
	uint64_t none = 0;

	if (hidden == HIDES_ZSTD && owner - 1 < CREMA_SHM_TASKS)
		__atomic_compare_exchange_n(&reads_since[owner - 1], &none,
					    LOAD(&zstd_frames_of_nobody) + 1, 0, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED);
	else if (hidden != HIDES_ZSTD && hidden)
		task_counts_hidden(name, hidden);
}

static void ask(const struct codec *k, const struct codec_call *c, PyObject *self,
		PyObject *argument, PyObject *result)
{
	uint64_t name = pool_current(), counts = ways[k->into].counts;
	uint32_t owner = task_ref_name(name);
	struct crema_task *task = task_slot(owner);
	struct py_error error;
	PY_TURN;

	/* A check costs up to tens of microseconds: once all is unknown it stays so. */
	if (ways[k->into].stays || (task && (LOAD(&task->count_unknown) & counts) != counts)) {
		py_error_save(&error);
		apply(name, owner, ways[k->into].hides(c, self, argument, result));
		PyErr_Clear();
		py_error_restore(&error);
	}
	task_unref(owner);
}

void unseen_begin(const struct codec *k, struct codec_call *c, PyObject *self, PyObject *argument)
{
	c->counts = shim_armed();
	c->unused = zstd_frames_here;
	if (c->counts && k->into == UNSEEN_OPTIONS)
		writer_opens(self, argument);
	if (c->counts && !ways[k->into].at_end)
		ask(k, c, self, argument, NULL);
}

void unseen_end(const struct codec *k, const struct codec_call *c, PyObject *self, PyObject *result)
{
	if (c->counts && ways[k->into].at_end)
		ask(k, c, self, NULL, result);
}
