/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_pool.c - work that a task hands to other threads.
 *
 * The task's name travels in a context variable (asyncio passes contexts on automatically) and is
 * read where work is submitted to a pool: there the callable is wrapped, and the pool thread counts
 * for the task while it runs. The wrapper holds a reference to the slot until it is freed, so late
 * work is still credited, and work that never runs releases its reference.
 */
#include <errno.h>

#include "shim/count/byte_sample.h"
#include "shim/count/section.h"
#include "shim/count/task.h"
#include "shim/python/patch.h"

#define CAPSULE "crema.task"
/* A capsule's pointer is a mark: the owner in the low bits, above it the epoch in which its
 * reference counts and the number of the submitter's stack (byte_sample.h). */
#define MARK_BITS 16
#define MARK_OWNER ((1u << MARK_BITS) - 1)
#define MARK_STACK_AT 48
_Static_assert(CREMA_SHM_TASKS + 1 <= MARK_OWNER && sizeof(uintptr_t) == 8, "a mark holds both");

/* The task's name; and the number of the stack that handed work to a loop (byte_sample.h). */
static PyObject *variable, *stack_variable;

/* Contexts that a forked child inherited name its parent's tasks: they are not read again. */
void pool_forget(void)
{
	variable = stack_variable = NULL;
}

/* A token for reset(); NULL: it was not set. */
static PyObject *set(PyObject **var, const char *name, uint64_t n)
{
	PyObject *value = PyLong_FromUnsignedLongLong(n), *token = NULL;

	if (!*var)
		*var = PyContextVar_New(name, NULL);
	if (*var && value)
		token = PyContextVar_Set(*var, value);
	Py_DecRef(value);
	PyErr_Clear();
	return token;
}

static void reset(PyObject *var, PyObject *token)
{
	if (token && PyContextVar_Reset(var, token))
		PyErr_Clear();
	Py_DecRef(token);
}

PyObject *pool_enter(unsigned owner)
{
	return set(&variable, "crema_task", task_name(owner));
}

void pool_leave(PyObject *token)
{
	reset(variable, token);
}

/* 0: it has no value in this context. */
static uint64_t number_in(PyObject *var)
{
	PyObject *value = NULL;
	unsigned long long n;

	if (!var || PyContextVar_Get(var, NULL, &value) || !value) {
		PyErr_Clear();
		return 0;
	}
	n = PyLong_AsUnsignedLongLong(value);
	Py_DecRef(value);
	if (PyErr_Occurred()) {
		PyErr_Clear();
		return 0;
	}
	return n;
}

uint64_t pool_current(void)
{
	uint32_t owner = segment_owner();

	return owner != OWNER_NONE ? task_name(owner) : number_in(variable);
}

PyObject *pool_stack_enter(void)
{
	uint32_t number = byte_sample_keep();

	return number ? set(&stack_variable, "crema_stack", number) : NULL;
}

void pool_stack_leave(PyObject *token)
{
	reset(stack_variable, token);
}

uint32_t pool_stack(void)
{
	return segment_owner() != OWNER_NONE ? byte_sample_keep()
					     : (uint32_t)number_in(stack_variable);
}

static void capsule_free(PyObject *capsule)
{
	if (shim_armed())
		task_unref(pool_capsule_owner(capsule));
}

uint32_t pool_capsule_owner(PyObject *capsule)
{
	uintptr_t mark = (uintptr_t)PyCapsule_GetPointer(capsule, CAPSULE);

	return (uint32_t)(mark >> MARK_BITS) == shim_epoch ? (uint32_t)mark & MARK_OWNER
							   : OWNER_NONE;
}

static uint32_t capsule_stack(PyObject *capsule)
{
	return (uint32_t)((uintptr_t)PyCapsule_GetPointer(capsule, CAPSULE) >> MARK_STACK_AT);
}

