/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_section.c - crema.instrument (python/crema): sets its functions, which are None without the
 * shim.
 *
 * None of them raises: a task does the same with and without the shim.
 */
#include <errno.h>

#include "shim/count/section.h"
#include "shim/python/patch.h"

static PyObject *none(void)
{
	PyErr_Clear();
	Py_IncRef(PY_NONE);
	return PY_NONE;
}

static const char *text_of(PyObject *o, Py_ssize_t *bytes)
{
	return py_is(o, &PyUnicode_Type) ? PyUnicode_AsUTF8AndSize(o, bytes) : NULL;
}

static PyObject *begin(PyObject *const *args, Py_ssize_t nargs, int memory)
{
	Py_ssize_t bytes = 0;
	PyObject *r = NULL;
	const char *name;
	uint64_t token;
	PY_TURN;

	if (!shim_armed() || nargs < 1)
		return none();
	name = text_of(args[0], &bytes);
	token = section_begin(name, (size_t)bytes, memory);
	if (token)
		r = PyLong_FromUnsignedLongLong(token);

	return r ? r : none();
}

static PyObject *begin_section(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			       PyObject *kw)
{
	(void)self;
	(void)kw;
	return begin(args, nargs, 0);
}

static PyObject *begin_memory(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
	(void)self;
	(void)kw;
	return begin(args, nargs, 1);
}

static PyObject *end(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
	PY_TURN;

	(void)self;
	(void)kw;
	if (shim_armed() && nargs > 0 && args[0] != PY_NONE) {
		struct py_error error;
		uint64_t token;

		py_error_save(&error);
		token = PyLong_AsUnsignedLongLong(args[0]);
		if (!PyErr_Occurred())
			section_end(token);
		PyErr_Clear();
		py_error_restore(&error);
	}
	Py_IncRef(PY_NONE);
	return PY_NONE;
}

static PyObject *value(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
	Py_ssize_t bytes = 0;
	const char *name = shim_armed() && nargs > 1 ? text_of(args[0], &bytes) : NULL;
	double v;
	PY_TURN;

	(void)self;
	(void)kw;
	if (!name)
		return none();
	v = PyFloat_AsDouble(args[1]);
	section_value(name, (size_t)bytes, PyErr_Occurred() ? __builtin_nan("") : v);
	return none();
}

static PyMethodDef defs[] = {
	{"_begin", (void *)begin_section, METH_FASTCALL | METH_KEYWORDS, NULL},
	{"_begin_memory", (void *)begin_memory, METH_FASTCALL | METH_KEYWORDS, NULL},
	{"_end", (void *)end, METH_FASTCALL | METH_KEYWORDS, NULL},
	{"_value", (void *)value, METH_FASTCALL | METH_KEYWORDS, NULL},
};

int patch_instrument(PyObject *module)
{
	PyObject *dict = PyModule_GetDict(module);
	unsigned int found = 0;

	for (size_t i = 0; dict && i < sizeof(defs) / sizeof(defs[0]); i++) {
		PyObject *f;

		if (PyDict_GetItemString(dict, defs[i].ml_name) != PY_NONE)
			continue;
		f = py_builtin(&defs[i], NULL, "crema.instrument");
		if (f && !PyDict_SetItemString(dict, defs[i].ml_name, f))
			found++;
		PyErr_Clear();
		Py_DecRef(f);
	}
	return found == sizeof(defs) / sizeof(defs[0]) ? 0 : -ENOENT;
}
