/* SPDX-License-Identifier: BSD-3-Clause */
/* hides_arrow.c - which calls into libarrow use codecs other than zstd, or libarrow's own
 * threads. */
#include <string.h>

#include "shim/count/codec.h"
#include "shim/python/hides.h"

#define COLUMNS_MAX 65536

static int text_is(PyObject *o, const char *a, const char *b)
{
	const char *text = o && py_is(o, &PyUnicode_Type) ? PyUnicode_AsUTF8AndSize(o, NULL) : NULL;

	return text && (!strcmp(text, a) || !strcmp(text, b));
}

static int is_counted(PyObject *column)
{
	PyObject *codec = column ? py_attr_string(column, "compression") : NULL;
	int r = text_is(codec, "ZSTD", "UNCOMPRESSED");

	Py_DecRef(codec);
	return r;
}

/* All columns of the first row group: writers choose a codec per column, for the whole file. */
HIDES(hides_parquet)
{
	PyObject *meta = py_attr_string(self, "metadata");
	PyObject *many = meta ? py_attr_string(meta, "num_columns") : NULL;
	PyObject *groups = meta ? py_attr_string(meta, "num_row_groups") : NULL;
	PyObject *group =
		groups && PyObject_IsTrue(groups) == 1 ? py_call_index(meta, "row_group", 0) : NULL;
	long long n = many && group ? PyLong_AsLongLong(many) : -1;
	int counted = n >= 0 && n <= COLUMNS_MAX;

	(void)c, (void)argument, (void)result;
	for (long long i = 0; i < n && counted; i++) {
		PyObject *column = py_call_index(group, "column", (Py_ssize_t)i);

		counted = is_counted(column);
		Py_DecRef(column);
	}
	Py_DecRef(group);
	Py_DecRef(groups);
	Py_DecRef(many);
	Py_DecRef(meta);
	return counted ? HIDES_ZSTD : HIDES_READS;
}

static int is_a(PyObject *o, const char *name)
{
	PyObject *lib = py_module("pyarrow.lib");
	PyObject *class = o && lib ? py_attr_string(lib, name) : NULL;
	int r = class && PyObject_IsInstance(o, class) == 1;

	Py_DecRef(class);
	Py_DecRef(lib);
	return r;
}

/* A batch's codec is only in the batch's message. */
HIDES(hides_ipc)
{
	(void)c, (void)argument, (void)result;
	return is_a(self, "_RecordBatchStreamReader") ? HIDES_READS : 0;
}

/* zstd in libarrow's threads is counted, but not for the task. */
HIDES(hides_options)
{
	PyObject *codec, *threads;
	uint64_t r = HIDES_WRITES;

	(void)c, (void)self, (void)result;
	if (!argument || argument == PY_NONE)
		return 0;
	codec = py_attr_string(argument, "compression");
	threads = py_attr_string(argument, "use_threads");
	if (codec == PY_NONE ||
	    (text_is(codec, "zstd", "zstd") && threads && PyObject_IsTrue(threads) == 0))
		r = 0;
	Py_DecRef(threads);
	Py_DecRef(codec);
	return r;
}

/* Opened writers that hide nothing, by address. Any other writer must be opened before it can have
 * such an address; one whose entry was lost counts as one that hides. */
#define WRITERS 256u
static PyObject *open_writers[WRITERS];

static PyObject **writer_slot(PyObject *writer)
{
	return &open_writers[((uintptr_t)writer >> 4) % WRITERS];
}

void writer_opens(PyObject *writer, PyObject *options)
{
	PyObject **slot = writer_slot(writer);
	struct py_error error;
	PY_TURN;

	py_error_save(&error);
	if (!hides_options(NULL, writer, options, NULL))
		*slot = writer;
	else if (*slot == writer)
		*slot = NULL;
	PyErr_Clear();
	py_error_restore(&error);
}

HIDES(hides_writer)
{
	(void)c, (void)argument, (void)result;
	return *writer_slot(self) == self ? 0 : HIDES_WRITES;
}

/* As libarrow decides by a path's suffix. */
static uint64_t path_hides(PyObject *path)
{
	static const char *const packed[] = {"gz", "bz2", "lz4", "br", "snappy"};
	PyObject *str = PyObject_Str(path);
	const char *text = str ? PyUnicode_AsUTF8AndSize(str, NULL) : NULL;
	const char *end = text ? strrchr(text, '.') : NULL;
	uint64_t r = text ? 0 : HIDES_READS;

	for (size_t i = 0; end && i < sizeof(packed) / sizeof(*packed); i++)
		r |= !strcmp(end + 1, packed[i]) ? HIDES_READS : 0;
	if (end && !strcmp(end, ".zst"))
		r = HIDES_ZSTD;
	Py_DecRef(str);
	return r;
}

HIDES(hides_named)
{
	(void)c, (void)self, (void)result;
	if (!argument || is_a(argument, "CompressedInputStream"))
		return HIDES_READS;
	return is_a(argument, "NativeFile") ? 0 : path_hides(argument);
}

HIDES(hides_sink)
{
	(void)c, (void)self, (void)result;
	return is_a(argument, "CompressedOutputStream") ? HIDES_WRITES : 0;
}

HIDES(hides_stream)
{
	(void)c, (void)argument, (void)result;
	return is_a(self, "CompressedInputStream")    ? HIDES_READS
	       : is_a(self, "CompressedOutputStream") ? HIDES_WRITES
						      : 0;
}
