/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_column.c - which columns tasks read. coffea makes an array of one in extract_column of
 * UprootSourceMapping or ParquetSourceMapping, of content and offsets separately; uproot's receives
 * what coffea has read ahead (preload) when it is made. uproot reads the baskets of one or of
 * several branches in _ranges_or_baskets_to_arrays, and a column of an RNTuple in
 * read_cluster_range.
 *
 * A column is named after its branch, after the path of its field, or as in the Parquet file, for
 * which requests are unknown, as pyarrow does not count them. shim/count/column.h counts
 * its cost; py_uproot.c reports its baskets.
 */
#include <errno.h>

#include "shim/count/column.h"
#include "shim/count/task.h"
#include "shim/python/first_use.h"
#include "shim/python/patch.h"
#include "shim/python/py_line.h"
#include "shim/python/py_uproot.h"

#define MOST_OUTER 64

enum once { ONCE_USED, ONCE_PRELOADED, ONCE_PRELOAD_USED };

static PyObject *extract_column, *extract_parquet, *keep_source, *read_baskets, *read_clusters;
static PyObject *n_name, *n_path, *n_column, *n_tree, *n_ntuple, *n_file, *n_source, *n_parent;
static PyObject *n_file_handle, *n_preloaded;
static PyObject *n_column_records, *n_all_fields, *n_field_id, *n_field_parent;
static PyObject *n_requests, *n_ranges, *n_bytes;

/* This thread's task, if its numbers are kept. */
static const struct crema_task *task_here(void)
{
	return shim_armed() ? task_slot(segment_owner()) : NULL;
}

static uint32_t text_id(PyObject *o)
{
	return o && py_is(o, &PyUnicode_Type) ? py_bulk_id(o) : 0;
}

static uint32_t attr_id(PyObject *o, PyObject *name)
{
	PyObject *a = py_attr(o, name);
	uint32_t id = text_id(a);

	Py_DecRef(a);
	return id;
}

static uint32_t column_name(PyObject *handle)
{
	uint32_t id = attr_id(handle, n_path);

	id = id ? id : attr_id(handle, n_name);
	return id ? id : attr_id(handle, n_column);
}

static uint32_t tree_name(PyObject *handle)
{
	PyObject *tree = py_attr(handle, n_tree);
	uint32_t id;

	if (!tree)
		tree = py_attr(handle, n_ntuple);
	id = tree ? attr_id(tree, n_name) : 0;
	Py_DecRef(tree);
	return id;
}

static uint64_t number(PyObject *o, PyObject *name, int *known)
{
	PyObject *v = o ? py_attr(o, name) : NULL;
	unsigned long long n = v ? PyLong_AsUnsignedLongLong(v) : 0;

	*known &= v && !PyErr_Occurred();
	PyErr_Clear();
	Py_DecRef(v);
	return *known ? n : 0;
}

/* All that was requested from the file so far. */
static struct column_asked asked_of(PyObject *source)
{
	struct column_asked a = {.known = 1};

	a.requests = number(source, n_requests, &a.known);
	a.ranges = number(source, n_ranges, &a.known);
	a.bytes = number(source, n_bytes, &a.known);
	return a;
}

static struct column_asked asked_since(PyObject *source, const struct column_asked *before)
{
	struct column_asked a = asked_of(source);

	if (!a.known || !before->known || a.requests < before->requests ||
	    a.ranges < before->ranges || a.bytes < before->bytes)
		return (struct column_asked){0};
	a.requests -= before->requests;
	a.ranges -= before->ranges;
	a.bytes -= before->bytes;
	return a;
}

/* An open file, or a directory in it: the source it is read from. */
static PyObject *source_of(PyObject *handle)
{
	PyObject *file = py_attr(handle, n_file);
	PyObject *source = py_attr(file ? file : handle, n_source);

	Py_DecRef(file);
	return source;
}

