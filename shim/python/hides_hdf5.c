/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hides_hdf5.c - the filters of a dataset: libhdf5 calls gzip, lzf, szip, blosc ... internally.
 * zstd is counted by its own trace (zstd.c); shuffle and checksums do not compress.
 *
 * If a write covers a part of a stored chunk, HDF5 also decompresses the chunk. So a write hides
 * both directions unless nothing is stored yet. What it writes stays in its cache: packed.h.
 */
#include <string.h>

#include "shim/count/codec.h"
#include "shim/count/fd.h"
#include "shim/count/packed.h"
#include "shim/python/hides.h"

#define VIRTUAL 3     /* H5D_VIRTUAL */
#define ALLOC_EARLY 1 /* H5D_ALLOC_TIME_EARLY */

/* A filter that h5py has no name for is listed by its number; netCDF4 lists a level, too. */
static int is_seen(PyObject *name)
{
	static const char *const seen[] = {"shuffle", "fletcher32", "32015" /* zstd */, "zstd",
					   "complevel"};
	const char *text =
		py_is(name, &PyUnicode_Type) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
	int r = 0;

	for (size_t i = 0; text && i < sizeof(seen) / sizeof(*seen); i++)
		r |= !strcmp(text, seen[i]);
	return r;
}

/* by_value: all filters are listed, those in use have a value that is true. */
static int one_hides(PyObject *dict, int by_value)
{
	PyObject *i, *name, *value;
	int hides = !dict || !py_is(dict, &PyDict_Type);

	i = hides ? NULL : PyObject_GetIter(dict);
	while (i && (name = PyIter_Next(i))) {
		value = by_value ? PyDict_GetItem(dict, name) : NULL;
		hides |= !is_seen(name) && (!value || PyObject_IsTrue(value));
		Py_DecRef(name);
	}
	Py_DecRef(i);
	return hides;
}

int hides_filters(PyObject *dict)
{
	return one_hides(dict, 0);
}

static long long number_of(PyObject *o, const char *method)
{
	PyObject *v = py_call(o, method, NULL, NULL);
	long long n = v ? PyLong_AsLongLong(v) : -1;

	Py_DecRef(v);
	return n;
}

/* The file's name, bytes or str. */
static void mark(PyObject *name)
{
	PyObject *decoded =
		name && !py_is(name, &PyUnicode_Type) ? py_call(name, "decode", NULL, NULL) : NULL;
	PyObject *str = decoded ? decoded : name;
	const char *path =
		str && py_is(str, &PyUnicode_Type) ? PyUnicode_AsUTF8AndSize(str, NULL) : NULL;

	if (path && packed_mark(path))
		fd_forget_files();
	Py_DecRef(decoded);
	Py_DecRef(name);
}

static uint64_t written_hides(PyObject *dataset, const char *stored_bytes)
{
	return number_of(dataset, stored_bytes) ? HIDES_BOTH : HIDES_WRITES;
}

/* h5py's own way to make a dict of a creation list. */
static int list_hides(PyObject *list)
{
	PyObject *module = py_module("h5py._hl.filters");
	PyObject *dict = module && list ? py_call(module, "get_filters", list, NULL) : NULL;
	int hides = hides_filters(dict);

	Py_DecRef(dict);
	Py_DecRef(module);
	/* The data of a virtual dataset is in other datasets, which have their own filters. */
	return hides || number_of(list, "get_layout") == VIRTUAL;
}

static int dataset_hides(PyObject *dataset, int only_early)
{
	PyObject *list = dataset ? py_call(dataset, "get_create_plist", NULL, NULL) : NULL;
	int hides = !list || ((!only_early || number_of(list, "get_alloc_time") == ALLOC_EARLY) &&
			      list_hides(list));

	Py_DecRef(list);
	return hides;
}

HIDES(hides_h5py_read)
{
	(void)c, (void)self, (void)result;
	return dataset_hides(argument, 0) ? HIDES_READS : 0;
}

/* Ids are not used again. Once a dataset is checked, a loop of small writes does not check it again
 * (30 us). */
HIDES(hides_h5py_write)
{
	static PyObject *module, *id;
	static long long asked, hid;
	static int hides;
	PyObject *v;

	(void)c, (void)self, (void)result;
	module = module ? module : py_module("h5py.h5f");
	id = id ? id : PyUnicode_InternFromString("id");
	v = id && argument ? py_attr(argument, id) : NULL;
	hid = v ? PyLong_AsLongLong(v) : -1;
	Py_DecRef(v);
	if (hid <= 0 || hid != asked) {
		hides = dataset_hides(argument, 0);
		if (hides)
			mark(module ? py_call(module, "get_name", argument, NULL) : NULL);
		asked = hid;
	}
	return hides ? written_hides(argument, "get_storage_size") : 0;
}

/* Only with space for all its chunks is it filled, and compressed, when it is made. */
HIDES(hides_h5py_made)
{
	(void)c, (void)self, (void)argument;
	return result && dataset_hides(result, 1) ? HIDES_WRITES : 0;
}

/* A leaf, or the row of one. None: not in chunks. */
static int leaf_hides(PyObject *self)
{
	PyObject *module = py_module("tables.utilsextension");
	PyObject *table = py_attr_string(self, "table"), *leaf = table ? table : self;
	PyObject *parent = py_attr_string(leaf, "_v_parent");
	PyObject *id = parent ? py_attr_string(parent, "_v_objectid") : NULL;
	PyObject *name = py_attr_string(leaf, "_v_name");
	PyObject *dict = module && id && name ? py_call(module, "get_filters", id, name) : NULL;
	int hides = dict != PY_NONE && hides_filters(dict);

	Py_DecRef(dict);
	Py_DecRef(name);
	Py_DecRef(id);
	Py_DecRef(parent);
	Py_DecRef(table);
	Py_DecRef(module);
	return hides;
}

HIDES(hides_tables_read)
{
	(void)c, (void)argument, (void)result;
	return leaf_hides(self) ? HIDES_READS : 0;
}

static void mark_leaf(PyObject *self)
{
	PyObject *table = py_attr_string(self, "table");
	PyObject *file = py_attr_string(table ? table : self, "_v_file");

	mark(file ? py_attr_string(file, "filename") : NULL);
	Py_DecRef(file);
	Py_DecRef(table);
}

HIDES(hides_tables_write)
{
	int hides = leaf_hides(self);

	(void)c, (void)argument, (void)result;
	if (hides)
		mark_leaf(self);
	return hides ? written_hides(self, "_get_storage_size") : 0;
}

HIDES(hides_tables_made)
{
	(void)c, (void)argument, (void)result;
	if (!leaf_hides(self))
		return 0;
	mark_leaf(self);
	return HIDES_WRITES;
}

/* None: the classic format, which has no filters. */
static int variable_hides(PyObject *self)
{
	PyObject *dict = py_call(self, "filters", NULL, NULL);
	int hides = dict != PY_NONE && one_hides(dict, 1);

	Py_DecRef(dict);
	return hides;
}

HIDES(hides_netcdf_read)
{
	(void)c, (void)argument, (void)result;
	return variable_hides(self) ? HIDES_READS : 0;
}

HIDES(hides_netcdf_write)
{
	PyObject *group;

	(void)c, (void)argument, (void)result;
	if (!variable_hides(self))
		return 0;
	group = py_call(self, "group", NULL, NULL);
	mark(group ? py_call(group, "filepath", NULL, NULL) : NULL);
	Py_DecRef(group);
	return HIDES_BOTH;
}
