/* SPDX-License-Identifier: BSD-3-Clause */
/* py.c - small helpers over CPython's weak symbols. */
#include "shim/python/py.h"

#include <errno.h>
#include <string.h>

#include "shim/count/thread.h"

int py_complete(void)
{
	const void *const all[] = {
#define PY(ret, name, params) (const void *)name,
#define PY_DATA(name) (const void *)&name,
		PY_TABLE
#undef PY
#undef PY_DATA
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!all[i])
			return 0;
	return 1;
}

static void *attached_state(void)
{
	if (PyThreadState_GetUnchecked)
		return PyThreadState_GetUnchecked();
	return _PyThreadState_UncheckedGet ? _PyThreadState_UncheckedGet() : NULL;
}

int py_in_another(void)
{
	void *state = attached_state();

	return state && PyThreadState_GetInterpreter(state) != PyInterpreterState_Main();
}

int py_in_main(void)
{
	void *state = Py_IsInitialized && Py_IsInitialized() ? attached_state() : NULL;

	/* Before 3.12 the attached one may be another thread's. */
	return state && PyGILState_GetThisThreadState && state == PyGILState_GetThisThreadState() &&
	       PyThreadState_GetInterpreter &&
	       PyThreadState_GetInterpreter(state) == PyInterpreterState_Main();
}

int py_without_gil(void)
{
	uint64_t word = 0;

	/* _Py_DebugOffsets, since 3.13: this, the version, free_threaded. */
	if (_PyRuntime && !memcmp(_PyRuntime, "xdebugpy", 8))
		memcpy(&word, _PyRuntime + 16, sizeof(word));
	return word || (Py_GetVersion && strstr(Py_GetVersion(), "free-threading build"));
}

/* NULL: the GIL is there. */
static PyObject *turns;
static __thread struct py_turn *turn_here;

int py_turns_ready(void)
{
	if (turns || !py_without_gil())
		return 0;
	/* 3.13 had experimental builds, whose frames are unlike those of later ones. */
	if (!PyCriticalSection_Begin || !PyCriticalSection_End || !PyDict_GetItemRef ||
	    !strncmp(Py_GetVersion(), "3.13", 4))
		return -ENOTSUP;
	turns = PyDict_New();
	return turns ? 0 : -ENOTSUP;
}

void py_turn_begin(struct py_turn *t)
{
	t->mine = turns && !turn_here;
	if (t->mine)
		py_turn_resume(t);
}

void py_turn_end(struct py_turn *t)
{
	if (!t->mine)
		return;
	turn_here = NULL;
	PyCriticalSection_End(&t->section);
}

struct py_turn *py_turn_pause(void)
{
	struct py_turn *t = turn_here;

	if (t)
		py_turn_end(t);
	return t;
}

void py_turn_resume(struct py_turn *t)
{
	if (!t)
		return;
	PyCriticalSection_Begin(&t->section, turns);
	turn_here = t;
}

PyObject *py_original(PyObject *f, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
	struct py_turn *t = py_turn_pause();
	PyObject *r = py_vectorcall(f, args, nargs, kwnames);

	py_turn_resume(t);
	return r;
}

PyObject *py_original_call(PyObject *f, PyObject *args, PyObject *kwargs)
{
	struct py_turn *t = py_turn_pause();
	PyObject *r = PyObject_Call(f, args, kwargs);

	py_turn_resume(t);
	return r;
}

PyObject *py_item(PyObject *dict, PyObject *key)
{
	PyObject *item = NULL;

	if (!PyDict_GetItemRef) {
		item = PyDict_GetItem(dict, key);
		Py_IncRef(item);
	} else if (PyDict_GetItemRef(dict, key, &item) < 0) {
		PyErr_Clear();
	}
	return item;
}

PyObject *py_item_string(PyObject *dict, const char *key)
{
	PyObject *name = PyUnicode_FromString(key), *item = name ? py_item(dict, name) : NULL;

	if (!name)
		PyErr_Clear();
	Py_DecRef(name);
	return item;
}

int py_is(PyObject *o, PyObject *type)
{
	PyObject *t;

	if (!o || !type)
		return 0;
	t = PyObject_Type(o);
	Py_DecRef(t);
	return t == type;
}

static PyObject *call_with_tuple(PyObject *f, PyObject *const *args, Py_ssize_t nargs,
				 PyObject *kwnames)
{
	Py_ssize_t nkw = kwnames ? PyTuple_Size(kwnames) : 0;
	PyObject *tuple = PyTuple_New(nargs), *kw = nkw ? PyDict_New() : NULL, *r = NULL;

	if (!tuple || (nkw && !kw))
		goto out;
	for (Py_ssize_t i = 0; i < nargs; i++) {
		Py_IncRef(args[i]);
		PyTuple_SetItem(tuple, i, args[i]);
	}
	for (Py_ssize_t i = 0; i < nkw; i++) {
		const char *name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(kwnames, i), NULL);

		if (!name || PyDict_SetItemString(kw, name, args[nargs + i]))
			goto out;
	}
	r = PyObject_Call(f, tuple, kw);
out:
	Py_DecRef(tuple);
	Py_DecRef(kw);
	return r;
}

PyObject *py_vectorcall(PyObject *f, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
	if (PyObject_Vectorcall)
		return PyObject_Vectorcall(f, args, (size_t)nargs, kwnames);
	return call_with_tuple(f, args, nargs, kwnames);
}