/* Calls the original, as a visit of the column. */
static PyObject *visit(struct crema_column *row, PyObject *source, PyObject *original,
		       PyObject *self, PyObject *args, PyObject *kwargs)
{
	struct column_asked before = asked_of(source), asked;
	struct column_visit *v = column_enter(row);
	uint32_t epoch = shim_epoch;
	PyObject *r = self ? py_call_original(original, self, args, kwargs)
			   : py_original_call(original, args, kwargs);
	struct py_error error;

	if (!v || !shim_armed() || epoch != shim_epoch)
		return r; /* or a child that was forked meanwhile */
	py_error_save(&error);
	asked = asked_since(source, &before);
	column_leave(v, &asked);
	py_error_restore(&error);
	return r;
}

/* Counts the column in `number` if this task has not been counted there: 1. */
static int once(struct crema_column *row, enum once what, enum crema_column_number number)
{
	uint64_t key = UINT64_C(1) << 62 | row->number << 2 | what;
	int first = first_use(task_name(segment_owner()), segment_owner(), key);

	if (first)
		column_add(row, number, first > 0);
	if (first < 0)
		column_unsure(row, CREMA_COLUMN_UNCOUNTED);
	return first > 0;
}

static void asked_by_own_line(struct crema_column *row)
{
	struct crema_line line = py_own_line();

	column_asked_by(row, &line);
}

static int is_preloaded(PyObject *mapping, PyObject *handle)
{
	PyObject *arrays = py_attr(mapping, n_preloaded), *name = py_attr(handle, n_name);
	int yes = arrays && name && py_is(arrays, &PyDict_Type) && PyDict_GetItem(arrays, name);

	PyErr_Clear();
	Py_DecRef(name);
	Py_DecRef(arrays);
	return yes;
}

/* The row of a column that this task uses from now on; NULL: there is no task, or no column. */
static struct crema_column *used_column(const struct crema_task *task, PyObject *handle)
{
	uint32_t name = task && handle && handle != PY_NONE ? column_name(handle) : 0;
	struct crema_column *row = name ? column_row(task, name, tree_name(handle), 0) : NULL;

	if (!row)
		return NULL;
	column_add(row, CREMA_COLUMN_N_calls, 1);
	if (once(row, ONCE_USED, CREMA_COLUMN_N_tasks)) /* again: it was kept */
		asked_by_own_line(row);
	return row;
}

static PyObject *extract_parquet_(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *handle = PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0) : NULL;
	struct crema_column *row;
	PY_TURN;

	row = used_column(task_here(), handle);
	return row ? visit(row, NULL, extract_parquet, self, args, kwargs)
		   : py_call_original(extract_parquet, self, args, kwargs);
}

static PyObject *extract_column_(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *handle = PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0) : NULL, *file, *source,
		 *r;
	struct crema_column *row;
	PY_TURN;

	row = used_column(task_here(), handle);
	if (!row)
		return py_call_original(extract_column, self, args, kwargs);
	if (is_preloaded(self, handle))
		once(row, ONCE_PRELOAD_USED, CREMA_COLUMN_N_preload_used);
	file = py_attr(self, n_file_handle);
	source = source_of(file);
	Py_DecRef(file);
	r = visit(row, source, extract_column, self, args, kwargs);
	Py_DecRef(source);
	return r;
}

/* mapping: just made, of `tree`: records what was read ahead for it. */
static void tell_preloaded(const struct crema_task *task, PyObject *mapping, PyObject *tree)
{
	PyObject *arrays = py_attr(mapping, n_preloaded), *each = NULL, *name;
	uint32_t tree_id = attr_id(tree, n_name), id;

	if (arrays && py_is(arrays, &PyDict_Type))
		each = PyObject_GetIter(arrays);
	while (each && (name = PyIter_Next(each))) {
		id = text_id(name);
		if (id)
			once(column_row(task, id, tree_id, 0), ONCE_PRELOADED,
			     CREMA_COLUMN_N_preload_tasks);
		Py_DecRef(name);
	}
	PyErr_Clear();
	Py_DecRef(each);
	Py_DecRef(arrays);
}

