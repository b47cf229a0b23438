/* SPDX-License-Identifier: BSD-3-Clause */
/* py_line.c - see py_line.h. */
#include "shim/python/py_line.h"

#include "own_code.h"
#include "shim/python/py.h"

#define FRAMES 128

static struct crema_line line_of(PyObject *frame)
{
	PyObject *code = PyFrame_GetCode(frame), *file = py_attr_string(code, "co_filename");
	const char *name =
		file && py_is(file, &PyUnicode_Type) ? PyUnicode_AsUTF8AndSize(file, NULL) : NULL;
	struct crema_line line = {0};
	PyObject *function;
	int number;

	if (name && crema_is_own_code(name)) {
		function = py_attr_string(code, "co_name");
		number = PyFrame_GetLineNumber(frame);
		line.file = py_text_id(file);
		line.function = py_text_id(function);
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
