/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_found.c - what roastcoffea's decorators have measured of a chunk and put into the processor's
 * output:
 *
 *	"__roastcoffea_metrics__": [{"duration": s, "mem_before_mb": MiB, "mem_after_mb": MiB,
 *		"timing": {name: s}, "memory": {name: MiB more}, "bytes": {name: requested bytes}}]
 *
 * and, according to its documentation, "sections": [{"section_name", "time_delta"}],
 * "memory_sections": [{"section_name", "memory_start_gb", "memory_end_gb"}] and "custom_metrics":
 * {name: number}.
 *
 * It is read, not changed; what has another shape is left out.
 */
#include <string.h>

#include "shim/count/section.h"
#include "shim/python/patch.h"

enum { MOST_CHUNKS = 4, MOST_ITEMS = 64 };
#define MIB 1048576.0
#define GB 1e9

typedef void take_fn(const struct crema_task *t, const char *name, size_t bytes, double value);

static void take_time(const struct crema_task *t, const char *name, size_t bytes, double seconds)
{
	if (seconds >= 0 && seconds < 1e9)
		section_found(t, name, bytes, (uint64_t)(seconds * 1e9 + 0.5));
}

static void take_memory(const struct crema_task *t, const char *name, size_t bytes, double mib)
{
	section_found_memory(t, name, bytes, mib * MIB);
}

static void take_bytes(const struct crema_task *t, const char *name, size_t bytes, double value)
{
	section_found_value(t, name, bytes, CREMA_SECTION_BYTES, value);
}

static void take_value(const struct crema_task *t, const char *name, size_t bytes, double value)
{
	section_found_value(t, name, bytes, 0, value);
}

/* A finite number, or NaN. */
static double number_of(PyObject *o)
{
	double d = o && o != PY_NONE ? PyFloat_AsDouble(o) : __builtin_nan("");

	if (PyErr_Occurred()) {
		PyErr_Clear();
		return __builtin_nan("");
	}
	return d;
}

static void take(take_fn *f, const struct crema_task *t, PyObject *name, double value)
{
	Py_ssize_t bytes = 0;
	const char *text =
		py_is(name, &PyUnicode_Type) ? PyUnicode_AsUTF8AndSize(name, &bytes) : NULL;

	if (text && bytes > 0 && value - value == 0)
		f(t, text, (size_t)bytes, value);
	PyErr_Clear();
}

static PyObject *item(PyObject *dict, const char *name)
{
	PyObject *o = PyDict_GetItemString(dict, name);

	PyErr_Clear();
	return o;
}

/* {name: number} */
static void each_of(PyObject *dict, const struct crema_task *t, take_fn *f)
{
	PyObject *i = py_is(dict, &PyDict_Type) ? PyObject_GetIter(dict) : NULL, *name;

	for (int n = 0; i && n < MOST_ITEMS && (name = PyIter_Next(i)); n++) {
		take(f, t, name, number_of(PyDict_GetItem(dict, name)));
		Py_DecRef(name);
	}
	PyErr_Clear();
	Py_DecRef(i);
}

/* [{"section_name": name, ...}]: value - without, in `unit` */
static void each_in(PyObject *list, const struct crema_task *t, take_fn *f, const char *value,
		    const char *without, double unit)
{
	Py_ssize_t n = py_is(list, &PyList_Type) ? PyList_Size(list) : 0;

	for (Py_ssize_t i = 0; i < n && i < MOST_ITEMS; i++) {
		PyObject *one = PyList_GetItem(list, i);

		if (py_is(one, &PyDict_Type))
			take(f, t, item(one, "section_name"),
			     (number_of(item(one, value)) -
			      (without ? number_of(item(one, without)) : 0)) *
				     unit);
	}
}

static void look_at(PyObject *chunk, const struct crema_task *t)
{
	double before = number_of(item(chunk, "mem_before_mb"));
	double after = number_of(item(chunk, "mem_after_mb")),
	       duration = number_of(item(chunk, "duration"));

	if (duration - duration == 0)
		take_time(t, "@track_metrics", 14, duration);
	if (after - before - (after - before) == 0)
		take_memory(t, "@track_metrics", 14, after - before);
	each_of(item(chunk, "timing"), t, take_time);
	each_of(item(chunk, "memory"), t, take_memory);
	each_of(item(chunk, "bytes"), t, take_bytes);
	each_of(item(chunk, "custom_metrics"), t, take_value);
	each_in(item(chunk, "sections"), t, take_time, "time_delta", NULL, 1);
	each_in(item(chunk, "memory_sections"), t, take_memory, "memory_end_gb", "memory_start_gb",
		GB / MIB);
}

void found_describe(const struct crema_task *t, PyObject *out)
{
	PyObject *list = py_is(out, &PyDict_Type) ? item(out, "__roastcoffea_metrics__") : NULL;
	Py_ssize_t n = py_is(list, &PyList_Type) ? PyList_Size(list) : 0;

	for (Py_ssize_t i = 0; i < n && i < MOST_CHUNKS; i++)
		if (py_is(PyList_GetItem(list, i), &PyDict_Type))
			look_at(PyList_GetItem(list, i), t);
	PyErr_Clear();
}
