/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_dask_awkward.c - chunks without coffea's Runner: uproot.dask and coffea's apply_to_fileset.
 *
 * Their tasks hold no WorkItem, and dask-awkward fuses reading with what follows under another
 * name. But each read goes through UprootReadMixin.read_tree(tree, start, stop), once the file is
 * open and its entries are counted: there file, tree and the true entry range are known, also if
 * the user requested steps per file. The dataset is what apply_to_fileset left in the form's
 * metadata.
 *
 * A task is described by its first read. A fused task may read more: then what its reads do not
 * agree on is unknown, and tree_reads is the number of reads.
 */
#include <errno.h>
#include <string.h>

#include "shim/count/task.h"
#include "shim/python/patch.h"

#define NAME_BYTES 256

struct range {
	uint32_t dataset, filename, treename;
	int64_t start, stop;
};

static PyObject *original_read_tree;

/* "/dir;1/Events;2" -> "dir/Events", as users write it; 0 when it is too long. */
static uint32_t plain_name(const char *path, Py_ssize_t n)
{
	char name[NAME_BYTES];
	size_t used = 0;

	if (n >= NAME_BYTES)
		return 0;
	for (Py_ssize_t i = path[0] == '/'; i < n; i++) {
		if (path[i] == ';') {
			while (i + 1 < n && path[i + 1] >= '0' && path[i + 1] <= '9')
				i++;
			continue;
		}
		name[used++] = path[i];
	}
	return used ? arena_id(name, (uint32_t)used) : 0;
}

static uint32_t tree_name(PyObject *tree)
{
	PyObject *path = py_attr_string(tree, "object_path");
	Py_ssize_t n = 0;
	const char *text =
		path && py_is(path, &PyUnicode_Type) ? PyUnicode_AsUTF8AndSize(path, &n) : NULL;
	uint32_t id = text ? plain_name(text, n) : 0;

	PyErr_Clear();
	Py_DecRef(path);
	return id;
}

static uint32_t file_name(PyObject *tree)
{
	PyObject *file = py_attr_string(tree, "file"), *path = py_attr_string(file, "file_path");
	uint32_t id = py_bulk_id(path);

	Py_DecRef(path);
	Py_DecRef(file);
	return id;
}

static uint32_t dataset_name(PyObject *reader)
{
	PyObject *form = py_attr_string(reader, "form_mapping_info");
	PyObject *metadata = py_attr_string(form, "metadata"), *name = NULL;
	uint32_t id = 0;

	if (py_is(metadata, &PyDict_Type))
		name = PyDict_GetItemString(metadata, "dataset");
	id = py_text_id(name);
	Py_DecRef(metadata);
	Py_DecRef(form);
	return id;
}

static int entry(PyObject *o, int64_t *value)
{
	*value = PyLong_AsLongLong(o);
	if (!PyErr_Occurred())
		return 1;
	PyErr_Clear();
	return 0;
}

static void describe_first(struct crema_task *t, const struct range *r)
{
	t->dataset = r->dataset;
	t->filename = r->filename;
	t->treename = r->treename;
	t->entrystart = r->start;
	t->entrystop = r->stop;
	t->known |= CREMA_KNOWN_ENTRIES;
	t->flags |= CREMA_TASK_CHUNK | CREMA_TASK_TREE_READ;
}

/* Columns of one chunk may be read in several calls; anything else is not one chunk. */
static void describe_further(struct crema_task *t, const struct range *r)
{
	if (t->filename == r->filename && t->treename == r->treename && t->entrystart == r->start &&
	    t->entrystop == r->stop)
		return;
	t->flags |= CREMA_TASK_READS_DIFFER;
	t->known &= ~(CREMA_KNOWN_ENTRIES | CREMA_KNOWN_EVENTS);
	if (t->dataset != r->dataset)
		t->dataset = 0;
	if (t->filename != r->filename)
		t->filename = 0;
	if (t->treename != r->treename)
		t->treename = 0;
}

/* self, args: those of read_tree. The task that is described, or NULL. */
static struct crema_task *describe_read(PyObject *self, PyObject *args)
{
	struct crema_task *t = task_slot(segment_owner());
	struct range r;
	PyObject *tree;

	if (!t || (t->flags & CREMA_TASK_CHUNK && !(t->flags & CREMA_TASK_TREE_READ)))
		return NULL; /* no task, or a WorkItem has more */
	if (PyTuple_Size(args) < 3 || !entry(PyTuple_GetItem(args, 1), &r.start) ||
	    !entry(PyTuple_GetItem(args, 2), &r.stop))
		return NULL;
	tree = PyTuple_GetItem(args, 0);
	r.dataset = dataset_name(self);
	r.filename = file_name(tree);
	r.treename = tree_name(tree);
	if (t->tree_reads++)
		describe_further(t, &r);
	else
		describe_first(t, &r);
	return t;
}

static PyObject *read_tree(PyObject *self, PyObject *args, PyObject *kwargs)
{
	struct crema_task *t;
	PyObject *result;
	PY_TURN;

	t = shim_armed() ? describe_read(self, args) : NULL;
	result = py_call_original(original_read_tree, self, args, kwargs);
	/* A failed read may be tolerated (allow_read_errors_with_report): it returned no events. */
	if (!result && t && t->tree_reads == 1) {
		t->events = 0;
		t->known |= CREMA_KNOWN_EVENTS;
	}
	return result;
}

static PyMethodDef read_tree_def = {"read_tree", (void *)read_tree, METH_VARARGS | METH_KEYWORDS,
				    NULL};

/* Before uproot 5 there was no dask-awkward, so nothing is missing. */
static int has_readers(PyObject *module)
{
	PyObject *reader = py_attr_string(module, "_UprootRead");

	Py_DecRef(reader);
	return reader != NULL;
}

int patch_uproot_dask(PyObject *module)
{
	PyObject *class = py_attr_string(module, "UprootReadMixin");
	int r = class || has_readers(module) ? -ENOENT : 0;

	if (class)
		r = py_replace(class, &read_tree_def, &original_read_tree);
	PyErr_Clear();
	Py_DecRef(class);
	return r;
}
