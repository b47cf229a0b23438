/* SPDX-License-Identifier: BSD-3-Clause */
/* py_processor.c - which processor a chunk is for. */
#include "shim/python/py_processor.h"

#include <string.h>

#include "shim/shim.h"

#define NAMES 16

static PyObject *executor_module, *processor_class;

/* Class names of processors by the hash of their pickle: none is loaded twice to find its name. */
static struct {
	uint64_t hash;
	char text[64];
} names[NAMES];
static uint32_t next_name;

void processor_module(PyObject *module)
{
	Py_IncRef(module);
	executor_module = module;
	processor_class = py_attr_string(module, "ProcessorABC");
}

const char *processor_name(uint64_t hash)
{
	for (int i = 0; i < NAMES; i++)
		if (names[i].hash == hash && names[i].text[0])
			return names[i].text;
	return NULL;
}

static void name_keep(uint64_t hash, PyObject *processor)
{
	PyObject *type = NULL, *name = py_attr_string(processor, "__name__");
	const char *text;
	uint32_t at = next_name++ % NAMES;

	if (!name) {
		type = PyObject_Type(processor);
		name = py_attr_string(type, "__name__");
	}
	text = name && py_is(name, &PyUnicode_Type) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
	names[at].hash = hash;
	memset(names[at].text, 0, sizeof(names[at].text));
	if (text)
		strncpy(names[at].text, text, sizeof(names[at].text) - 1);
	PyErr_Clear();
	Py_DecRef(name);
	Py_DecRef(type);
}

static PyObject *call_in(const char *module, const char *function, PyObject *arg)
{
	PyObject *m = py_attr_string(executor_module, module), *f = py_attr_string(m, function);
	PyObject *r = f && arg ? py_original(f, &arg, 1, NULL) : NULL;

	PyErr_Clear();
	Py_DecRef(f);
	Py_DecRef(m);
	return r;
}

PyObject *processor_load(PyObject *given, uint64_t hash)
{
	PyObject *plain, *o;

	if (!processor_class || PyObject_IsInstance(given, processor_class) == 1) {
		name_keep(hash, given);
		return NULL;
	}
	plain = call_in("lz4f", "decompress", given);
	o = call_in("cloudpickle", "loads", plain);
	Py_DecRef(plain);
	name_keep(hash, o ? o : given);
	if (o && PyObject_IsInstance(o, processor_class) != 1) {
		Py_DecRef(o); /* a function: not every version accepts one as it is */
		o = NULL;
	}
	PyErr_Clear();
	return o;
}

uint64_t processor_hash(PyObject *processor)
{
	PyObject *type;
	Py_buffer view;
	uint64_t h;

	if (!PyObject_GetBuffer(processor, &view, 0 /* PyBUF_SIMPLE */)) {
		h = arena_hash(view.buf, (uint32_t)view.len);
		PyBuffer_Release(&view);
		return h;
	}
	PyErr_Clear();
	type = PyObject_Type(processor);
	h = (uint64_t)(uintptr_t)type; /* sent as it is: the same one within this process */
	Py_DecRef(type);
	return h;
}
