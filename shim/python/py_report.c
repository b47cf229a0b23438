/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_report.c - what a chunk returns about itself:
 *
 *	{"entries": n, "bytesread": n, "processtime": seconds, "columns": {text, ...}}
 *
 * Runner._work_function returns it as {"out": ..., "metrics": {...}} (before it is compressed;
 * py_executor.c wraps it). Functions that users map over WorkItems return it as {"out": ...,
 * "report": {...}}, as (out, report), as it is, or in a list of one, for a partition.
 *
 * Those are any values: only plain types and numbers of numpy are read, so none of their code runs;
 * what has another shape is left out.
 */
#include <string.h>

#include "shim/count/task.h"
#include "shim/python/patch.h"

#define DEPTH 3
#define WIDTH 4
#define COLUMNS 4096

static PyObject *item(PyObject *dict, const char *name)
{
	PyObject *v = PyDict_GetItemString(dict, name);

	PyErr_Clear();
	return v && v != PY_NONE ? v : NULL;
}

/* 1 if its conversion to a number runs no Python. */
static int is_plain(PyObject *o)
{
	PyObject *type = o ? PyObject_Type(o) : NULL, *module = py_attr_string(type, "__module__");
	const char *text = module && py_is(module, &PyUnicode_Type)
				   ? PyUnicode_AsUTF8AndSize(module, NULL)
				   : NULL;
	int yes = text && (!strcmp(text, "builtins") || !strcmp(text, "numpy"));

	PyErr_Clear();
	Py_DecRef(module);
	Py_DecRef(type);
	return yes;
}

static int count(PyObject *dict, const char *name, int64_t *value)
{
	PyObject *o = item(dict, name);
	long long v = is_plain(o) ? PyLong_AsLongLong(o) : -1;

	PyErr_Clear();
	if (v < 0)
		return 0;
	*value = v;
	return 1;
}

static int seconds(PyObject *dict, const char *name, double *value)
{
	PyObject *o = item(dict, name);
	double v = is_plain(o) ? PyFloat_AsDouble(o) : -1;

	PyErr_Clear();
	if (!(v >= 0 && v < 1e9))
		return 0;
	*value = v;
	return 1;
}

/*
 * coffea's log of what NanoEvents has read: (branch, "uuid/tree/range/form/..."). As Runner writes
 * it: "branch-form".
 */
static PyObject *logged_column(PyObject *pair)
{
	char name[512];
	Py_ssize_t n = 0, m = 0;
	PyObject *branch = PyTuple_Size(pair) == 2 ? PyTuple_GetItem(pair, 0) : NULL;
	PyObject *key = branch ? PyTuple_GetItem(pair, 1) : NULL;
	const char *text = branch && py_is(branch, &PyUnicode_Type)
				   ? PyUnicode_AsUTF8AndSize(branch, &n)
				   : NULL;
	const char *at =
		text && py_is(key, &PyUnicode_Type) ? PyUnicode_AsUTF8AndSize(key, &m) : NULL;

	PyErr_Clear();
	for (int i = 0; at && i < 3; i++) {
		at = strchr(at, '/');
		at += at != NULL;
	}
	m = at ? (Py_ssize_t)strcspn(at, "/") : 0;
	if (!at || n + m + 2 > (Py_ssize_t)sizeof(name))
		return NULL;
	memcpy(name, text, (size_t)n);
	name[n] = '-';
	memcpy(name + n + 1, at, (size_t)m);
	name[n + 1 + m] = 0;
	return PyUnicode_FromString(name);
}

/* {column: None}; NULL if one is not a name. */
static PyObject *names_of(PyObject *list)
{
	PyObject *names = PyDict_New();
	Py_ssize_t n = PyList_Size(list);

	for (Py_ssize_t i = 0; names && i < n; i++) {
		PyObject *o = PyList_GetItem(list, i), *made = NULL;
		const char *text;

		if (!py_is(o, &PyUnicode_Type))
			o = made = logged_column(o);
		text = o ? PyUnicode_AsUTF8AndSize(o, NULL) : NULL;
		if (!text || PyDict_SetItemString(names, text, PY_NONE)) {
			Py_DecRef(names);
			names = NULL;
		}
		Py_DecRef(made);
	}
	PyErr_Clear();
	return names;
}

