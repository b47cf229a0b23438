/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_task.c - start and end of a task: replaces distributed.worker's run functions in the module's
 * dict.
 *
 * Each replacement opens a slot, runs the original and closes the slot. It returns or raises what
 * the original does. Two sets of names exist: apply_function* up to distributed 2024.10, _run_*
 * since.
 */
#include <errno.h>
#include <string.h>

#include "shim/python/patch.h"
#include "shim/count/cut_text.h"
#include "shim/count/runqueue.h"
#include "shim/count/section.h"
#include "shim/python/notify.h"
#include "shim/python/py_frames.h"
#include "shim/count/task.h"

enum edge_id { EDGE_RUN, EDGE_APPLY, EDGE_ACTOR_NEW, EDGE_ACTOR_OLD, EDGES };

struct edge {
	const char *name;
	int key, state; /* indexes of the arguments */
	uint32_t flags;
	PyObject *original;
};

static struct edge edges[EDGES] = {
	[EDGE_RUN] = {"_run_task", 3, 2, 0, NULL},
	[EDGE_APPLY] = {"apply_function", 4, 3, 0, NULL},
	[EDGE_ACTOR_NEW] = {"_run_actor", 4, 3, CREMA_TASK_ACTOR, NULL},
	[EDGE_ACTOR_OLD] = {"apply_function_actor", 4, 3, CREMA_TASK_ACTOR, NULL},
};

static PyObject *names[8];
enum { N_WORKER, N_STATE, N_TASKS, N_PREFIX, N_SPAN, N_ADDRESS, N_NAME };

static int names_make(void)
{
	static const char *const texts[] = {"worker",  "state",	  "tasks", "prefix",
					    "span_id", "address", "name"};

	for (int i = 0; i < 7; i++)
		if (!names[i] && !(names[i] = PyUnicode_InternFromString(texts[i])))
			return -ENOMEM;
	return 0;
}

void task_key(struct crema_task *t, const char *text, size_t n)
{
	size_t keep = cut_text(text, n, sizeof(t->key) - 1);

	memcpy(t->key, text, keep);
	t->key[keep] = 0;
	t->key_bytes = (uint32_t)n;
	t->key_hash = arena_hash(text, (uint32_t)n);
	if (keep < n || memchr(text, 0, keep)) /* a NUL ends it, too */
		t->flags |= CREMA_TASK_KEY_CUT;
}

static void describe_key(struct crema_task *t, PyObject *key)
{
	PyObject *s = PyObject_Str(key);
	Py_ssize_t n = 0;
	const char *text = s ? PyUnicode_AsUTF8AndSize(s, &n) : NULL;

	if (text)
		task_key(t, text, (size_t)n);
	PyErr_Clear();
	Py_DecRef(s);
}

/* Workers of old versions (distributed 2023.1) do not know a task's prefix: the scheduler makes it
 * of the key with this function, which remembers its results. New reference. */
static PyObject *prefix_of_key(PyObject *key)
{
	PyObject *utils = py_module("distributed.utils");
	PyObject *prefix = utils ? py_call(utils, "key_split", key, NULL) : NULL;

	if (utils && !prefix)
		PyErr_Clear();
	Py_DecRef(utils);
	return prefix;
}

/* worker.state.tasks[key]: prefix, span and inputs. The worker's loop changes that dict. */
static void describe_state(struct crema_task *t, PyObject *worker, PyObject *key)
{
	PyObject *state = py_attr(worker, names[N_STATE]);
	PyObject *tasks = py_attr(state, names[N_TASKS]);
	PyObject *ts = py_is(tasks, &PyDict_Type) ? py_item(tasks, key) : NULL;
	PyObject *prefix = py_attr(ts, names[N_PREFIX]), *span = py_attr(ts, names[N_SPAN]);

	if (ts && !prefix)
		prefix = prefix_of_key(key);
	t->prefix = py_text_id(prefix);
	graph_describe(t, ts, span);
	if ((prefix && !t->prefix) || (span && span != PY_NONE && !t->span))
		t->flags |= CREMA_TASK_TEXT_REFUSED;
	Py_DecRef(span);
	Py_DecRef(prefix);
	Py_DecRef(ts);
	Py_DecRef(tasks);
	Py_DecRef(state);
}

static void describe_worker(struct crema_task *t, PyObject *worker, PyObject *key)
{
	PyObject *address, *name;

	describe_state(t, worker, key);
	address = py_attr(worker, names[N_ADDRESS]);
	name = py_attr(worker, names[N_NAME]);
	t->worker_address = py_text_id(address);
	t->worker_name = py_text_id(name);
	Py_DecRef(name);
	Py_DecRef(address);
}

void task_describe(struct crema_task *t, PyObject *key, PyObject *worker, PyObject *span_key)
{
	if (key == PY_NONE)
		return;
	describe_key(t, key);
	if (worker != PY_NONE)
		describe_worker(t, worker, span_key);
}

/* An actor's method has a name as its key; the actor's own task has prefix and span. */
static void describe_actor(struct crema_task *t, PyObject *worker, PyObject *name, PyObject *method)
{
	PyObject *key = probe_actor_key(worker, method);

	describe_worker(t, worker, key ? key : name);
	Py_DecRef(key);
}

