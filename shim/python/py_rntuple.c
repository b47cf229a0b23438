/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_rntuple.c - the pages of RNTuples that uproot really uses. read_page (before uproot 5.7
 * read_pagedesc) reads and decompresses one, in any thread, through read_locator, which has its
 * place and sizes; page lists, which are metadata, come through read_locator alone. Methods that
 * count replace the three on the class of RNTuples.
 *
 * The cluster is read_page's second argument; read_pagedesc has none, and the clusters used are
 * unknown then. A page's bytes are its locator's num_bytes, without the checksum after it. A page
 * that uproot finds in its array cache is not read and counts nothing; pages read for a GPU do not
 * come through here, and the baskets and pages used are unknown from then on.
 */
#include <errno.h>

#include "shim/python/patch.h"
#include "shim/python/py_uproot.h"
#include "shim/shim.h"

static PyObject *read_locator, *read_page, *read_gpu, *read_members;
static PyObject *n_num_bytes, *n_offset;

/* This thread is inside read_page, of a cluster (UINT64_MAX: unknown). */
static __thread int in_page;
static __thread uint64_t in_cluster;

static uint64_t number(PyObject *o, PyObject *name)
{
	PyObject *v = o ? py_attr(o, name) : NULL;
	unsigned long long n = v ? PyLong_AsUnsignedLongLong(v) : UINT64_MAX;

	PyErr_Clear();
	Py_DecRef(v);
	return n;
}

static void count(PyObject *self, PyObject *args)
{
	PyObject *locator = PyTuple_Size(args) > 1 ? PyTuple_GetItem(args, 0) : NULL;
	struct uproot_piece page = {.is_page = 1, .cluster = in_cluster};

	page.bytes = number(locator, n_num_bytes);
	page.at = number(locator, n_offset);
	page.raw_bytes = locator ? PyLong_AsUnsignedLongLong(PyTuple_GetItem(args, 1)) : UINT64_MAX;
	PyErr_Clear();
	if (page.bytes == UINT64_MAX || page.raw_bytes == UINT64_MAX)
		uproot_unseen();
	else
		uproot_used(self, &page);
}

static PyObject *locator_(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *r = py_call_original(read_locator, self, args, kwargs);
	PY_TURN;

	if (r && in_page && shim_armed())
		count(self, args);
	return r;
}

static PyObject *page_(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *cluster = PyTuple_Size(args) > 1 ? PyTuple_GetItem(args, 1) : NULL, *r;

	in_cluster = cluster ? PyLong_AsUnsignedLongLong(cluster) : UINT64_MAX;
	PyErr_Clear();
	in_page++;
	r = py_call_original(read_page, self, args, kwargs);
	in_page--;
	return r;
}

static PyObject *gpu_(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PY_TURN;

	if (shim_armed())
		uproot_unseen();
	return py_call_original(read_gpu, self, args, kwargs);
}

/* An RNTuple is opened, and its pages cannot be seen. */
static PyObject *members_(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PY_TURN;

	if (shim_armed())
		uproot_unseen();
	return py_call_original(read_members, self, args, kwargs);
}

#define DEF(name, method)                                                                          \
	{                                                                                          \
		name, (void *)(method), METH_VARARGS | METH_KEYWORDS, NULL                         \
	}

static int patch_class(PyObject *class)
{
	static PyMethodDef locator = DEF("read_locator", locator_), page = DEF("read_page", page_),
			   pagedesc = DEF("read_pagedesc", page_),
			   gpu = DEF("gpu_read_cluster_pages", gpu_),
			   members = DEF("read_members", members_);

	if ((py_replace(class, &page, &read_page) && py_replace(class, &pagedesc, &read_page)) ||
	    py_replace(class, &locator, &read_locator)) {
		if (py_replace(class, &members, &read_members))
			uproot_unseen();
		return -ENOENT;
	}
	py_replace(class, &gpu, &read_gpu);
	return 0;
}

int patch_pages(PyObject *module)
{
	PyObject *class = py_attr_string(module, "Model_ROOT_3a3a_RNTuple");
	int r;

	if (!class)
		class = py_attr_string(module, "Model_ROOT_3a3a_Experimental_3a3a_RNTuple");
	n_num_bytes = PyUnicode_InternFromString("num_bytes");
	n_offset = PyUnicode_InternFromString("offset");
	PyErr_Clear();
	r = patch_class(class);
	Py_DecRef(class);
	return r;
}
