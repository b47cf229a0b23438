/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_thread.c - threads that a task starts directly: threading.Thread.start.
 *
 * Such a thread belongs to the task (thread.h). Threads of pools and of event loops do not,
 * although a task may be the first to need them: they serve any caller, and their work is
 * attributed where it is submitted (py_pool.c). They are recognized by the module of what they run.
 */
#include <errno.h>
#include <string.h>

#include "shim/count/task.h"
#include "shim/python/patch.h"

static PyObject *original;

/* 1 if the text attribute `name` of `o` begins with one of `starts`. */
static int begins(PyObject *o, const char *name, const char *const *starts)
{
	PyObject *value = py_attr_string(o, name);
	const char *text = value && py_is(value, &PyUnicode_Type)
				   ? PyUnicode_AsUTF8AndSize(value, NULL)
				   : NULL;
	int found = 0;

	for (; text && *starts && !found; starts++)
		found = !strncmp(text, *starts, strlen(*starts));
	PyErr_Clear();
	Py_DecRef(value);
	return found;
}

/* Runs `_target`, or its class's run. */
static int serves_others(PyObject *thread)
{
	static const char *const modules[] = {"concurrent.futures.",
					      "multiprocessing.",
					      "distributed.",
					      "uproot.",
					      "fsspec.",
					      "asyncio.",
					      "tornado.",
					      NULL};
	static const char *const loops[] = {"run_forever", NULL};
	PyObject *target = py_attr_string(thread, "_target");
	PyObject *runs = target && target != PY_NONE ? target : thread;
	int found = begins(runs, "__module__", modules) || begins(runs, "__name__", loops);

	Py_DecRef(target);
	return found;
}

/* 1 if the thread's run is an instance attribute, not its class's. */
static int has_own_run(PyObject *thread)
{
	PyObject *dict = py_attr_string(thread, "__dict__");
	int own = py_is(dict, &PyDict_Type) && PyDict_GetItemString(dict, "run");

	Py_DecRef(dict);
	return own;
}

/* What the wrapper of a thread's run holds, in a dict. */
#define HELD_TASK "task"     /* a reference to the slot, until the thread has its own */
#define HELD_THREAD "thread" /* the thread */
#define HELD_RUN "run"	     /* the run that it had */
#define HELD_OWN "own"	     /* whether that was an instance attribute */

/* Restores the thread's original run. */
static void restore(PyObject *held)
{
	PyObject *run = PyDict_GetItemString(held, HELD_RUN);
	int own = PyObject_IsTrue(PyDict_GetItemString(held, HELD_OWN)) == 1;

	if (PyObject_SetAttrString(PyDict_GetItemString(held, HELD_THREAD), "run",
				   own ? run : NULL))
		PyErr_Clear();
}

static PyObject *run_as_task(PyObject *held, PyObject *args, PyObject *kwargs)
{
	uint32_t owner = pool_capsule_owner(PyDict_GetItemString(held, HELD_TASK));
	PyObject *run = PyDict_GetItemString(held, HELD_RUN), *r;
	struct py_error error;
	PY_TURN;

	restore(held);
	if (!shim_armed())
		return py_original_call(run, args, kwargs);
	task_ref(owner);
	if (PyDict_SetItemString(held, HELD_TASK, PY_NONE))
		PyErr_Clear();
	py_thread_tell();
	thread_inherit(owner);
	r = py_original_call(run, args, kwargs);
	py_error_save(&error);
	thread_disinherit();
	py_error_restore(&error);
	return r;
}

static PyMethodDef run_def = {"run", (void *)run_as_task, METH_VARARGS | METH_KEYWORDS, NULL};

static int hold(PyObject *held, const char *name, PyObject *value)
{
	int r = value ? PyDict_SetItemString(held, name, value) : -1;

	Py_DecRef(value);
	return r;
}

/* Replaces the thread's run with a wrapper; returns what it holds, or NULL (no exception). */
static PyObject *bequeath(PyObject *thread)
{
	PyObject *held = PyDict_New(), *task = pool_capsule(), *f = NULL;
	int r = held && task ? 0 : -1;

	if (!r) {
		Py_IncRef(thread);
		r = hold(held, HELD_THREAD, thread) |
		    hold(held, HELD_OWN, PyLong_FromUnsignedLongLong(has_own_run(thread))) |
		    hold(held, HELD_RUN, py_attr_string(thread, "run")) |
		    hold(held, HELD_TASK, task);
		task = NULL;
	}
	if (!r)
		f = py_builtin(&run_def, held, "crema");
	if (!f || PyObject_SetAttrString(thread, "run", f)) {
		Py_DecRef(held);
		held = NULL;
	}
	PyErr_Clear();
	Py_DecRef(f);
	Py_DecRef(task);
	return held;
}

static PyObject *thread_start(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *held = NULL, *r;
	struct py_error error;
	PY_TURN;

	if (shim_armed() && pool_current() && !serves_others(self))
		held = bequeath(self);
	r = py_call_original(original, self, args, kwargs);
	if (!r && held) { /* it will not run */
		py_error_save(&error);
		restore(held);
		py_error_restore(&error);
	}
	Py_DecRef(held);
	return r;
}

static PyMethodDef start_def = {"start", (void *)thread_start, METH_VARARGS | METH_KEYWORDS, NULL};

int patch_threading(PyObject *module)
{
	return py_replace_in(module, "Thread", &start_def, &original);
}
