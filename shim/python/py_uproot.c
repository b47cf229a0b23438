/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_uproot.c - the baskets that uproot really uses: Model_TBasket.read_members reads and
 * decompresses one, in any thread; a method that counts replaces it on its class.
 *
 * A basket's bytes are fNbytes, its key included: the same number as in the branch's fBasketBytes.
 * Baskets inside a tree's own record come with the metadata and are only numbered. A basket of
 * which only the header was read counts nothing.
 */
#include <errno.h>
#include <string.h>

#include "fnv.h"
#include "shim/count/extent.h"
#include "shim/count/fd.h"
#include "shim/count/task.h"
#include "shim/python/first_use.h"
#include "shim/python/patch.h"
#include "shim/python/py_uproot.h"

#define UNSEEN_COUNTS                                                                              \
	(CREMA_COUNT_BIT(basket_calls) | CREMA_COUNT_BIT(page_calls) |                             \
	 CREMA_COUNT_BIT(basket_bytes) | CREMA_COUNT_BIT(basket_raw_bytes) |                       \
	 CREMA_COUNT_BIT(embedded_baskets) | CREMA_COUNT_BIT(clusters_used) |                      \
	 CREMA_COUNT_BIT(repeated_basket_bytes))

static PyObject *original, *n_members, *n_file, *n_file_path, *n_cursor, *n_index, *n_end;

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

/* What the read that has just returned found: 1 in the tree's own record, 0, or -EPROTO if this
 * uproot keeps it elsewhere. */
static int look_at(PyObject *self, struct uproot_piece *p)
{
	PyObject *members = py_attr(self, n_members);
	uint64_t key = UINT64_MAX, object = UINT64_MAX;

	p->bytes = UINT64_MAX;
	if (members && py_is(members, &PyDict_Type)) {
		p->bytes = member(members, "fNbytes");
		key = member(members, "fKeylen");
		object = member(members, "fObjlen");
	}
	Py_DecRef(members);
	if (p->bytes == UINT64_MAX || key == UINT64_MAX || object == UINT64_MAX)
		return -EPROTO;
	p->raw_bytes = key + object;
	p->at = place_of(self);
	return p->bytes <= key;
}

/* For a file on a server no request is made: ROOT's header, which uproot has read, contains the end
 * of the file. An uproot without it leaves the size unknown. */
static void tell_size(struct crema_file *f, PyObject *file)
{
	PyObject *end;
	unsigned long long bytes;

	if (LOAD(&f->kind) != CREMA_FILE_REMOTE || LOAD(&f->size_bytes))
		return;
	end = py_attr(file, n_end);
	bytes = end ? PyLong_AsUnsignedLongLong(end) : 0;
	if (!PyErr_Occurred() && bytes)
		STORE(&f->size_bytes, bytes);
	PyErr_Clear();
	Py_DecRef(end);
}

/* The file's row under the span of the task. */
static uint32_t row_of(PyObject *self, uint32_t span)
{
	PyObject *file = py_attr(self, n_file), *path = py_attr(file, n_file_path);
	const char *text =
		path && py_is(path, &PyUnicode_Type) ? PyUnicode_AsUTF8AndSize(path, NULL) : NULL;
	uint32_t row = text ? file_row_by_name(text, span) : 0;

	if (row)
		tell_size(&crema_shm->file[row - 1], file);
	PyErr_Clear();
	Py_DecRef(path);
	Py_DecRef(file);
	return row;
}

static void count_row(struct crema_file *f, const struct uproot_piece *p)
{
	ADD(&f->basket_calls, 1);
	ADD(&f->page_calls, (uint64_t)p->is_page);
	ADD(&f->basket_bytes, p->bytes);
	ADD(&f->basket_raw_bytes, p->raw_bytes);
}

static uint64_t cluster_key(uint32_t row, uint64_t cluster)
{
	return (uint64_t)row << 32 | cluster;
}

static uint64_t basket_key(uint32_t row, uint64_t at)
{
	return UINT64_C(1) << 63 | (uint64_t)row << 48 | at;
}

/*
 * As first_use(). A place that the task used before its file changed may have other bytes now, as
 * when the next input is copied to the same name: then it is unknown (-1) whether it is used again.
 * So places of a changed file have a second key. It is hashed: of a million places, two have the
 * same one once in 10^7 tasks.
 */
