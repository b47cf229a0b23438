/* SPDX-License-Identifier: BSD-3-Clause */
/* py_codec.c - counts around a codec call. */
#include "shim/python/py_codec.h"

#include "shim/count/clock.h"
#include "shim/count/codec.h"
#include "shim/python/patch.h"
#include "shim/libc/sys.h"
#include "shim/count/task.h"
#include "shim/count/thread.h"
#include "unseen.h"

#define D 1
#define C 0
#define I CODEC_IMPORTS
#define U CODEC_UNSEEN
struct codec codecs[CREMA_CODECS] = {
#define CODEC(id, mod, where, name, direction, at, in)                                             \
	[CREMA_CODEC_##id] = {                                                                     \
		.module = mod, .path = where, .decompress = direction, .input = at, .into = in},
#include "codecs.def"
#undef CODEC
};
#undef U
#undef I
#undef C
#undef D

/* Length of a bytes-like object in bytes; 0 if it has none. */
static uint64_t bytes_of(PyObject *o)
{
	Py_buffer view;
	uint64_t n;

	if (!o || PyObject_GetBuffer(o, &view, 0 /* PyBUF_SIMPLE */)) {
		Py_ssize_t size;

		PyErr_Clear();
		size = o ? PyObject_Size(o) : 0;
		PyErr_Clear();
		return size > 0 ? (uint64_t)size : 0;
	}
	n = (uint64_t)view.len;
	PyBuffer_Release(&view);
	return n;
}

static uint64_t count_of(PyObject *o)
{
	unsigned long long v = PyLong_AsUnsignedLongLong(o);
	int is_none = PyErr_Occurred() != NULL;

	PyErr_Clear();
	return is_none ? 0 : v;
}

static uint64_t attr_bytes(PyObject *self, const char *name)
{
	PyObject *rest = py_attr_string(self, name);
	uint64_t n = rest ? bytes_of(rest) : 0;

	Py_DecRef(rest);
	return n;
}

/* How much of its input a stream object did not take: before the end the tail, which it will be
 * given again; at the end what followed the stream (zlib shows that as a tail, too). */
static uint64_t left_over(PyObject *self, uint64_t unused_before)
{
	PyObject *eof = py_attr_string(self, "eof");
	int ended = eof && PyObject_IsTrue(eof) == 1;

	Py_DecRef(eof);
	return ended ? attr_bytes(self, "unused_data") - unused_before
		     : attr_bytes(self, "unconsumed_tail");
}

void codec_begin(int id, struct codec_call *c, PyObject *self, PyObject *data)
{
	const struct codec *k = &codecs[id];

	if (k->decompress == CODEC_IMPORTS) {
		c->counts = shim_armed();
		codec_importing += (uint32_t)c->counts;
		return;
	}
	if (k->decompress == CODEC_UNSEEN) {
		unseen_begin(k, c, self, data);
		return;
	}
	c->counts = shim_armed() && codec_depth++ == 0;
	if (!c->counts)
		return;
	c->in = k->input >= 0 ? bytes_of(data) : 0;
	c->unused = k->is_method && k->decompress ? attr_bytes(self, "unused_data") : 0;
	c->cpu_ns = clock_cpu_ns();
	c->start = ticks();
}

/* Bytes returned, and how much of the input was really taken. */
static uint64_t output_of(const struct codec *k, struct codec_call *c, PyObject *self,
			  PyObject *result)
{
	uint64_t left;

	if (k->into)
		return count_of(result);
	if (py_is(result, &PyTuple_Type)) { /* lz4's chunks: (bytes, bytes taken, at the end) */
		c->in = count_of(PyTuple_GetItem(result, 1));
		return bytes_of(PyTuple_GetItem(result, 0));
	}
	if (k->is_method && k->decompress && k->input >= 0) {
		left = left_over(self, c->unused);
		c->in = c->in > left ? c->in - left : 0;
	}
	return bytes_of(result);
}

PyObject *codec_end(int id, struct codec_call *c, PyObject *self, PyObject *result)
{
	struct codec_sum sum;
	uint64_t wall, cpu;

	if (codecs[id].decompress == CODEC_IMPORTS) {
		codec_importing -= c->counts && codec_importing; /* a child starts at 0 */
		return result;
	}
	if (codecs[id].decompress == CODEC_UNSEEN)
		unseen_end(&codecs[id], c, self, result);
	if (!shim_armed() || codecs[id].decompress == CODEC_UNSEEN)
		return result;
	codec_depth--;
	if (!c->counts || !result)
		return result;
	if (result == PY_NONE && codecs[id].decompress) {
		/* The output went to a place that the caller named. */
		task_counts_hidden(pool_current(), CODEC_COUNTS(decompress));
		return result;
	}
	wall = ticks_ns(ticks() - c->start);
	cpu = clock_cpu_inside(c->cpu_ns, wall);
	sum.out_bytes = output_of(&codecs[id], c, self, result);
	sum.in_bytes = c->in;
	sum.calls = codecs[id].input >= 0; /* the end of a stream is not a separate call */
	sum.cpu_ns = cpu;
	sum.wall_ns = wall;
	sum.time_unknown = 0;
	codec_count(id, codecs[id].decompress, &sum);
	return result;
}