/* (uuid, path, tree) */
static PyObject *keep_source_(PyObject *self, PyObject *args, PyObject *kwargs)
{
	const struct crema_task *task;
	PY_TURN;

	task = task_here();
	if (task && PyTuple_Size(args) == 3)
		tell_preloaded(task, self, PyTuple_GetItem(args, 2));
	return py_call_original(keep_source, self, args, kwargs);
}

/* The branch of the first of [(branch, number, range)]; borrowed. */
static PyObject *first_branch(PyObject *list)
{
	PyObject *item =
		py_is(list, &PyList_Type) && PyList_Size(list) > 0 ? PyList_GetItem(list, 0) : NULL;

	return item && py_is(item, &PyTuple_Type) && PyTuple_Size(item) > 0
		       ? PyTuple_GetItem(item, 0)
		       : NULL;
}

/* What (branches, baskets or ranges, {branch: how}, ...) reads; NULL: nothing, or unknown. */
static struct crema_column *row_of_baskets(const struct crema_task *task, PyObject *args)
{
	PyObject *branch = PyTuple_Size(args) > 2 ? first_branch(PyTuple_GetItem(args, 1)) : NULL;
	PyObject *wanted = branch ? PyTuple_GetItem(args, 2) : NULL;
	uint32_t name;

	if (!wanted || !py_is(wanted, &PyDict_Type))
		return NULL;
	if (PyObject_Size(wanted) > 1)
		return column_current()
			       ? NULL
			       : column_row(task, 0, tree_name(branch), CREMA_COLUMN_TOGETHER);
	name = column_name(branch);
	return name ? column_row(task, name, tree_name(branch), 0) : NULL;
}

static PyObject *read_baskets_(PyObject *self, PyObject *args, PyObject *kwargs)
{
	const struct crema_task *task;
	struct crema_column *row;
	PyObject *source, *r;
	PY_TURN;

	(void)self;
	task = task_here();
	row = task ? row_of_baskets(task, args) : NULL;
	if (!row)
		return py_original_call(read_baskets, args, kwargs);
	if (!column_current())
		asked_by_own_line(row);
	source = source_of(PyTuple_GetItem(args, 0));
	r = visit(row, source, read_baskets, NULL, args, kwargs);
	Py_DecRef(source);
	return r;
}

/* list[at], or NULL; borrowed. */
static PyObject *item_of(PyObject *list, PyObject *at)
{
	unsigned long long i = at ? PyLong_AsUnsignedLongLong(at) : 0;
	PyObject *item = NULL;

	if (at && !PyErr_Occurred() && list && py_is(list, &PyList_Type) &&
	    i < (unsigned long long)PyList_Size(list))
		item = PyList_GetItem(list, (Py_ssize_t)i);
	PyErr_Clear();
	return item;
}

/* The field that has a name of an RNTuple's column: of a collection's content, the collection. A
 * new reference. */
static PyObject *field_of(PyObject *ntuple, PyObject *column)
{
	PyObject *records = py_attr(ntuple, n_column_records);
	PyObject *fields = py_attr(ntuple, n_all_fields);
	PyObject *record = item_of(records, column), *id, *field, *outer;

	id = record ? py_attr(record, n_field_id) : NULL;
	field = item_of(fields, id);
	Py_IncRef(field);
	for (int up = 0; field && field != PY_NONE && !attr_id(field, n_path); up++) {
		if (up == MOST_OUTER)
			break; /* a circle: no name */
		outer = py_attr(field, n_field_parent);
		Py_DecRef(field);
		field = outer;
	}
	Py_DecRef(id);
	Py_DecRef(fields);
	Py_DecRef(records);
	return field;
}

/* (column, clusters, ...); inside a column of coffea's it is part of that. */
static PyObject *read_clusters_(PyObject *self, PyObject *args, PyObject *kwargs)
{
	const struct crema_task *task;
	PyObject *field, *source, *r;
	struct crema_column *row;
	uint32_t name;
	PY_TURN;

	task = column_current() ? NULL : task_here();
	field = task && PyTuple_Size(args) > 0 ? field_of(self, PyTuple_GetItem(args, 0)) : NULL;
	name = field && field != PY_NONE ? column_name(field) : 0;
	Py_DecRef(field);
	if (!name)
		return py_call_original(read_clusters, self, args, kwargs);
	row = column_row(task, name, attr_id(self, n_name), 0);
	asked_by_own_line(row);
	source = source_of(self);
	r = visit(row, source, read_clusters, self, args, kwargs);
	Py_DecRef(source);
	return r;
}

