/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_worker.c - a Dask Worker starts: this process is armed, probed and given an agent.
 *
 * Runs in the worker's event loop, with the GIL, before the worker takes any task.
 */
#include <errno.h>
#include <string.h>

#include "probe_py.h"
#include "shim/python/notify.h"
#include "shim/libc/sys.h"
#include "shim/count/task.h"
#include "shim/count/net.h"
#include "shim/python/patch.h"

static PyObject *original_start;
static char collector[512]; /* the default destination */

/* The host of "tcp://host:8786", with crema's port. */
static void collector_from_scheduler(PyObject *worker)
{
	PyObject *scheduler = py_attr_string(worker, "scheduler");
	PyObject *address = py_attr_string(scheduler, "address");
	const char *text = address && py_is(address, &PyUnicode_Type)
				   ? PyUnicode_AsUTF8AndSize(address, NULL)
				   : NULL;
	const char *host = text ? strstr(text, "://") : NULL, *end;
	size_t n;

	host = host ? host + 3 : NULL;
	end = host ? strrchr(host, ':') : NULL;
	n = end ? (size_t)(end - host) : 0;
	if (!n) { /* a scheduler in this process has no host in its address */
		host = "127.0.0.1";
		n = strlen(host);
	}
	if (n + 6 < sizeof(collector)) {
		memcpy(collector, host, n);
		memcpy(collector + n, ":8990", 6);
	}
	PyErr_Clear();
	Py_DecRef(address);
	Py_DecRef(scheduler);
}

static PyObject *none(void)
{
	Py_IncRef(PY_NONE);
	return PY_NONE;
}

/* _put(kind, text): 0 = facts, 1 = a sample, taken every half second */
static PyObject *put(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
	Py_ssize_t n = 0;
	const char *text;
	int facts;
	PY_TURN;

	(void)self;
	(void)kw;
	if (nargs < 2 || !shim_armed())
		return none();
	facts = PyObject_IsTrue(args[0]) == 0;
	text = PyUnicode_AsUTF8AndSize(args[1], &n);
	if (text)
		probe_put(facts ? &crema_shm->facts : &crema_shm->probe, text, (size_t)n);
	PyErr_Clear();
	if (!facts) {
		shim_snapshot();
		agent_watch();
		patch_pending();
	}
	return none();
}

/* _task_begin(flags, key, worker[, key of the task whose prefix and span it has]): a task that
 * shares its thread with others or runs in another process, so only its wall time is known. */
static PyObject *task_begin(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
	uint32_t owner;
	struct crema_task *t;
	PY_TURN;

	(void)self;
	(void)kw;
	owner = shim_armed() && nargs >= 3 ? task_open() : OWNER_NONE;
	t = task_slot(owner);
	if (t) {
		t->flags |= (uint32_t)PyLong_AsUnsignedLongLong(args[0]);
		task_describe(t, args[1], args[2], nargs > 3 ? args[3] : args[1]);
		t->time_unknown = (1u << CREMA_TIMES) - 1;
		t->count_unknown = (1ull << CREMA_COUNTS) - 1;
	}
	PyErr_Clear();
	notify_task_begins(owner);
	return PyLong_FromUnsignedLongLong(owner);
}

/* The task took this long, ending now. */
static void set_wall(struct crema_task *t, double seconds)
{
	uint64_t ns = seconds >= 0 && seconds < 1e9 ? (uint64_t)(seconds * 1e9) : 0;

	if (!t || seconds < 0)
		return;
	t->start_mono_ns = t->stop_mono_ns - ns;
	t->start_boot_ns = t->stop_boot_ns - ns;
}

/* _task_end(name, ok[, seconds]) */
static PyObject *task_end(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
	uint32_t owner;
	PY_TURN;

	(void)self;
	(void)kw;
	if (nargs < 2 || !shim_armed())
		return none();
	owner = (uint32_t)PyLong_AsUnsignedLongLong(args[0]);
	PyErr_Clear();
	if (owner != OWNER_NONE) {
		task_stopped(owner, 0);
		if (nargs > 2)
			set_wall(task_slot(owner), PyFloat_AsDouble(args[2]));
		PyErr_Clear();
		notify_task_ends(owner, PyObject_IsTrue(args[1]) == 1 ? CREMA_STATUS_OK
								      : CREMA_STATUS_ERRED);
	}
	return none();
}

