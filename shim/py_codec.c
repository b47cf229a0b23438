/* SPDX-License-Identifier: BSD-3-Clause */
/* py_codec.c - counts around a codec call. */
#include "py_codec.h"

#include "sys.h"
#include "task.h"

#define D 1
#define C 0
struct codec codecs[CREMA_CODECS] = {
#define CODEC(id, mod, where, name, direction, at, in)                                             \
	[CREMA_CODEC_##id] = {                                                                     \
		.module = mod, .path = where, .decompress = direction, .input = at, .into = in},
#include "codecs.def"
#undef CODEC
};
#undef C
#undef D

static __thread uint32_t codec_depth;

void codec_forget(void)
{
	for (int id = 0; id < CREMA_CODECS; id++)
		codecs[id].row = 0;
	codec_depth = 0;
}

static struct crema_codec_row *row_of(int id, uint32_t span)
{
	uint32_t row = LOAD(&codecs[id].row);

	if (row && crema_shm->codec[row - 1].span == span)
		return &crema_shm->codec[row - 1];
	for (row = 0; row < CREMA_SHM_CODEC_ROWS; row++) {
		struct crema_codec_row *r = &crema_shm->codec[row];
		uint32_t none = 0;

		/* The GIL is held: nobody else is making a row. */
		if (LOAD(&r->state) == 2 && r->codec == (uint32_t)id && r->span == span)
			break;
		if (!LOAD(&r->state) &&
		    __atomic_compare_exchange_n(&r->state, &none, 1, 0, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED)) {
			r->codec = (uint32_t)id;
			r->span = span;
			__atomic_store_n(&r->state, 2, __ATOMIC_RELEASE);
			break;
		}
	}
	if (row == CREMA_SHM_CODEC_ROWS) {
		ADD(&crema_shm->totals.codecs_refused, 1);
		return NULL;
	}
	STORE(&codecs[id].row, row + 1);
	return &crema_shm->codec[row];
}

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

	if (PyErr_Occurred()) {
		PyErr_Clear();
		return 0;
	}
	return v;
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

	c->counts = shim_armed() && codec_depth++ == 0;
	if (!c->counts)
		return;
	c->in = k->input >= 0 ? bytes_of(data) : 0;
	c->unused = k->is_method && k->decompress ? attr_bytes(self, "unused_data") : 0;
	c->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	c->start = ticks();
}

/* Bytes given back, and what of the input was really taken. */
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

static void codec_count(int id, struct codec_call *c, uint64_t cpu, uint64_t wall, uint64_t out)
{
	const struct codec *k = &codecs[id];
	struct crema_thread *t = thread_self();
	uint64_t *n =
		t ? &t->seg.count[k->decompress ? CREMA_C_decompress_calls : CREMA_C_compress_calls]
		  : NULL;
	struct crema_codec_row *row = row_of(id, segment_span());
	uint64_t calls = k->input >= 0; /* the end of a stream is no call of its own */

	if (n) {
		/* counters.def keeps the five of a direction together, in this order */
		n[0] += calls;
		n[1] += c->in;
		n[2] += out;
		n[3] += cpu;
		n[4] += wall;
	}
	if (row) {
		ADD(&row->calls, calls);
		ADD(&row->in_bytes, c->in);
		ADD(&row->out_bytes, out);
		ADD(&row->cpu_ns, cpu);
		ADD(&row->wall_ns, wall);
	}
}
_Static_assert(CREMA_C_decompress_wall_ns == CREMA_C_decompress_calls + 4 &&
		       CREMA_C_compress_wall_ns == CREMA_C_compress_calls + 4,
	       "calls, in, out, cpu, wall stand together");

PyObject *codec_end(int id, struct codec_call *c, PyObject *self, PyObject *result)
{
	uint64_t wall, cpu;

	if (!shim_armed())
		return result;
	codec_depth--;
	if (!c->counts || !result)
		return result;
	wall = ticks_ns(ticks() - c->start);
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - c->cpu_ns;
	codec_count(id, c, cpu, wall, output_of(&codecs[id], c, self, result));
	return result;
}