void column_of_piece(const struct crema_task *task, PyObject *reader, const struct uproot_piece *p)
{
	struct crema_column *row = column_current();
	PyObject *branch = p->is_page ? NULL : py_attr(reader, n_parent);
	uint32_t name = branch ? column_name(branch) : 0;

	if (name && (!row || row->column != name || row->span != task->span))
		row = column_row(task, name, row && row->tree ? row->tree : tree_name(branch), 0);
	Py_DecRef(branch);
	if (row)
		column_basket(row, p->bytes, p->raw_bytes);
}

static void names(void)
{
	n_name = PyUnicode_InternFromString("name");
	n_column = PyUnicode_InternFromString("column");
	n_path = PyUnicode_InternFromString("path");
	n_tree = PyUnicode_InternFromString("tree");
	n_ntuple = PyUnicode_InternFromString("ntuple");
	n_file = PyUnicode_InternFromString("file");
	n_source = PyUnicode_InternFromString("source");
	n_parent = PyUnicode_InternFromString("_parent");
	n_file_handle = PyUnicode_InternFromString("_file_handle");
	n_preloaded = PyUnicode_InternFromString("preloaded_arrays");
	n_column_records = PyUnicode_InternFromString("column_records");
	n_all_fields = PyUnicode_InternFromString("all_fields");
	n_field_id = PyUnicode_InternFromString("field_id");
	n_field_parent = PyUnicode_InternFromString("parent");
	n_requests = PyUnicode_InternFromString("num_requests");
	n_ranges = PyUnicode_InternFromString("num_requested_chunks");
	n_bytes = PyUnicode_InternFromString("num_requested_bytes");
}

int patch_mapping(PyObject *module)
{
	static PyMethodDef extract = {"extract_column", (void *)extract_column_,
				      METH_VARARGS | METH_KEYWORDS, NULL};
	static PyMethodDef keep = {"preload_column_source", (void *)keep_source_,
				   METH_VARARGS | METH_KEYWORDS, NULL};
	int a, b;

	names();
	a = py_replace_in(module, "UprootSourceMapping", &extract, &extract_column);
	b = py_replace_in(module, "UprootSourceMapping", &keep, &keep_source);
	return a ? a : b;
}

int patch_parquet(PyObject *module)
{
	static PyMethodDef def = {"extract_column", (void *)extract_parquet_,
				  METH_VARARGS | METH_KEYWORDS, NULL};

	names();
	return py_replace_in(module, "ParquetSourceMapping", &def, &extract_parquet);
}

int patch_branches(PyObject *module)
{
	static PyMethodDef def = {"_ranges_or_baskets_to_arrays", (void *)read_baskets_,
				  METH_VARARGS | METH_KEYWORDS, NULL};
	PyObject *dict = PyModule_GetDict(module), *f = NULL;
	int r = -ENOENT;

	names();
	read_baskets = dict ? PyDict_GetItemString(dict, def.ml_name) : NULL;
	Py_IncRef(read_baskets);
	f = read_baskets ? py_builtin(&def, NULL, "crema") : NULL;
	if (f && !PyDict_SetItemString(dict, def.ml_name, f))
		r = 0;
	PyErr_Clear();
	Py_DecRef(f);
	return r;
}

/* Older ones of uproot read the columns of RNTuples in other ways: these are then in no row. */
int patch_fields(PyObject *module)
{
	static PyMethodDef def = {"read_cluster_range", (void *)read_clusters_,
				  METH_VARARGS | METH_KEYWORDS, NULL};

	names();
	py_replace_in(module, "Model_ROOT_3a3a_RNTuple", &def, &read_clusters);
	return 0;
}
