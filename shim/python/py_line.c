/* SPDX-License-Identifier: BSD-3-Clause */
/* py_line.c - see py_line.h. */
#include "shim/python/py_line.h"

#include "own_code.h"
#include "shim/python/py.h"

#define FRAMES 128

#define SEEN 256

/* By the hash, which a str keeps: the file names of a deep stack are not searched again. */
static int is_own(PyObject *file)
{
	static struct {
		Py_ssize_t hash;
		int known, own;
	} seen[SEEN];
	Py_ssize_t hash = PyObject_Hash(file);
	size_t at = (size_t)hash % SEEN;
	const char *name;

	if (!seen[at].known || seen[at].hash != hash) {
		name = PyUnicode_AsUTF8AndSize(file, NULL);
		seen[at].hash = hash;
		seen[at].own = name && crema_is_own_code(name);
		seen[at].known = 1;
	}
	return seen[at].own;
}

static struct crema_line line_of(PyObject *frame)
{
	static PyObject *co_filename; /* made once, not for each frame */
	PyObject *code = PyFrame_GetCode(frame), *file, *function;
	struct crema_line line = {0};
	int number;

	co_filename = co_filename ? co_filename : PyUnicode_InternFromString("co_filename");
	file = py_attr(code, co_filename);
	if (py_is(file, &PyUnicode_Type) && is_own(file)) {
		function = py_attr_string(code, "co_name");
		number = PyFrame_GetLineNumber(frame);
		line.file = py_bulk_id(file);
		line.function = py_bulk_id(function);
		line.line = number > 0 ? (uint32_t)number : 0;
		Py_DecRef(function);
	}
	PyErr_Clear();
	Py_DecRef(file);
	Py_DecRef(code);
	return line;
}

struct crema_line py_own_line(void)
{
	PyObject *frame = PyEval_GetFrame(), *back;
	struct crema_line line = {0};

	Py_IncRef(frame);
	for (int i = 0; frame && i < FRAMES; i++) {
		line = line_of(frame);
		if (line.file)
			break;
		back = PyFrame_GetBack(frame);
		Py_DecRef(frame);
		frame = back;
	}
	PyErr_Clear();
	Py_DecRef(frame);
	return line;
}
