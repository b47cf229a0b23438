/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_client.c - the client of an analysis under `crema run`: its main thread is recorded.
 *
 * CREMA_CLIENT is "PID BEGIN_NS FILE"; only the process with that id is the command itself. An
 * audit hook that is registered before Python starts sees the event with which Python begins its
 * program: the interpreter is complete then, and none of the user's code has run.
 */
#include <stdlib.h>
#include <string.h>

#include "client_py.h"
#include "shim/libc/sys.h"
#include "shim/python/patch.h"
#include "shim/shim.h"

static const char *file;
static unsigned long long begin_ns;

static void start(void)
{
	PyObject *code = Py_CompileString(client_source, "<crema client>", PY_FILE_INPUT);
	PyObject *space = PyDict_New(), *name = PyUnicode_FromString("_crema_client");
	PyObject *args[2] = {PyUnicode_FromString(file), PyLong_FromUnsignedLongLong(begin_ns)};
	PyObject *f = NULL, *done = NULL, *r = NULL;

	if (code && space && name && args[0] && args[1]) {
		PyDict_SetItemString(space, "__builtins__", PyEval_GetBuiltins());
		PyDict_SetItemString(space, "__name__", name);
		r = PyEval_EvalCode(code, space, space);
		f = r ? PyDict_GetItemString(space, "start") : NULL;
		done = f ? py_vectorcall(f, args, 2, NULL) : NULL;
	}
	PyErr_Clear();
	Py_DecRef(done);
	Py_DecRef(r);
	Py_DecRef(args[0]);
	Py_DecRef(args[1]);
	Py_DecRef(name);
	Py_DecRef(space);
	Py_DecRef(code);
}

static int audit(const char *event, PyObject *args, void *unused)
{
	struct py_error error;

	(void)args;
	(void)unused;
	if (!file || event[0] != 'c' || strncmp(event, "cpython.run_", strlen("cpython.run_")))
		return 0;
	if (shim_off || !py_complete()) {
		file = NULL;
		return 0;
	}
	py_error_save(&error);
	start();
	file = NULL;
	py_error_restore(&error);
	return 0;
}

void client_watch(void)
{
	const char *text = getenv("CREMA_CLIENT");
	char *end;

	if (!text || shim_off || !PySys_AddAuditHook || !Py_IsInitialized || Py_IsInitialized())
		return;
	if (strtol(text, &end, 10) != sys_getpid() || *end != ' ')
		return;
	begin_ns = strtoull(end, &end, 10);
	if (*end == ' ' && end[1] == '/') {
		file = end + 1;
		PySys_AddAuditHook(audit, NULL);
	}
}