static void describe(struct crema_task *t, const struct edge *e, PyObject *const *args,
		     Py_ssize_t nargs)
{
	PyObject *worker;

	t->flags |= e->flags;
	if (nargs > e->key)
		describe_key(t, args[e->key]);
	if (nargs <= e->state || !py_is(args[e->state], &PyDict_Type))
		return;
	coffea_describe(t, args, nargs); /* first: its flags are part of the span's name */
	worker = PyDict_GetItem(args[e->state], names[N_WORKER]);
	if (worker && e->flags & CREMA_TASK_ACTOR)
		describe_actor(t, worker, args[e->key], args[0]);
	else if (worker)
		describe_worker(t, worker, args[e->key]);
}

static uint32_t status_of(PyObject *message)
{
	PyObject *op;
	const char *text;

	if (!message)
		return CREMA_STATUS_ERRED;
	if (!py_is(message, &PyDict_Type))
		return CREMA_STATUS_OK; /* an actor's method: any value */
	op = PyDict_GetItemString(message, "op");
	text = op && py_is(op, &PyUnicode_Type) ? PyUnicode_AsUTF8AndSize(op, NULL) : NULL;
	PyErr_Clear();
	return text && !strcmp(text, "task-erred") ? CREMA_STATUS_ERRED : CREMA_STATUS_OK;
}

void execution_begin(struct execution *x, uint32_t owner)
{
	struct owner before;

	x->owner = owner;
	x->epoch = shim_epoch;
	x->token = pool_enter(owner);
	x->sections = section_enter();
	py_thread_tell();
	py_frames_ready();
	runqueue_keep();
	before = segment_begin(owner, 0);
	x->outer = before.owner;
	x->outer_is_pool = before.is_pool;
	if (before.owner != OWNER_NONE && task_slot(owner))
		task_slot(owner)->flags |= CREMA_TASK_NESTED;
	notify_task_begins(owner);
}

void execution_end(struct execution *x, uint32_t status)
{
	struct owner before = {x->outer, x->outer_is_pool};
	struct py_error error;

	if (!shim_armed() || x->epoch != shim_epoch)
		return;
	py_error_save(&error);
	patch_loaded();
	section_leave(x->sections);
	task_stopped(x->owner, segment_end(before));
	notify_task_ends(x->owner, status);
	pool_leave(x->token);
	py_error_restore(&error);
}

/* A chunk of a WorkItem outside of coffea's own function, which reports it itself. */
static void tell_result(const struct execution *x, PyObject *message)
{
	struct crema_task *t = shim_armed() && x->epoch == shim_epoch ? task_slot(x->owner) : NULL;

	if (t && message && t->flags & CREMA_TASK_CHUNK &&
	    !(t->flags & (CREMA_TASK_METRICS | CREMA_TASK_TREE_READ)))
		report_of_task(t, message);
}

/* Dask passes on what a task raised in its message; older ones write a hyphen. */
static void tell_raised(const struct execution *x, PyObject *message)
{
	PyObject *raised;

	if (!message || !shim_armed() || x->epoch != shim_epoch ||
	    status_of(message) != CREMA_STATUS_ERRED)
		return;
	raised = PyDict_GetItemString(message, "actual_exception");
	raised = raised ? raised : PyDict_GetItemString(message, "actual-exception");
	raised_describe(task_slot(x->owner), raised);
}

static PyObject *run_edge(struct edge *e, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
	struct execution x;
	PyObject *result;
	uint32_t owner;
	PY_TURN;

	if (!shim_armed())
		return py_original(e->original, args, nargs, kw);
	patch_pending();
	owner = task_open();
	if (task_slot(owner))
		describe(task_slot(owner), e, args, nargs);
	execution_begin(&x, owner);
	result = py_original(e->original, args, nargs, kw);
	tell_result(&x, result);
	tell_raised(&x, result);
	execution_end(&x, status_of(result));
	return result;
}

#define EDGE(id)                                                                                   \
	static PyObject *edge_##id(PyObject *self, PyObject *const *args, Py_ssize_t nargs,        \
				   PyObject *kw)                                                   \
	{                                                                                          \
		(void)self;                                                                        \
		return run_edge(&edges[id], args, nargs, kw);                                      \
	}
EDGE(EDGE_RUN)
EDGE(EDGE_APPLY)
EDGE(EDGE_ACTOR_NEW)
EDGE(EDGE_ACTOR_OLD)

static PyMethodDef defs[EDGES] = {
	[EDGE_RUN] = {"_run_task", (void *)edge_EDGE_RUN, METH_FASTCALL | METH_KEYWORDS, NULL},
	[EDGE_APPLY] = {"apply_function", (void *)edge_EDGE_APPLY, METH_FASTCALL | METH_KEYWORDS,
			NULL},
	[EDGE_ACTOR_NEW] = {"_run_actor", (void *)edge_EDGE_ACTOR_NEW,
			    METH_FASTCALL | METH_KEYWORDS, NULL},
	[EDGE_ACTOR_OLD] = {"apply_function_actor", (void *)edge_EDGE_ACTOR_OLD,
			    METH_FASTCALL | METH_KEYWORDS, NULL},
};

int patch_task_edges(PyObject *module)
{
	PyObject *dict = PyModule_GetDict(module);
	int found = 0;

	if (!dict || names_make())
		return -ENOENT;
	for (int i = 0; i < EDGES; i++) {
		PyObject *original = PyDict_GetItemString(dict, edges[i].name);
		PyObject *f;

		if (!original)
			continue;
		f = py_builtin(&defs[i], NULL, "distributed.worker");
		if (!f)
			continue;
		Py_IncRef(original);
		edges[i].original = original;
		if (!PyDict_SetItemString(dict, edges[i].name, f))
			found |= i == EDGE_RUN || i == EDGE_APPLY;
		Py_DecRef(f);
	}
	return found ? 0 : -ENOENT;
}
