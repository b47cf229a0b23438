/* SPDX-License-Identifier: BSD-3-Clause */
/* unseen.c - which calls hide what, and frames of nobody's threads. */
#include "shim/python/unseen.h"

#include <string.h>

#include "shim/count/codec.h"
#include "shim/count/task.h"
#include "shim/python/patch.h"

#define COLUMNS_MAX 65536

/* By slot: zstd's frames of nobody when the task called a reader first, + 1; 0: it has not. */
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
		task_counts_unknown(task_name(owner), CODEC_COUNTS(decompress));
}

static int is_counted(PyObject *column)
{
	PyObject *codec = column ? py_attr_string(column, "compression") : NULL;
	const char *text =
		py_is(codec, &PyUnicode_Type) ? PyUnicode_AsUTF8AndSize(codec, NULL) : NULL;
	int r = text && (!strcmp(text, "ZSTD") || !strcmp(text, "UNCOMPRESSED"));

	Py_DecRef(codec);
	return r;
}

static PyObject *call_with(PyObject *o, const char *method, Py_ssize_t i)
{
	PyObject *f = o ? py_attr_string(o, method) : NULL, *args = f ? PyTuple_New(1) : NULL;
	PyObject *r = NULL;

	if (args && !PyTuple_SetItem(args, 0, PyLong_FromUnsignedLongLong((uint64_t)i)))
		r = PyObject_CallObject(f, args);
	Py_DecRef(args);
	Py_DecRef(f);
	return r;
}

/* All columns of the first row group: writers choose a codec by column, for the whole file. */
static int columns_are_counted(PyObject *reader)
{
	PyObject *meta = reader ? py_attr_string(reader, "metadata") : NULL;
	PyObject *many = meta ? py_attr_string(meta, "num_columns") : NULL;
	PyObject *groups = meta ? py_attr_string(meta, "num_row_groups") : NULL;
	PyObject *group =
		groups && PyObject_IsTrue(groups) == 1 ? call_with(meta, "row_group", 0) : NULL;
	long long n = many && group ? PyLong_AsLongLong(many) : -1;
	int counted = n >= 0 && n <= COLUMNS_MAX;

	for (long long i = 0; i < n && counted; i++) {
		PyObject *column = call_with(group, "column", (Py_ssize_t)i);

		counted = is_counted(column);
		Py_DecRef(column);
	}
	PyErr_Clear();
	Py_DecRef(group);
	Py_DecRef(groups);
	Py_DecRef(many);
	Py_DecRef(meta);
	return counted;
}

static void reads(const struct codec *k, PyObject *self)
{
	uint64_t name = pool_current(), none = 0;
	uint32_t owner = task_ref_name(name);
	struct crema_task *task = task_slot(owner);

	/* To look at the columns costs a microsecond for each: once it is unknown it stays so. */
	if (task && !(LOAD(&task->count_unknown) & CODEC_COUNTS(decompress))) {
		if (k->input != UNSEEN_PARQUET || !columns_are_counted(self))
			task_counts_unknown(name, CODEC_COUNTS(decompress));
		else
			__atomic_compare_exchange_n(&reads_since[owner - 1], &none,
						    LOAD(&zstd_frames_of_nobody) + 1, 0,
						    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
	task_unref(owner);
}

void unseen_begin(const struct codec *k, struct codec_call *c, PyObject *self)
{
	struct py_error error;

	c->counts = shim_armed();
	c->unused = zstd_frames_here;
	if (!c->counts || k->input == UNSEEN_WRITER)
		return;
	py_error_save(&error);
	reads(k, self);
	py_error_restore(&error);
}

void unseen_end(const struct codec *k, const struct codec_call *c)
{
	if (c->counts && k->input == UNSEEN_WRITER && zstd_frames_here == c->unused)
		task_counts_unknown(pool_current(), CODEC_COUNTS(compress));
}