PyObject *py_attr(PyObject *o, PyObject *name)
{
	PyObject *a = o && name ? PyObject_GetAttr(o, name) : NULL;

	if (!a && o)
		PyErr_Clear();
	return a;
}

PyObject *py_attr_string(PyObject *o, const char *name)
{
	PyObject *a = o ? PyObject_GetAttrString(o, name) : NULL;

	if (!a && o)
		PyErr_Clear();
	return a;
}

static int is_imported(PyObject *m)
{
	PyObject *spec = py_attr_string(m, "__spec__");
	PyObject *busy = spec && spec != PY_NONE ? py_attr_string(spec, "_initializing") : NULL;
	int initializing = busy && PyObject_IsTrue(busy) == 1;

	Py_DecRef(busy);
	Py_DecRef(spec);
	return m != PY_NONE && !initializing;
}

PyObject *py_module_of(const char *name, int *is_there)
{
	PyObject *m = py_item_string(PyImport_GetModuleDict(), name);

	*is_there = m != NULL;
	if (!m || is_imported(m))
		return m;
	Py_DecRef(m);
	return NULL;
}

PyObject *py_module(const char *name)
{
	int is_there;

	return py_module_of(name, &is_there);
}

static unsigned text_id(PyObject *o, uint32_t (*arena)(const char *, uint32_t))
{
	PyObject *s;
	const char *text;
	Py_ssize_t n = 0;
	unsigned id = 0;

	if (!o || o == PY_NONE)
		return 0;
	if (py_is(o, &PyUnicode_Type)) {
		text = PyUnicode_AsUTF8AndSize(o, &n);
		if (text)
			return arena(text, (uint32_t)n);
		PyErr_Clear();
		return 0;
	}
	s = PyObject_Str(o);
	text = s ? PyUnicode_AsUTF8AndSize(s, &n) : NULL;
	if (text)
		id = arena(text, (uint32_t)n);
	else
		PyErr_Clear();
	Py_DecRef(s);
	return id;
}

unsigned py_text_id(PyObject *o)
{
	return text_id(o, arena_id);
}

unsigned py_bulk_id(PyObject *o)
{
	return text_id(o, arena_bulk_id);
}

PyObject *py_builtin(PyMethodDef *def, PyObject *self, const char *module)
{
	PyObject *m = PyUnicode_FromString(module);
	PyObject *f = m ? PyCFunction_NewEx(def, self, m) : NULL;

	Py_DecRef(m);
	return f;
}

PyObject *py_call(PyObject *o, const char *method, PyObject *a, PyObject *b)
{
	PyObject *f = py_attr_string(o, method), *r, *const args[] = {a, b};

	r = f ? py_vectorcall(f, args, a ? 1 + !!b : 0, NULL) : NULL;
	Py_DecRef(f);
	return r;
}

PyObject *py_call_index(PyObject *o, const char *method, Py_ssize_t i)
{
	PyObject *n = PyLong_FromUnsignedLongLong((uint64_t)i), *r;

	r = n ? py_call(o, method, n, NULL) : NULL;
	Py_DecRef(n);
	return r;
}

PyObject *py_with_self(PyObject *self, PyObject *args, PyObject *first)
{
	Py_ssize_t n = PyTuple_Size(args);
	PyObject *all = PyTuple_New(n + 1);

	if (!all)
		return NULL;
	Py_IncRef(self);
	PyTuple_SetItem(all, 0, self);
	for (Py_ssize_t i = 0; i < n; i++) {
		PyObject *o = i == 0 && first ? first : PyTuple_GetItem(args, i);

		Py_IncRef(o);
		PyTuple_SetItem(all, i + 1, o);
	}
	return all;
}

void py_error_save(struct py_error *e)
{
	PyErr_Fetch(&e->type, &e->value, &e->trace);
}

void py_error_restore(struct py_error *e)
{
	PyErr_Restore(e->type, e->value, e->trace);
}

void py_thread_tell(void)
{
	struct crema_thread *t = thread_self();

	if (t)
		STORE(&t->python, (uintptr_t)PyGILState_GetThisThreadState());
}

PyObject *py_call_original(PyObject *original, PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *all = py_with_self(self, args, NULL);
	PyObject *r = all ? py_original_call(original, all, kwargs) : NULL;

	Py_DecRef(all);
	return r;
}

int py_replace(PyObject *class, PyMethodDef *def, PyObject **original)
{
	PyObject *d;

	*original = class ? py_attr_string(class, def->ml_name) : NULL;
	if (!*original) {
		PyErr_Clear();
		return -ENOENT;
	}
	d = PyDescr_NewMethod(class, def);
	if (!d || PyObject_SetAttrString(class, def->ml_name, d)) {
		PyErr_Clear();
		Py_DecRef(*original);
		*original = NULL;
	}
	Py_DecRef(d);
	return *original ? 0 : -ENOENT;
}

int py_replace_function(PyObject *module, const char *name, PyMethodDef *def, PyObject **original)
{
	PyObject *f;
	int r = -ENOENT;

	*original = py_attr_string(module, def->ml_name);
	f = *original ? py_builtin(def, NULL, name) : NULL;
	if (f && !PyObject_SetAttrString(module, def->ml_name, f))
		r = 0;
	PyErr_Clear();
	Py_DecRef(f);
	return r;
}

int py_replace_in(PyObject *module, const char *class, PyMethodDef *def, PyObject **original)
{
	PyObject *of = py_attr_string(module, class);
	int r = py_replace(of, def, original);

	PyErr_Clear();
	Py_DecRef(of);
	return r;
}