/* _note(text) */
static PyObject *note(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
	const char *text = nargs > 0 ? PyUnicode_AsUTF8AndSize(args[0], NULL) : NULL;
	PY_TURN;

	(void)self;
	(void)kw;
	PyErr_Clear();
	if (text && shim_armed())
		shim_note(text);
	return none();
}

/* _comm(fd): one of Dask's own connections */
static PyObject *comm(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
	long long fd = nargs > 0 ? PyLong_AsLongLong(args[0]) : -1;
	PY_TURN;

	(void)self;
	(void)kw;
	PyErr_Clear();
	if (fd >= 0 && fd < INT32_MAX && shim_armed())
		net_mark_comm((int)fd);
	return none();
}

static PyMethodDef probe_defs[] = {
	{"_comm", (void *)comm, METH_FASTCALL | METH_KEYWORDS, NULL},
	{"_note", (void *)note, METH_FASTCALL | METH_KEYWORDS, NULL},
	{"_put", (void *)put, METH_FASTCALL | METH_KEYWORDS, NULL},
	{"_task_begin", (void *)task_begin, METH_FASTCALL | METH_KEYWORDS, NULL},
	{"_task_end", (void *)task_end, METH_FASTCALL | METH_KEYWORDS, NULL},
};

static void probe_number(PyObject *probe, const char *name, unsigned value)
{
	PyObject *number = PyLong_FromUnsignedLongLong(value);

	if (number)
		PyDict_SetItemString(probe, name, number);
	Py_DecRef(number);
}

static int probe_make(void)
{
	PyObject *code = Py_CompileString(probe_source, "<crema probe>", PY_FILE_INPUT), *r = NULL;
	PyObject *probe = PyDict_New();

	if (!code || !probe)
		goto out;
	probe_set(probe);
	PyDict_SetItemString(probe, "__builtins__", PyEval_GetBuiltins());
	for (size_t i = 0; i < sizeof(probe_defs) / sizeof(probe_defs[0]); i++) {
		PyObject *f = py_builtin(&probe_defs[i], NULL, "crema");

		if (f)
			PyDict_SetItemString(probe, probe_defs[i].ml_name, f);
		Py_DecRef(f);
	}
	probe_number(probe, "_ASYNC", CREMA_TASK_ASYNC);
	probe_number(probe, "_ACTOR", CREMA_TASK_ACTOR);
	probe_number(probe, "_ELSEWHERE", CREMA_TASK_ELSEWHERE);
	r = PyEval_EvalCode(code, probe, probe);
out:
	PyErr_Clear();
	Py_DecRef(code);
	Py_DecRef(r);
	return r ? 0 : -EINVAL;
}

/* A Worker object starts in this process. */
static void worker_starts(PyObject *worker)
{
	static int made;
	PyObject *r;

	collector_from_scheduler(worker);
	if (py_arm(collector, 0))
		return;
	if (!made && probe_make())
		return;
	made = 1;
	r = probe_call("start", &worker, 1);
	if (!r)
		shim_note("the worker's Dask numbers could not be read");
	Py_DecRef(r);
}

static PyObject *start_unsafe(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *all, *r;
	PY_TURN;

	if (!shim_off)
		worker_starts(self);
	PyErr_Clear();
	all = PyTuple_New(1);
	if (!all)
		return NULL;
	(void)args;
	Py_IncRef(self);
	PyTuple_SetItem(all, 0, self);
	r = py_original_call(original_start, all, kwargs);
	Py_DecRef(all);
	return r;
}

static PyMethodDef start_def = {"start_unsafe", (void *)start_unsafe, METH_VARARGS | METH_KEYWORDS,
				NULL};

int patch_worker_class(PyObject *module)
{
	return py_replace_in(module, "Worker", &start_def, &original_start);
}