static uint32_t joined(PyObject *columns)
{
	int listable = py_is(columns, &PyList_Type) || py_is(columns, &PyTuple_Type) ||
		       py_is(columns, &PySet_Type);
	PyObject *list = listable ? PySequence_List(columns) : NULL, *names = NULL;
	PyObject *comma = NULL, *text = NULL;
	uint32_t id = 0;

	if (list && PyList_Size(list) <= COLUMNS)
		names = names_of(list);
	Py_DecRef(list);
	list = names ? PySequence_List(names) : NULL;
	if (list && !PyList_Sort(list) && (comma = PyUnicode_FromString("\n")))
		text = PyUnicode_Join(comma, list);
	id = py_bulk_id(text);
	PyErr_Clear();
	Py_DecRef(text);
	Py_DecRef(comma);
	Py_DecRef(list);
	Py_DecRef(names);
	return id;
}

static void describe(struct crema_task *t, PyObject *report)
{
	int64_t bytes;

	t->flags |= CREMA_TASK_METRICS;
	if (count(report, "bytesread", &bytes)) {
		t->coffea_bytesread = (uint64_t)bytes;
		t->known |= CREMA_KNOWN_BYTESREAD;
	}
	if (seconds(report, "processtime", &t->coffea_processtime))
		t->known |= CREMA_KNOWN_PROCESSTIME;
	if (count(report, "entries", &t->events))
		t->known |= CREMA_KNOWN_EVENTS;
	t->columns = joined(item(report, "columns"));
}

void report_of_runner(struct crema_task *t, PyObject *result)
{
	PyObject *metrics;

	if (!py_is(result, &PyDict_Type))
		return;
	found_describe(t, item(result, "out"));
	metrics = item(result, "metrics");
	if (py_is(metrics, &PyDict_Type))
		describe(t, metrics);
}

static int is_report(PyObject *dict)
{
	return item(dict, "processtime") && item(dict, "entries");
}

/* Borrowed. */
static PyObject *find(PyObject *o, int depth)
{
	int is_tuple = py_is(o, &PyTuple_Type), is_list = py_is(o, &PyList_Type);
	Py_ssize_t n = is_tuple ? PyTuple_Size(o) : is_list ? PyList_Size(o) : 0;
	PyObject *found = NULL, *inner;

	if (py_is(o, &PyDict_Type)) {
		if (is_report(o))
			return o;
		inner = item(o, "report");
		inner = inner ? inner : item(o, "metrics");
		return py_is(inner, &PyDict_Type) && is_report(inner) ? inner : NULL;
	}
	/* a longer list is of several chunks */
	if (n > (is_tuple ? WIDTH : 1) || depth == DEPTH)
		return NULL;
	for (Py_ssize_t i = 0; i < n && !found; i++)
		found = find(is_tuple ? PyTuple_GetItem(o, i) : PyList_GetItem(o, i), depth + 1);
	return found;
}

static int is_exception(PyObject *o)
{
	PyObject *base = PyDict_GetItemString(PyEval_GetBuiltins(), "BaseException");
	PyObject *type = PyObject_Type(o), *mro = py_attr_string(type, "__mro__");
	Py_ssize_t n = py_is(mro, &PyTuple_Type) ? PyTuple_Size(mro) : 0;
	int yes = 0;

	for (Py_ssize_t i = 0; i < n && !yes; i++)
		yes = PyTuple_GetItem(mro, i) == base;
	PyErr_Clear();
	Py_DecRef(mro);
	Py_DecRef(type);
	return yes;
}

void report_of_task(struct crema_task *t, PyObject *message)
{
	PyObject *value, *report;

	if (!py_is(message, &PyDict_Type) || !(value = item(message, "result")))
		return;
	report = find(value, 0);
	if (report) {
		describe(t, report);
	} else if (is_exception(value)) { /* instead of a result: it gave no events */
		t->events = 0;
		t->known |= CREMA_KNOWN_EVENTS;
	}
}
