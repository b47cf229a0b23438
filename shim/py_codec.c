/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_codec.c - counts what codecs of extension modules take in and give back.
 *
 * A builtin function object points to its PyMethodDef. That pointer is exchanged for our copy of the
 * definition, whose ml_meth is a thunk that knows the original: the function object itself stays, so
 * names bound earlier are caught too and identity, repr, doc and pickling are unchanged. Before the
 * exchange the object is checked to be laid out as expected; if not, it is left alone and noted.
 *
 * Only the outermost codec call of a thread counts.
 */
#include <errno.h>
#include <string.h>

#include "op.h"
#include "patch.h"
#include "sys.h"
#include "task.h"

struct codec {
	const char *module, *path;
	int decompress, into;
	void *original;
	PyMethodDef def;
	uint32_t row; /* row + 1 last used */
};

#define D 1
#define C 0
static struct codec codecs[CREMA_CODECS] = {
#define CODEC(id, mod, where, name, direction, in)                                                 \
	[CREMA_CODEC_##id] = {.module = mod, .path = where, .decompress = direction, .into = in},
#include "codecs.def"
#undef CODEC
};
#undef C
#undef D

static __thread uint32_t codec_depth;

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
		if (!LOAD(&r->state) && __atomic_compare_exchange_n(&r->state, &none, 1, 0,
								     __ATOMIC_ACQUIRE,
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

struct codec_call {
	uint64_t in, cpu_ns, start;
	int counts;
};

static void codec_begin(struct codec_call *c, PyObject *input)
{
	c->counts = shim_armed() && codec_depth++ == 0;
	if (!c->counts)
		return;
	c->in = bytes_of(input);
	c->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	c->start = ticks();
}

static void codec_count(int id, const struct codec_call *c, uint64_t cpu, uint64_t wall,
			PyObject *result)
{
	const struct codec *k = &codecs[id];
	uint64_t out = k->into ? count_of(result) : bytes_of(result);
	struct crema_thread *t = thread_self();
	uint64_t *n = t ? &t->seg.count[k->decompress ? CREMA_C_decompress_calls
						      : CREMA_C_compress_calls]
			: NULL;
	struct crema_codec_row *row = row_of(id, segment_span());

	if (n) {
		/* counters.def keeps the five of a direction together, in this order */
		n[0] += 1;
		n[1] += c->in;
		n[2] += out;
		n[3] += cpu;
		n[4] += wall;
	}
	if (row) {
		ADD(&row->calls, 1);
		ADD(&row->in_bytes, c->in);
		ADD(&row->out_bytes, out);
		ADD(&row->cpu_ns, cpu);
		ADD(&row->wall_ns, wall);
	}
}
_Static_assert(CREMA_C_decompress_wall_ns == CREMA_C_decompress_calls + 4 &&
		       CREMA_C_compress_wall_ns == CREMA_C_compress_calls + 4,
	       "calls, in, out, cpu, wall stand together");

static PyObject *codec_end(int id, struct codec_call *c, PyObject *result)
{
	uint64_t wall, cpu;

	if (!shim_armed())
		return result;
	codec_depth--;
	if (!c->counts || !result)
		return result;
	wall = ticks_ns(ticks() - c->start);
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - c->cpu_ns;
	codec_count(id, c, cpu, wall, result);
	return result;
}

typedef PyObject *(*fast_kw)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
typedef PyObject *(*fast)(PyObject *, PyObject *const *, Py_ssize_t);
typedef PyObject *(*var_kw)(PyObject *, PyObject *, PyObject *);
typedef PyObject *(*one)(PyObject *, PyObject *);

static PyObject *run_fast_kw(int id, PyObject *self, PyObject *const *a, Py_ssize_t n,
			     PyObject *kw)
{
	struct codec_call c;
	PyObject *r;

	codec_begin(&c, n > 0 || (kw && PyTuple_Size(kw) > 0) ? a[0] : NULL);
	r = ((fast_kw)codecs[id].original)(self, a, n, kw);
	return codec_end(id, &c, r);
}

static PyObject *run_fast(int id, PyObject *self, PyObject *const *a, Py_ssize_t n)
{
	struct codec_call c;
	PyObject *r;

	codec_begin(&c, n > 0 ? a[0] : NULL);
	r = ((fast)codecs[id].original)(self, a, n);
	return codec_end(id, &c, r);
}

static PyObject *first_of(PyObject *args, PyObject *kwargs)
{
	static const char *const usual[] = {"data", "buf", "string", "source", "source_buf"};
	PyObject *o = NULL;

	if (args && PyTuple_Size(args) > 0)
		return PyTuple_GetItem(args, 0);
	for (int i = 0; kwargs && !o && i < 5; i++)
		o = PyDict_GetItemString(kwargs, usual[i]);
	return o;
}

static PyObject *run_var_kw(int id, PyObject *self, PyObject *args, PyObject *kwargs)
{
	struct codec_call c;
	PyObject *r;

	codec_begin(&c, first_of(args, kwargs));
	r = ((var_kw)codecs[id].original)(self, args, kwargs);
	return codec_end(id, &c, r);
}

/* METH_VARARGS and METH_O have the same signature; only the first argument differs. */
static PyObject *run_one(int id, PyObject *self, PyObject *arg, int is_tuple)
{
	struct codec_call c;
	PyObject *r;

	codec_begin(&c, is_tuple ? first_of(arg, NULL) : arg);
	r = ((one)codecs[id].original)(self, arg);
	return codec_end(id, &c, r);
}

#define CODEC(id, mod, where, name, direction, in)                                                 \
	static PyObject *fk_##id(PyObject *s, PyObject *const *a, Py_ssize_t n, PyObject *k)       \
	{                                                                                          \
		return run_fast_kw(CREMA_CODEC_##id, s, a, n, k);                                  \
	}                                                                                          \
	static PyObject *fa_##id(PyObject *s, PyObject *const *a, Py_ssize_t n)                    \
	{                                                                                          \
		return run_fast(CREMA_CODEC_##id, s, a, n);                                        \
	}                                                                                          \
	static PyObject *vk_##id(PyObject *s, PyObject *a, PyObject *k)                            \
	{                                                                                          \
		return run_var_kw(CREMA_CODEC_##id, s, a, k);                                      \
	}                                                                                          \
	static PyObject *va_##id(PyObject *s, PyObject *a)                                         \
	{                                                                                          \
		return run_one(CREMA_CODEC_##id, s, a, 1);                                         \
	}                                                                                          \
	static PyObject *on_##id(PyObject *s, PyObject *a)                                         \
	{                                                                                          \
		return run_one(CREMA_CODEC_##id, s, a, 0);                                         \
	}
#include "codecs.def"
#undef CODEC

static void *thunk(int id, int flags)
{
	static void *const thunks[CREMA_CODECS][5] = {
#define CODEC(id, mod, where, name, direction, in)                                                 \
	[CREMA_CODEC_##id] = {(void *)fk_##id, (void *)fa_##id, (void *)vk_##id, (void *)va_##id,  \
			      (void *)on_##id},
#include "codecs.def"
#undef CODEC
	};

	switch (flags & METH_CALL_MASK) {
	case METH_FASTCALL | METH_KEYWORDS:
		return thunks[id][0];
	case METH_FASTCALL:
		return thunks[id][1];
	case METH_VARARGS | METH_KEYWORDS:
		return thunks[id][2];
	case METH_VARARGS:
		return thunks[id][3];
	case METH_O:
		return thunks[id][4];
	}
	return NULL;
}

/* Where a builtin keeps the pointer to its PyMethodDef: right behind the object header. */
static PyMethodDef **method_pointer(PyObject *f)
{
	PyObject *builtins = PyEval_GetBuiltins();
	PyObject *object = builtins ? PyDict_GetItemString(builtins, "object") : NULL;
	PyObject *size = object ? py_attr_string(object, "__basicsize__") : NULL;
	long long n = size ? PyLong_AsLongLong(size) : -1;

	PyErr_Clear();
	Py_DecRef(size);
	return n >= 16 && n <= 64 ? (PyMethodDef **)(void *)((char *)f + n) : NULL;
}

static int exchange(int id, PyObject *f)
{
	struct codec *k = &codecs[id];
	PyMethodDef **at;
	void *t;

	if (k->original || !py_is(f, &PyCFunction_Type))
		return -ENOENT;
	at = method_pointer(f);
	if (!at || !*at || (*at)->ml_meth != PyCFunction_GetFunction(f) ||
	    (*at)->ml_flags != PyCFunction_GetFlags(f))
		return -EINVAL;
	t = thunk(id, (*at)->ml_flags);
	if (!t)
		return -EINVAL;
	k->def = **at;
	k->original = k->def.ml_meth;
	k->def.ml_meth = t;
	__atomic_store_n(at, &k->def, __ATOMIC_RELEASE);
	return 0;
}

static PyObject *follow(PyObject *module, const char *path)
{
	char part[64];
	PyObject *o = module;

	Py_IncRef(o);
	while (o && *path) {
		size_t n = strcspn(path, ".");
		PyObject *next;

		if (n >= sizeof(part))
			n = sizeof(part) - 1;
		memcpy(part, path, n);
		part[n] = 0;
		next = py_attr_string(o, part);
		Py_DecRef(o);
		o = next;
		path += n + (path[n] == '.');
	}
	return o;
}

int patch_codecs(PyObject *module, const char *name)
{
	int r = -ENOENT;

	for (int i = 0; i < CREMA_CODECS; i++) {
		PyObject *f;

		if (strcmp(codecs[i].module, name))
			continue;
		f = follow(module, codecs[i].path);
		if (f && !exchange(i, f))
			r = 0;
		Py_DecRef(f);
	}
	return r;
}
