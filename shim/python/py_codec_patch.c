/* SPDX-License-Identifier: BSD-3-Clause */
/* py_codec_patch.c - finds the codecs' functions and exchanges their definitions. */
#include <errno.h>
#include <string.h>

#include "shim/count/codec.h"
#include "shim/python/patch.h"
#include "shim/python/py_codec.h"

/* Size of an object's header: the size of object() itself. */
static long long header_bytes(void)
{
	PyObject *builtins = PyEval_GetBuiltins();
	PyObject *object = builtins ? PyDict_GetItemString(builtins, "object") : NULL;
	PyObject *size = object ? py_attr_string(object, "__basicsize__") : NULL;
	long long n = size ? PyLong_AsLongLong(size) : -1;

	PyErr_Clear();
	Py_DecRef(size);
	return n >= 16 && n <= 64 ? n : -1;
}

/* A builtin function keeps the pointer to its PyMethodDef directly after its header. */
static PyMethodDef **of_function(PyObject *f)
{
	long long n = header_bytes();
	PyMethodDef **at = n > 0 ? (PyMethodDef **)(void *)((char *)f + n) : NULL;

	if (!at || !*at || (*at)->ml_meth != PyCFunction_GetFunction(f) ||
	    (*at)->ml_flags != PyCFunction_GetFlags(f))
		return NULL;
	return at;
}

/* Cython's functions and methods have the layout of builtin functions; with Python's stable ABI
 * they have one of these in that place instead. */
static PyMethodDef **of_cython(PyObject *f, const char *name)
{
	PyObject *class = PyObject_Type(f), *class_name = py_attr_string(class, "__name__");
	const char *text = class_name ? PyUnicode_AsUTF8AndSize(class_name, NULL) : NULL;
	long long n = header_bytes();
	PyMethodDef **at = NULL;

	if (n > 0 && text && !strcmp(text, "cython_function_or_method"))
		at = (PyMethodDef **)(void *)((char *)f + n);
	/* An object's header ends with its type. */
	if (at && *at && *(void **)((char *)*at + n - sizeof(void *)) == &PyCFunction_Type)
		at = of_function((PyObject *)*at);
	/* "wrapper": h5py's decorator, a separate function for each one decorated. */
	if (at && (!*at || !(*at)->ml_name ||
		   (strcmp((*at)->ml_name, name) && strcmp((*at)->ml_name, "wrapper"))))
		at = NULL;
	Py_DecRef(class_name);
	Py_DecRef(class);
	return at;
}

/* A method descriptor: header, its type, its name, its qualified name, then the PyMethodDef. The
 * type and the name are known, so the layout can be checked before the pointer is used. */
static PyMethodDef **of_method(PyObject *f, PyObject *class, const char *name)
{
	long long n = header_bytes();
	PyObject **parts = n > 0 ? (PyObject **)(void *)((char *)f + n) : NULL;
	const char *have;

	if (!parts || parts[0] != class || !py_is(parts[1], &PyUnicode_Type))
		return NULL;
	have = PyUnicode_AsUTF8AndSize(parts[1], NULL);
	if (!have || strcmp(have, name) || !parts[3])
		return NULL;
	return (PyMethodDef **)(void *)&parts[3];
}

static int exchange(int id, PyMethodDef **at)
{
	struct codec *k = &codecs[id];
	void *t = at ? codec_thunk(id, (*at)->ml_flags) : NULL;

	if (!t || k->original)
		return -EINVAL;
	k->def = **at;
	k->original = k->def.ml_meth;
	k->def.ml_meth = t;
	__atomic_store_n(at, &k->def, __ATOMIC_RELEASE);
	zstd_is_hooked(k->original);
	return 0;
}

/* One step of a path: an attribute, or with "()" the type of the result of calling it. */
static PyObject *step(PyObject *o, const char *name, size_t n)
{
	char part[64];
	PyObject *next, *made;
	int call = n > 2 && name[n - 1] == ')';

	if (n >= sizeof(part))
		return NULL;
	memcpy(part, name, n);
	part[call ? n - 2 : n] = 0;
	next = py_attr_string(o, part);
	if (!next || !call)
		return next;
	made = PyObject_CallObject(next, NULL);
	Py_DecRef(next);
	next = made ? PyObject_Type(made) : NULL;
	PyErr_Clear();
	Py_DecRef(made);
	return next;
}

/* Follows the path; *holder is the object of the last step (both new references). */
static PyObject *follow(PyObject *module, const char *path, PyObject **holder, const char **last)
{
	PyObject *o = module;

	*holder = NULL;
	Py_IncRef(o);
	while (o && *path) {
		size_t n = strcspn(path, ".");

		Py_DecRef(*holder);
		*holder = o;
		*last = path;
		o = step(o, path, n);
		path += n + (path[n] == '.');
	}
	return o;
}

static int patch_codec(int id, PyObject *module)
{
	const char *last = "";
	PyObject *holder, *f = follow(module, codecs[id].path, &holder, &last);
	int r = -ENOENT;

	if (f && py_is(f, &PyCFunction_Type)) {
		r = exchange(id, of_function(f));
	} else if (f) {
		PyMethodDef **at = of_cython(f, last);

		codecs[id].is_method = !at;
		r = exchange(id, at ? at : of_method(f, holder, last));
	}
	Py_DecRef(f);
	Py_DecRef(holder);
	PyErr_Clear();
	return r;
}

int patch_codecs(PyObject *module, const char *name)
{
	int r = -ENOENT;

	for (int i = 0; i < CREMA_CODECS; i++)
		if (!strcmp(codecs[i].module, name) && !patch_codec(i, module))
			r = 0;
	return r;
}
