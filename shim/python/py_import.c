/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_import.c - when this thread imports a module: what codecs decompress meanwhile belongs to the
 * import.
 *
 * Every import of a module that is not loaded yet, by a statement or by its name, is one call of
 * importlib's _find_and_load; the interpreter and importlib look it up by its name each time. The
 * builtin in its place leaves no line in a traceback. codecs.def's direction I sees extension
 * modules that are loaded without importlib.
 */
#include "shim/count/codec.h"
#include "shim/python/patch.h"
#include "shim/shim.h"

static PyObject *find_and_load;

static PyObject *run(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kw)
{
	uint32_t counts = (uint32_t)shim_armed();
	PyObject *r;

	(void)self;
	codec_importing += counts;
	r = py_vectorcall(find_and_load, args, n, kw);
	codec_importing -= counts && codec_importing; /* a child starts at 0 */
	return r;
}

int patch_imports(PyObject *module)
{
	static PyMethodDef def = {"_find_and_load", (void *)run, METH_FASTCALL | METH_KEYWORDS,
				  NULL};

	return py_replace_function(module, "_frozen_importlib", &def, &find_and_load);
}