PyObject *pool_capsule(void)
{
	uintptr_t owner = task_ref_name(pool_current());
	PyObject *capsule;

	if (owner == OWNER_NONE)
		return NULL;
	capsule = PyCapsule_New((void *)(owner | (uintptr_t)shim_epoch << MARK_BITS |
					 (uintptr_t)byte_sample_keep() << MARK_STACK_AT),
				CAPSULE, capsule_free);
	if (!capsule) {
		task_unref((uint32_t)owner);
		PyErr_Clear();
	}
	return capsule;
}

static PyObject *run_as(PyObject *capsule, PyObject *f, PyObject *args, PyObject *kwargs)
{
	uint32_t owner = pool_capsule_owner(capsule);
	struct section_open *sections;
	struct py_error error;
	uint32_t epoch = shim_epoch, submitter;
	struct owner before;
	PyObject *r;
	PY_TURN;

	if (!shim_armed() || owner == OWNER_NONE)
		return py_original_call(f, args, kwargs);
	py_thread_tell();
	submitter = byte_sample_submitter(capsule_stack(capsule));
	before = segment_begin(owner, 1);
	sections = section_enter();
	r = py_original_call(f, args, kwargs);
	if (!shim_armed() || epoch != shim_epoch)
		return r; /* a child that was forked meanwhile */
	py_error_save(&error);
	section_leave(sections);
	segment_end(before);
	byte_sample_submitter(submitter);
	py_error_restore(&error);
	return r;
}

/* self = (capsule with the owner, callable) */
static PyObject *run_for_task(PyObject *self, PyObject *args, PyObject *kwargs)
{
	return run_as(PyTuple_GetItem(self, 0), PyTuple_GetItem(self, 1), args, kwargs);
}

static PyMethodDef run_def = {"run", (void *)run_for_task, METH_VARARGS | METH_KEYWORDS, NULL};

/* A callable that runs `f` for the current task, or NULL when there is none (no exception). */
static PyObject *wrap(PyObject *f)
{
	PyObject *capsule = pool_capsule(), *self, *r;

	if (!capsule)
		return NULL;
	self = PyTuple_New(2);
	if (!self) {
		Py_DecRef(capsule);
		PyErr_Clear();
		return NULL;
	}
	Py_IncRef(f);
	PyTuple_SetItem(self, 0, capsule);
	PyTuple_SetItem(self, 1, f);
	r = py_builtin(&run_def, self, "crema");
	Py_DecRef(self);
	PyErr_Clear();
	return r;
}

enum {
	SUBMIT_FUTURES,
	SUBMIT_UPROOT,
	SUBMIT_APPLY,
	SUBMIT_MAP,
	SUBMIT_IMAP,
	SUBMIT_IMAP_UNORDERED,
	SUBMIT_RESOURCE,
	RUN_CONTEXT,
	SUBMITS
};
static PyObject *originals[SUBMITS];
/* A class whose pools take no wrapper, since nothing would take it off again. */
static PyObject *takes_no_wrapper;

static PyObject *submit(int which, PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *f = NULL, *all, *r;
	PY_TURN;

	if (shim_armed() && PyTuple_Size(args) > 0 &&
	    !(takes_no_wrapper && PyObject_IsInstance(self, takes_no_wrapper)))
		f = wrap(PyTuple_GetItem(args, 0));
	PyErr_Clear();
	all = py_with_self(self, args, f);
	Py_DecRef(f);
	if (!all)
		return NULL;
	r = py_original_call(originals[which], all, kwargs);
	Py_DecRef(all);
	return r;
}

#define SUBMIT(id)                                                                                 \
	static PyObject *submit_##id(PyObject *self, PyObject *args, PyObject *kwargs)             \
	{                                                                                          \
		return submit(id, self, args, kwargs);                                             \
	}
SUBMIT(SUBMIT_FUTURES)
SUBMIT(SUBMIT_UPROOT)
SUBMIT(SUBMIT_APPLY)
SUBMIT(SUBMIT_MAP)
SUBMIT(SUBMIT_IMAP)
SUBMIT(SUBMIT_IMAP_UNORDERED)

