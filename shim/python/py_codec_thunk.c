/* SPDX-License-Identifier: BSD-3-Clause */
/* py_codec_thunk.c - a function per codec and calling convention, because a call carries only the
 * module or object it belongs to, not which function it is. */
#include "shim/python/py_codec.h"

typedef PyObject *(*fast_kw)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
typedef PyObject *(*fast)(PyObject *, PyObject *const *, Py_ssize_t);
typedef PyObject *(*var_kw)(PyObject *, PyObject *, PyObject *);
typedef PyObject *(*one)(PyObject *, PyObject *);
typedef PyObject *(*method)(PyObject *, PyObject *, PyObject *const *, Py_ssize_t, PyObject *);

/* The input argument of a call with an array of arguments; keywords follow the positional ones. */
static PyObject *nth(int id, PyObject *const *a, Py_ssize_t n, PyObject *kw)
{
	Py_ssize_t all = n + (kw ? PyTuple_Size(kw) : 0);

	return codecs[id].input >= 0 && codecs[id].input < all ? a[codecs[id].input] : NULL;
}

static PyObject *nth_of_tuple(int id, PyObject *args, PyObject *kwargs)
{
	static const char *const usual[] = {"data", "buf", "string", "source", "source_buf"};
	PyObject *o = NULL;

	if (codecs[id].input < 0)
		return NULL;
	if (args && PyTuple_Size(args) > codecs[id].input)
		return PyTuple_GetItem(args, codecs[id].input);
	for (int i = 0; kwargs && !o && i < 5; i++)
		o = PyDict_GetItemString(kwargs, usual[i]);
	return o;
}

static PyObject *run_fast_kw(int id, PyObject *self, PyObject *const *a, Py_ssize_t n, PyObject *kw)
{
	struct codec_call c;

	codec_begin(id, &c, self, nth(id, a, n, kw));
	return codec_end(id, &c, self, ((fast_kw)codecs[id].original)(self, a, n, kw));
}

static PyObject *run_fast(int id, PyObject *self, PyObject *const *a, Py_ssize_t n)
{
	struct codec_call c;

	codec_begin(id, &c, self, nth(id, a, n, NULL));
	return codec_end(id, &c, self, ((fast)codecs[id].original)(self, a, n));
}

static PyObject *run_method(int id, PyObject *self, PyObject *class, PyObject *const *a,
			    Py_ssize_t n, PyObject *kw)
{
	struct codec_call c;

	codec_begin(id, &c, self, nth(id, a, n, kw));
	return codec_end(id, &c, self, ((method)codecs[id].original)(self, class, a, n, kw));
}

static PyObject *run_var_kw(int id, PyObject *self, PyObject *args, PyObject *kwargs)
{
	struct codec_call c;

	codec_begin(id, &c, self, nth_of_tuple(id, args, kwargs));
	return codec_end(id, &c, self, ((var_kw)codecs[id].original)(self, args, kwargs));
}

/* METH_VARARGS, METH_O and METH_NOARGS have the same signature; only the argument differs. */
static PyObject *run_one(int id, PyObject *self, PyObject *arg, int is_tuple)
{
	struct codec_call c;

	codec_begin(id, &c, self, is_tuple ? nth_of_tuple(id, arg, NULL) : arg);
	return codec_end(id, &c, self, ((one)codecs[id].original)(self, arg));
}

#define CODEC(id, mod, where, name, direction, at, in)                                             \
	static PyObject *fk_##id(PyObject *s, PyObject *const *a, Py_ssize_t n, PyObject *k)       \
	{                                                                                          \
		return run_fast_kw(CREMA_CODEC_##id, s, a, n, k);                                  \
	}                                                                                          \
	static PyObject *fa_##id(PyObject *s, PyObject *const *a, Py_ssize_t n)                    \
	{                                                                                          \
		return run_fast(CREMA_CODEC_##id, s, a, n);                                        \
	}                                                                                          \
	static PyObject *me_##id(PyObject *s, PyObject *c, PyObject *const *a, Py_ssize_t n,       \
				 PyObject *k)                                                      \
	{                                                                                          \
		return run_method(CREMA_CODEC_##id, s, c, a, n, k);                                \
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

void *codec_thunk(int id, int flags)
{
	static void *const thunks[CREMA_CODECS][6] = {
#define CODEC(id, mod, where, name, direction, at, in)                                             \
	[CREMA_CODEC_##id] = {(void *)fk_##id, (void *)fa_##id, (void *)vk_##id,                   \
			      (void *)va_##id, (void *)on_##id, (void *)me_##id},
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
	case METH_NOARGS:
		return thunks[id][4];
	case METH_METHOD | METH_FASTCALL | METH_KEYWORDS:
		return thunks[id][5];
	}
	return NULL;
}