static int first_use_of(uint64_t task, uint32_t owner, uint32_t row, uint64_t key)
{
	uint32_t changed;
	int first, first_since;

	if (!row || row >= CREMA_SHM_FILES)
		return -1;
	changed = LOAD(&crema_shm->file[row - 1].changed);
	first = first_use(task, owner, key);
	if (likely(!changed) || first < 0)
		return first;
	first_since = first_use(task, owner, crema_hash_more(key, &changed, sizeof(changed)));
	return first ? first : first_since ? -1 : 0;
}

static void count_cluster(uint64_t task, uint32_t owner, uint32_t row, uint64_t cluster)
{
	int first = cluster < UINT32_MAX ? first_use_of(task, owner, row, cluster_key(row, cluster))
					 : -1;

	if (first < 0)
		task_counts_hidden(task, CREMA_COUNT_BIT(clusters_used));
	else
		task_add(owner, CREMA_C_clusters_used, (uint64_t)first);
}

static void count_repeated(uint64_t task, uint32_t owner, uint32_t row,
			   const struct uproot_piece *p)
{
	int first = p->at < UINT64_C(1) << 48
			    ? first_use_of(task, owner, row, basket_key(row, p->at))
			    : -1;

	if (first < 0)
		task_counts_hidden(task, CREMA_COUNT_BIT(repeated_basket_bytes));
	else
		task_add(owner, CREMA_C_repeated_basket_bytes, first ? 0 : p->bytes);
}

void uproot_used(PyObject *reader, const struct uproot_piece *p)
{
	uint64_t name = pool_current();
	uint32_t owner = task_ref_name(name), row;
	struct crema_task *task = task_slot(owner);

	task_add(owner, CREMA_C_basket_calls, 1);
	task_add(owner, CREMA_C_page_calls, (uint64_t)p->is_page);
	task_add(owner, CREMA_C_basket_bytes, p->bytes);
	task_add(owner, CREMA_C_basket_raw_bytes, p->raw_bytes);
	if (task)
		column_of_piece(task, reader, p);
	row = row_of(reader, task ? task->span : 0);
	count_repeated(name, owner, row, p);
	if (p->is_page)
		count_cluster(name, owner, row, p->cluster);
	if (row) {
		count_row(&crema_shm->file[row - 1], p);
		extent_basket(row, p->at, p->bytes);
	}
	task_unref(owner);
}

static void count(PyObject *self)
{
	struct uproot_piece basket = {0};
	int found = look_at(self, &basket);
	uint32_t owner;

	if (found < 0) {
		uproot_unseen();
	} else if (found) {
		owner = task_ref_name(pool_current());
		task_add(owner, CREMA_C_embedded_baskets, 1);
		task_unref(owner);
	} else {
		uproot_used(self, &basket);
	}
}

/* 0 if the context excludes the basket's data. */
static int is_wanted(PyObject *context)
{
	PyObject *v = context && py_is(context, &PyDict_Type)
			      ? PyDict_GetItemString(context, "read_basket")
			      : NULL;

	return !v || PyObject_IsTrue(v) == 1;
}

static PyObject *read_members(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *r = py_call_original(original, self, args, kwargs);
	PY_TURN;

	if (r && shim_armed() && (PyTuple_Size(args) < 3 || is_wanted(PyTuple_GetItem(args, 2))))
		count(self);
	return r;
}

static PyMethodDef read_def = {"read_members", (void *)read_members, METH_VARARGS | METH_KEYWORDS,
			       NULL};

void uproot_unseen(void)
{
	static int told;

	if (!told)
		tasks_cannot_count(UNSEEN_COUNTS, 0);
	told = 1;
}

int patch_baskets(PyObject *module)
{
	int r = -ENOENT;

	n_members = PyUnicode_InternFromString("_members");
	n_file = PyUnicode_InternFromString("_file");
	n_file_path = PyUnicode_InternFromString("file_path");
	n_end = PyUnicode_InternFromString("_fEND");
	n_cursor = PyUnicode_InternFromString("_cursor");
	n_index = PyUnicode_InternFromString("index");
	if (n_members && n_file && n_file_path && n_end)
		r = py_replace_in(module, "Model_TBasket", &read_def, &original);
	if (r)
		uproot_unseen();
	PyErr_Clear();
	return r;
}
