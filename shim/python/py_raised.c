/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_raised.c - the exception that ended a task: its type, the first line of its text, its cause.
 *
 * None of the exception's own code runs: the type's name comes from the C API, BaseException's own
 * descriptor reads `args`, and only an exact str is taken from there. No reference is kept. A
 * worker remembers TEXTS different texts; for further ones only the type is reported.
 */
#include <string.h>

#include "shim/count/cut_text.h"
#include "shim/count/task.h"
#include "shim/python/patch.h"

#define TEXT_BYTES 200
#define TEXTS 64
#define CAUSES 16 /* a chain may be a circle */

static PyObject *base, *os_error, *args_of; /* BaseException, OSError, BaseException.args */
static uint64_t seen[TEXTS];
static unsigned int seen_n;

struct line {
	char text[TEXT_BYTES];
	size_t n;
};

static int ready(void)
{
	PyObject *builtins = PyEval_GetBuiltins();

	if (!base) {
		base = PyDict_GetItemString(builtins, "BaseException");
		os_error = PyDict_GetItemString(builtins, "OSError");
		Py_IncRef(base);
		Py_IncRef(os_error);
		args_of = base ? py_attr_string(base, "args") : NULL;
	}
	return base && os_error && args_of;
}

static int is_a(PyObject *o, PyObject *class)
{
	int yes = o ? PyObject_IsInstance(o, class) == 1 : 0;

	PyErr_Clear();
	return yes;
}

/* Up to the end of the line, without cutting a character. */
static void append(struct line *l, const char *text, size_t n)
{
	const char *end = memchr(text, '\n', n);
	size_t keep = cut_text(text, end ? (size_t)(end - text) : n, sizeof(l->text) - l->n);

	memcpy(l->text + l->n, text, keep);
	l->n += keep;
}

/* Without its module, which only types of C include in their name. */
static void append_type(struct line *l, PyObject *raised)
{
	PyObject *type = PyObject_Type(raised);
	const char *name = type ? PyExceptionClass_Name(type) : NULL;
	const char *dot = name ? strrchr(name, '.') : NULL;

	if (name)
		append(l, dot ? dot + 1 : name, strlen(dot ? dot + 1 : name));
	Py_DecRef(type);
}

/* args[0]; for an OSError(number, text) the text. */
static void append_text(struct line *l, PyObject *raised)
{
	PyObject *args = py_call(args_of, "__get__", raised, NULL), *text = NULL;
	Py_ssize_t n = py_is(args, &PyTuple_Type) ? PyTuple_Size(args) : 0, bytes = 0;
	const char *at = NULL;

	if (n > 0)
		text = PyTuple_GetItem(args, 0);
	if (n > 1 && !py_is(text, &PyUnicode_Type) && is_a(raised, os_error))
		text = PyTuple_GetItem(args, 1);
	if (py_is(text, &PyUnicode_Type))
		at = PyUnicode_AsUTF8AndSize(text, &bytes);
	PyErr_Clear();
	if (at)
		append(l, at, (size_t)bytes);
	Py_DecRef(args);
}

/* 0: it is empty, or one too many. */
static uint32_t keep(const struct line *l)
{
	uint64_t hash = arena_hash(l->text, (uint32_t)l->n);
	unsigned int i = 0;

	while (i < seen_n && seen[i] != hash)
		i++;
	if (!l->n || i == TEXTS)
		return 0;
	if (i == seen_n)
		seen[seen_n++] = hash;
	return arena_bulk_id(l->text, (uint32_t)l->n);
}

/* The first in the chain of causes; NULL: there is none. New reference. */
static PyObject *root_of(PyObject *raised)
{
	PyObject *at = PyException_GetCause(raised), *next = NULL;

	for (int i = 0; at && i < CAUSES && (next = PyException_GetCause(at)); i++) {
		Py_DecRef(at);
		at = next;
	}
	return at;
}

static void describe_cause(struct crema_task *t, PyObject *raised)
{
	struct line l = {.n = 0};
	PyObject *root = root_of(raised);

	if (is_a(root, base)) {
		append_type(&l, root);
		append(&l, ": ", 2);
		append_text(&l, root);
		t->error_cause = keep(&l);
	}
	Py_DecRef(root);
}

void raised_describe(struct crema_task *t, PyObject *raised)
{
	struct line type = {.n = 0}, text = {.n = 0};

	if (!t || !ready() || !is_a(raised, base))
		return;
	append_type(&type, raised);
	append_text(&text, raised);
	t->error_type = arena_bulk_id(type.text, (uint32_t)type.n);
	t->error_text = keep(&text);
	describe_cause(t, raised);
	PyErr_Clear();
}