/* uproot's resource pool takes a future whose _task is the callable. */
static PyObject *submit_resource(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *task, *f;
	PY_TURN;

	if (shim_armed() && PyTuple_Size(args) > 0) {
		task = py_attr_string(PyTuple_GetItem(args, 0), "_task");
		f = task && task != PY_NONE ? wrap(task) : NULL;
		if (f && PyObject_SetAttrString(PyTuple_GetItem(args, 0), "_task", f))
			PyErr_Clear();
		Py_DecRef(f);
		Py_DecRef(task);
	}
	return py_call_original(originals[SUBMIT_RESOURCE], self, args, kwargs);
}

/* (f,) + task[1:], new reference. */
static PyObject *with_function(PyObject *task, PyObject *f)
{
	PyObject *all = PyTuple_New(PyTuple_Size(task));

	for (Py_ssize_t i = 0; all && i < PyTuple_Size(task); i++) {
		PyObject *o = i ? PyTuple_GetItem(task, i) : f;

		Py_IncRef(o);
		PyTuple_SetItem(all, i, o);
	}
	return all;
}

/*
 * WorkerContext.run(self, (f, args, kwargs)) passes the three to another interpreter, which takes
 * only what can be pickled: a wrapper is taken off here, in the thread that runs it.
 */
static PyObject *run_context(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *task = PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0) : NULL, *all, *r, *held;
	PyObject *f = py_is(task, &PyTuple_Type) && PyTuple_Size(task) == 3
			      ? PyTuple_GetItem(task, 0)
			      : NULL;
	PY_TURN;

	PyErr_Clear();
	if (!py_is(f, &PyCFunction_Type) || PyCFunction_GetFunction(f) != (void *)run_for_task)
		return py_call_original(originals[RUN_CONTEXT], self, args, kwargs);
	held = PyCFunction_GetSelf(f);
	task = with_function(task, PyTuple_GetItem(held, 1));
	all = task ? py_with_self(self, args, task) : NULL;
	r = all ? run_as(PyTuple_GetItem(held, 0), originals[RUN_CONTEXT], all, kwargs) : NULL;
	Py_DecRef(all);
	Py_DecRef(task);
	return r;
}

#define SUBMIT_DEF(id, name) [id] = {name, (void *)submit_##id, METH_VARARGS | METH_KEYWORDS, NULL}
static PyMethodDef submit_defs[SUBMITS] = {
	SUBMIT_DEF(SUBMIT_FUTURES, "submit"),
	SUBMIT_DEF(SUBMIT_UPROOT, "submit"),
	SUBMIT_DEF(SUBMIT_APPLY, "apply_async"),
	SUBMIT_DEF(SUBMIT_MAP, "_map_async"),
	SUBMIT_DEF(SUBMIT_IMAP, "imap"),
	SUBMIT_DEF(SUBMIT_IMAP_UNORDERED, "imap_unordered"),
	[RUN_CONTEXT] = {"run", (void *)run_context, METH_VARARGS | METH_KEYWORDS, NULL},
	[SUBMIT_RESOURCE] = {"submit", (void *)submit_resource, METH_VARARGS | METH_KEYWORDS, NULL},
};

static int replace_submit(int which, PyObject *module, const char *class_name)
{
	return py_replace_in(module, class_name, &submit_defs[which], &originals[which]);
}

int patch_futures(PyObject *module)
{
	return replace_submit(SUBMIT_FUTURES, module, "ThreadPoolExecutor");
}

int patch_interpreter_pool(PyObject *module)
{
	int r = replace_submit(RUN_CONTEXT, module, "WorkerContext");

	if (r)
		takes_no_wrapper = py_attr_string(module, "InterpreterPoolExecutor");
	return r;
}

int patch_thread_pool(PyObject *module)
{
	int r = 0;

	for (int which = SUBMIT_APPLY; which <= SUBMIT_IMAP_UNORDERED; which++)
		if (replace_submit(which, module, "ThreadPool"))
			r = -ENOENT;
	return r;
}

int patch_uproot(PyObject *module)
{
	int a = replace_submit(SUBMIT_UPROOT, module, "ThreadPoolExecutor");
	int b = replace_submit(SUBMIT_RESOURCE, module, "ResourceThreadPoolExecutor");

	return a ? a : b;
}
