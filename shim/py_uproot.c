/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_uproot.c - the baskets that uproot really uses: Model_TBasket.read_members reads and unpacks
 * one, in whatever thread, and is replaced on its class by a method that counts what it found.
 *
 * A basket's bytes are fNbytes, its key included: what the branch's fBasketBytes says of it. Baskets
 * inside a tree's own record come with the metadata and are only numbered. A basket whose header
 * alone was looked at counts nothing.
 */
#include <errno.h>
#include <string.h>

#include "extent.h"
#include "fd.h"
#include "patch.h"
#include "task.h"

#define BASKET_COUNTS                                                                              \
	(1ull << CREMA_C_basket_calls | 1ull << CREMA_C_basket_bytes |                             \
	 1ull << CREMA_C_basket_raw_bytes | 1ull << CREMA_C_embedded_baskets)

uint64_t uproot_counts_unknown;

static PyObject *original, *n_members, *n_file, *n_file_path, *n_cursor, *n_index;

struct basket {
	uint64_t bytes, raw_bytes;
	uint64_t at; /* in the file; UINT64_MAX: not known */
	int embedded;
};

static uint64_t member(PyObject *members, const char *name)
{
	PyObject *v = PyDict_GetItemString(members, name);
	unsigned long long n = v ? PyLong_AsUnsignedLongLong(v) : UINT64_MAX;

	PyErr_Clear();
	return n;
}

static uint64_t place_of(PyObject *self)
{
	PyObject *cursor = py_attr(self, n_cursor), *index = py_attr(cursor, n_index);
	unsigned long long at = index ? PyLong_AsUnsignedLongLong(index) : UINT64_MAX;

	PyErr_Clear();
	Py_DecRef(index);
	Py_DecRef(cursor);
	return at;
}

/* What the read that has just returned found: 0, or -EPROTO if this uproot keeps it elsewhere. */
static int look_at(PyObject *self, struct basket *b)
{
	PyObject *members = py_attr(self, n_members);
	uint64_t key = UINT64_MAX, object = UINT64_MAX;

	b->bytes = UINT64_MAX;
	if (members && py_is(members, &PyDict_Type)) {
		b->bytes = member(members, "fNbytes");
		key = member(members, "fKeylen");
		object = member(members, "fObjlen");
	}
	Py_DecRef(members);
	b->embedded = b->bytes <= key;
	b->raw_bytes = key + object;
	b->at = place_of(self);
	return b->bytes == UINT64_MAX || key == UINT64_MAX || object == UINT64_MAX ? -EPROTO : 0;
}

/* The file's row under the span of the task. */
static uint32_t row_of(PyObject *self, uint32_t span)
{
	PyObject *file = py_attr(self, n_file), *path = py_attr(file, n_file_path);
	const char *text = path && py_is(path, &PyUnicode_Type)
				   ? PyUnicode_AsUTF8AndSize(path, NULL)
				   : NULL;
	uint32_t row = text ? file_row_by_name(text, span) : 0;

	PyErr_Clear();
	Py_DecRef(path);
	Py_DecRef(file);
	return row;
}

static void count(PyObject *self)
{
	uint64_t name = pool_current();
	uint32_t owner = task_ref_name(name), row;
	struct crema_task *task = task_slot(owner);
	struct basket b;

	if (look_at(self, &b)) {
		uproot_unseen();
	} else if (b.embedded) {
		task_add(owner, CREMA_C_embedded_baskets, 1);
	} else {
		task_add(owner, CREMA_C_basket_calls, 1);
		task_add(owner, CREMA_C_basket_bytes, b.bytes);
		task_add(owner, CREMA_C_basket_raw_bytes, b.raw_bytes);
		row = row_of(self, task ? task->span : 0);
		if (row) {
			ADD(&crema_shm->file[row - 1].basket_calls, 1);
			ADD(&crema_shm->file[row - 1].basket_bytes, b.bytes);
			ADD(&crema_shm->file[row - 1].basket_raw_bytes, b.raw_bytes);
			extent_basket(row, b.at, b.bytes);
		}
	}
	task_unref(owner);
}

/* Only its data were wanted if the context does not say otherwise. */
static int is_wanted(PyObject *context)
{
	PyObject *v = context && py_is(context, &PyDict_Type)
			      ? PyDict_GetItemString(context, "read_basket")
			      : NULL;

	return !v || PyObject_IsTrue(v) == 1;
}

static PyObject *read_members(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *all = py_with_self(self, args, NULL), *r;

	r = all ? PyObject_Call(original, all, kwargs) : NULL;
	Py_DecRef(all);
	if (r && shim_armed() && (PyTuple_Size(args) < 3 || is_wanted(PyTuple_GetItem(args, 2))))
		count(self);
	return r;
}

static PyMethodDef read_def = {"read_members", (void *)read_members, METH_VARARGS | METH_KEYWORDS,
			       NULL};

void uproot_unseen(void)
{
	struct crema_task *task = task_slot(segment_owner());

	STORE(&uproot_counts_unknown, BASKET_COUNTS);
	if (task)
		__atomic_fetch_or(&task->count_unknown, BASKET_COUNTS, __ATOMIC_RELAXED);
}

int patch_baskets(PyObject *module)
{
	PyObject *class = py_attr_string(module, "Model_TBasket"), *d = NULL;
	int r = -ENOENT;

	original = class ? py_attr_string(class, "read_members") : NULL;
	n_members = PyUnicode_InternFromString("_members");
	n_file = PyUnicode_InternFromString("_file");
	n_file_path = PyUnicode_InternFromString("file_path");
	n_cursor = PyUnicode_InternFromString("_cursor");
	n_index = PyUnicode_InternFromString("index");
	if (original && n_members && n_file && n_file_path)
		d = PyDescr_NewMethod(class, &read_def);
	if (d && !PyObject_SetAttrString(class, "read_members", d))
		r = 0;
	else
		uproot_unseen();
	PyErr_Clear();
	Py_DecRef(d);
	Py_DecRef(class);
	return r;
}
