/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_hdf5.c - reads and writes of h5py's Dataset, whose fast way to read bypasses the low level: if
 * it has filters that cannot be seen (hides_hdf5.c), (de)compression is unknown, not 0.
 */
#include <errno.h>

#include "shim/count/codec.h"
#include "shim/python/hides.h"
#include "shim/python/patch.h"
#include "shim/count/task.h"

#define METHODS                                                                                    \
	X(__getitem__, HIDES_READS)                                                                \
	X(__array__, HIDES_READS)                                                                  \
	X(read_direct, HIDES_READS)                                                                \
	X(__setitem__, HIDES_WRITES)                                                               \
	X(write_direct, HIDES_WRITES)                                                              \
	X(create_dataset, HIDES_WRITES) /* of Group: writes its argument `data` */

enum {
#define X(name, counts) METHOD_##name,
	METHODS
#undef X
		METHOD_COUNT
};

static PyObject *originals[METHOD_COUNT], *n_filters;

static int has_unseen_filters(PyObject *dataset)
{
	PyObject *filters = py_attr(dataset, n_filters);
	PyObject *elsewhere = py_attr_string(dataset, "is_virtual");
	int unseen = hides_filters(filters);

	/* The data of a virtual dataset is in other datasets, which have their own filters. */
	unseen |= elsewhere && PyObject_IsTrue(elsewhere);
	Py_DecRef(elsewhere);
	PyErr_Clear();
	Py_DecRef(filters);
	return unseen;
}

/* create_dataset(name, shape, dtype, data, ...) */
static int has_data(PyObject *args, PyObject *kwargs)
{
	PyObject *data = kwargs ? PyDict_GetItemString(kwargs, "data") : NULL;

	if (!data && PyTuple_Size(args) > 3)
		data = PyTuple_GetItem(args, 3);
	return data && data != PY_NONE;
}

static void uses(PyObject *dataset, uint64_t counts)
{
	uint64_t name = pool_current();
	uint32_t owner = task_ref_name(name);
	struct crema_task *task = task_slot(owner);

	/* Checking the filters costs tens of microseconds: once unknown, a count stays unknown. */
	if (task && (LOAD(&task->count_unknown) & counts) != counts && has_unseen_filters(dataset))
		task_counts_hidden(name, counts);
	task_unref(owner);
}

static PyObject *run(int method, uint64_t counts, PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *r = py_call_original(originals[method], self, args, kwargs);
	PyObject *dataset = self;
	struct py_error error;
	PY_TURN;

	if (method == METHOD_create_dataset)
		dataset = has_data(args, kwargs) ? r : NULL;
	if (shim_armed() && dataset) {
		py_error_save(&error);
		uses(dataset, counts);
		py_error_restore(&error);
	}
	return r;
}

#define X(name, counts)                                                                            \
	static PyObject *name##_(PyObject *self, PyObject *args, PyObject *kwargs)                 \
	{                                                                                          \
		return run(METHOD_##name, counts, self, args, kwargs);                             \
	}
METHODS
#undef X

static PyMethodDef defs[METHOD_COUNT] = {
#define X(name, counts)                                                                            \
	[METHOD_##name] = {#name, (void *)name##_, METH_VARARGS | METH_KEYWORDS, NULL},
	METHODS
#undef X
};

/* The methods from `first` to before `end`. */
static int replace_all(PyObject *module, const char *name, int first, int end)
{
	PyObject *class = py_attr_string(module, name);
	int r = 0;

	if (!n_filters)
		n_filters = PyUnicode_InternFromString("_filters");
	for (int i = first; i < end; i++)
		r = n_filters && !py_replace(class, &defs[i], &originals[i]) ? r : -ENOENT;
	PyErr_Clear();
	Py_DecRef(class);
	return r;
}

int patch_hdf5(PyObject *module)
{
	return replace_all(module, "Dataset", 0, METHOD_create_dataset);
}

int patch_hdf5_groups(PyObject *module)
{
	return replace_all(module, "Group", METHOD_create_dataset, METHOD_COUNT);
}
