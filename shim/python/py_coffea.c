/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_coffea.c - coffea's chunks: the WorkItem in a task's arguments, known at the start, also for
 * tasks that fail. py_report.c handles what a chunk returns.
 */
#include <errno.h>
#include <string.h>

#include "shim/count/task.h"
#include "shim/python/patch.h"

#define WALK_DEPTH 5
#define WALK_ITEMS 64
#define SUBGRAPH_NODES 32

static PyObject *work_item, *file_meta, *reduce_type; /* coffea's classes */
static PyObject *n_args, *n_func, *n_value, *n_name;

static int64_t number_of(PyObject *o, const char *name)
{
	PyObject *a = py_attr_string(o, name);
	long long v = a ? PyLong_AsLongLong(a) : -1;

	PyErr_Clear();
	Py_DecRef(a);
	return v;
}

static uint32_t text_of(PyObject *o, const char *name, int is_bulk)
{
	PyObject *a = py_attr_string(o, name);
	uint32_t id = is_bulk ? py_bulk_id(a) : py_text_id(a);

	Py_DecRef(a);
	return id;
}

static void describe_item(struct crema_task *t, PyObject *o, uint32_t flag)
{
	t->flags |= flag;
	t->dataset = text_of(o, "dataset", 0);
	t->filename = text_of(o, "filename", 1);
	t->treename = text_of(o, "treename", 0);
	if (flag != CREMA_TASK_CHUNK)
		return;
	t->entrystart = number_of(o, "entrystart");
	t->entrystop = number_of(o, "entrystop");
	t->known |= CREMA_KNOWN_ENTRIES;
}

/* Searches a task's arguments for a WorkItem or FileMeta. Dask wraps them in Task (.args, .func),
 * List and Tuple (.args) and DataNode (.value) objects; nothing else is searched. */
static int walk(struct crema_task *t, PyObject *o, int depth)
{
	int is_tuple, is_list, found = 0;

	if (!o || depth > WALK_DEPTH)
		return 0;
	if (py_is(o, work_item) || py_is(o, file_meta)) {
		describe_item(t, o,
			      py_is(o, work_item) ? CREMA_TASK_CHUNK : CREMA_TASK_PREPROCESSING);
		return 1;
	}
	is_tuple = py_is(o, &PyTuple_Type);
	is_list = !is_tuple && py_is(o, &PyList_Type);
	if (is_tuple || is_list) {
		Py_ssize_t n = is_tuple ? PyTuple_Size(o) : PyList_Size(o);

		for (Py_ssize_t i = 0; i < n && i < WALK_ITEMS && !found; i++)
			found = walk(t, is_tuple ? PyTuple_GetItem(o, i) : PyList_GetItem(o, i),
				     depth + 1);
	}
	return found;
}

static int text_is(PyObject *o, const char *wanted)
{
	const char *text = o && py_is(o, &PyUnicode_Type) ? PyUnicode_AsUTF8AndSize(o, NULL) : NULL;

	PyErr_Clear();
	return text && !strcmp(text, wanted);
}

/* Type objects of dask's graph nodes, by name: looked up once. */
static int is_node(PyObject *o, const char *module)
{
	PyObject *type = PyObject_Type(o), *m = py_attr_string(type, "__module__");
	int yes = text_is(m, module);

	Py_DecRef(m);
	Py_DecRef(type);
	return yes;
}

static int walk_node(struct crema_task *t, PyObject *node, int depth)
{
	PyObject *a;
	int found;

	if (depth > WALK_DEPTH || !is_node(node, "dask._task_spec"))
		return walk(t, node, depth);
	a = py_attr(node, n_value);
	found = walk(t, a, depth + 1);
	Py_DecRef(a);
	if (found)
		return 1;
	a = py_attr(node, n_args);
	if (a && py_is(a, &PyTuple_Type))
		for (Py_ssize_t i = 0; i < PyTuple_Size(a) && i < WALK_ITEMS && !found; i++)
			found = walk_node(t, PyTuple_GetItem(a, i), depth + 1);
	Py_DecRef(a);
	return found;
}

/* Tasks that Dask has fused: _execute_subgraph({key: node}, ...). */
static int walk_subgraph(struct crema_task *t, PyObject *node)
{
	PyObject *args = py_attr(node, n_args), *graph = NULL, *each, *key;
	int found = 0;

	if (py_is(args, &PyTuple_Type) && PyTuple_Size(args) > 0)
		graph = PyTuple_GetItem(args, 0);
	each = py_is(graph, &PyDict_Type) ? PyObject_GetIter(graph) : NULL;
	for (int i = 0; each && i < SUBGRAPH_NODES && !found && (key = PyIter_Next(each)); i++) {
		found = walk_node(t, PyDict_GetItem(graph, key), 1);
		Py_DecRef(key);
	}
	PyErr_Clear();
	Py_DecRef(each);
	Py_DecRef(args);
	return found;
}

/* DaskExecutor passes the processor to the workers as the result of a lambda. */
static int is_of_executor(PyObject *f)
{
	PyObject *m = py_attr_string(f, "__module__");
	int yes = text_is(m, "coffea.processor.executor");

	Py_DecRef(m);
	return yes;
}

/* Name of the function: for a function its __name__, for any other callable that of its type. */
static void describe_function(struct crema_task *t, PyObject *f)
{
	PyObject *name = py_attr(f, n_name), *type = NULL;

	if (f && reduce_type && py_is(f, reduce_type))
		t->flags |= CREMA_TASK_MERGE;
	if (text_is(name, "<lambda>") && is_of_executor(f))
		t->flags |= CREMA_TASK_SCATTER;
	if (f && !name) {
		type = PyObject_Type(f);
		name = py_attr(type, n_name);
	}
	t->function = py_text_id(name);
	Py_DecRef(type);
	Py_DecRef(name);
}

void coffea_describe(struct crema_task *t, PyObject *const *args, Py_ssize_t nargs)
{
	PyObject *f;

	if (!n_args) {
		n_args = PyUnicode_InternFromString("args");
		n_func = PyUnicode_InternFromString("func");
		n_value = PyUnicode_InternFromString("value");
		n_name = PyUnicode_InternFromString("__name__");
	}
	if (nargs < 2 || t->flags & CREMA_TASK_ACTOR)
		return;
	/* New: a graph node. Old: (function, args, kwargs, ...). */
	if (is_node(args[0], "dask._task_spec")) {
		f = py_attr(args[0], n_func);
		describe_function(t, f);
		Py_DecRef(f);
		if (!work_item)
			return;
		if (!strcmp(arena_text(t->function), "_execute_subgraph"))
			walk_subgraph(t, args[0]);
		else
			walk_node(t, args[0], 0);
		return;
	}
	describe_function(t, args[0]);
	if (work_item)
		walk(t, args[1], 0);
}

int coffea_describe_item(struct crema_task *t, PyObject *o)
{
	return work_item ? walk(t, o, WALK_DEPTH - 1) : 0;
}

int patch_coffea(PyObject *module)
{
	work_item = py_attr_string(module, "WorkItem");
	file_meta = py_attr_string(module, "FileMeta");
	reduce_type = py_attr_string(module, "_reduce");
	return work_item ? 0 : -ENOENT;
}
