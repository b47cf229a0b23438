/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_xrootd.c - requests of XRootD's Python client. XrdCl's own threads send and receive them on
 * one socket for all tasks, so only the request shows its owner: the methods of File and FileSystem
 * are replaced in their classes, and a callback is replaced by one that counts first.
 *
 * A data response is 8 bytes of header and the data, and 16 bytes more for each chunk of a vector
 * read. The task gets this much; the second header of a read that ends early, errors, logins, opens
 * and the like stay unattributed. The client does not report the sizes of requests: what a task
 * sends is unknown. The client splits lines and copies into requests itself: what the task receives
 * is unknown, too, and for copies what it reads and writes, in the client's threads.
 *
 * Each request is announced, also those without a task: what XrdCl's threads request beyond that is
 * that of its other users (xrootd.h).
 *
 * Plug-ins of the client use other protocols (https, davs, s3) in threads of their own. Their
 * responses have no such headers, and what they request is not what was asked for: XrdClHttp begins
 * with all that is left of the file, and serves later reads from that. So what the task received is
 * unknown, and no request is counted.
 */
#include <errno.h>
#include <string.h>

#include "shim/count/byte_sample.h"
#include "shim/count/request.h"
#include "shim/count/server.h"
#include "shim/count/task.h"
#include "shim/count/url.h"
#include "shim/count/xrootd.h"
#include "shim/libc/sys.h"
#include "shim/python/patch.h"
#include "shim/python/py_xrootd_file.h"
#include "shim/python/py_xrootd_methods.h"

#define CAPSULE "crema.request"
#define ARGS_MAX 60
#define ANSWER_HEADER_BYTES 8
#define CHUNK_HEADER_BYTES 16

enum method {
#define X(class, name, callback, kind) class##_##name,
	METHODS
#undef X
		METHOD_COUNT
};

static const struct {
	const char *class, *name;
	Py_ssize_t callback;
	enum kind kind;
} methods[METHOD_COUNT] = {
#define X(class, name, callback, kind) [class##_##name] = {#class, #name, callback, kind},
	METHODS
#undef X
};

static PyObject *originals[METHOD_COUNT];
static PyObject *n_ok, *n_size;

/* One request under way. */
struct ask {
	uint64_t task, start;
	uint32_t method, chunks;
	uint32_t stack; /* that requests it (byte_sample.h) */
	struct xrootd_file of;
	uint32_t announced; /* xrootd.h */
};

static int is_ok(PyObject *status)
{
	PyObject *ok = py_attr(status, n_ok);
	int r = ok && PyObject_IsTrue(ok) == 1;

	PyErr_Clear();
	Py_DecRef(ok);
	return r;
}

static uint64_t data_bytes(PyObject *response, enum kind kind)
{
	PyObject *size = kind == READS_CHUNKS ? py_attr(response, n_size) : NULL;
	long long n = size ? PyLong_AsLongLong(size) : kind == READS ? PyObject_Size(response) : 0;

	PyErr_Clear();
	Py_DecRef(size);
	return n > 0 ? (uint64_t)n : 0;
}

static void count_received(const struct ask *a, uint64_t bytes)
{
	struct byte_request of = {a->task, a->stack};
	struct crema_thread *t = thread_self();

	request_received(a->task, bytes);
	if (t)
		byte_sample(t, CREMA_LINES_B_received, bytes, &of);
}

/* The response to a read has arrived. */
static void count_answer(const struct ask *a, uint64_t latency_ns, PyObject *status,
			 PyObject *response)
{
	struct server_request r = {.task = a->task,
				   .scheme = a->of.scheme,
				   .address = a->of.address,
				   .url = a->of.url,
				   .latency_ns = latency_ns};
	enum kind kind = methods[a->method].kind;

	r.failed = !is_ok(status);
	if (!xrootd_file_speaks_root(&a->of)) {
		if (!r.failed)
			task_counts_unknown(a->task, CREMA_COUNT_BIT(network_read_bytes));
		return;
	}
	if (!r.failed && response && response != PY_NONE) {
		r.read_bytes = data_bytes(response, kind);
		count_received(a, r.read_bytes + ANSWER_HEADER_BYTES +
					  (uint64_t)a->chunks * CHUNK_HEADER_BYTES);
	}
	server_count(&r);
}

static void ends(const struct ask *a, PyObject *status, PyObject *response)
{
	uint64_t latency_ns = ticks_ns(ticks() - a->start);
	enum kind kind = methods[a->method].kind;

	if (!a->task)
		return;
	request_end(a->task);
	if (status && (kind == READS || kind == READS_CHUNKS))
		count_answer(a, latency_ns, status, response);
}

/* A request with a callback ends once: by its callback, by its refusal, or when both are dropped.
 * It is a capsule: the task's name + 1, and as its context what was announced until it ends.
 * Returns 1 the first time. */
static int first_end(PyObject *capsule)
{
	uint32_t announced = (uint32_t)(uintptr_t)PyCapsule_GetContext(capsule);

	if (!announced)
		return 0;
	PyCapsule_SetContext(capsule, NULL);
	xrootd_answered(announced);
	return 1;
}

static uint64_t task_of(PyObject *capsule)
{
	return (uint64_t)(uintptr_t)PyCapsule_GetPointer(capsule, CAPSULE) - 1;
}

static void capsule_free(PyObject *capsule)
{
	if (first_end(capsule) && shim_armed())
		request_end(task_of(capsule));
}

static uint64_t number_at(PyObject *tuple, Py_ssize_t i)
{
	return PyLong_AsUnsignedLongLong(PyTuple_GetItem(tuple, i));
}

/* self = (capsule with the task's name, start, method and chunks, server, url, callback) */
static PyObject *answered(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			  PyObject *kwnames)
{
	PyObject *capsule = PyTuple_GetItem(self, 0);
	PY_TURN;

	if (first_end(capsule) && shim_armed()) {
		uint64_t what = number_at(self, 2), server = number_at(self, 3);
		struct ask a = {
			task_of(capsule),
			number_at(self, 1),
			(uint32_t)what & 0xff,
			(uint32_t)(what >> 32),
			(uint32_t)what >> 8,
			{(uint32_t)server, (uint32_t)(server >> 32), (uint32_t)number_at(self, 4)},
			0};

		ends(&a, nargs > 0 ? args[0] : NULL, nargs > 1 ? args[1] : NULL);
	}
	return py_original(PyTuple_GetItem(self, 5), args, nargs, kwnames);
}

static PyMethodDef answered_def = {"callback", (void *)answered, METH_FASTCALL | METH_KEYWORDS,
				   NULL};

/* A callback that counts and calls `callback`; NULL without an exception if none can be made. */
static PyObject *counting_callback(const struct ask *a, PyObject *callback)
{
	PyObject *item[6] = {
		PyCapsule_New((void *)(uintptr_t)(a->task + 1), CAPSULE, capsule_free),
		PyLong_FromUnsignedLongLong(a->start),
		PyLong_FromUnsignedLongLong(a->method | a->stack << 8 | (uint64_t)a->chunks << 32),
		PyLong_FromUnsignedLongLong(a->of.scheme | (uint64_t)a->of.address << 32),
		PyLong_FromUnsignedLongLong(a->of.url),
		callback};
	PyObject *self = PyTuple_New(6), *r = NULL;
	int whole = self != NULL;

	if (item[0])
		PyCapsule_SetContext(item[0], (void *)(uintptr_t)a->announced);
	Py_IncRef(callback);
	for (int i = 0; i < 6; i++) {
		whole = whole && item[i];
		if (self && item[i])
			PyTuple_SetItem(self, i, item[i]);
		else
			Py_DecRef(item[i]);
	}
	if (whole)
		r = py_builtin(&answered_def, self, "crema");
	if (!r && item[0] && self)
		PyCapsule_SetContext(item[0], NULL); /* it has not begun */
	PyErr_Clear();
	Py_DecRef(self);
	return r;
}

static PyObject *capsule_of(PyObject *callback)
{
	return PyTuple_GetItem(PyCFunction_GetSelf(callback), 0);
}

/* Its callback never runs when the request was refused at once. */
static PyObject *with_callback(const struct ask *a, PyObject **callback, PyObject *const *all,
			       Py_ssize_t nargs, PyObject *kwnames)
{
	PyObject *counting = counting_callback(a, *callback), *r, *capsule;
	struct py_error error;

	if (!counting) {
		xrootd_answered(a->announced);
		return py_original(originals[a->method], all, nargs, kwnames);
	}
	*callback = counting;
	request_begin(a->task);
	r = py_original(originals[a->method], all, nargs, kwnames);
	py_error_save(&error);
	capsule = capsule_of(counting);
	if ((!r || !is_ok(r)) && first_end(capsule))
		ends(a, r, NULL);
	PyErr_Clear();
	Py_DecRef(counting);
	py_error_restore(&error);
	return r;
}

static PyObject *without_callback(const struct ask *a, PyObject *const *all, Py_ssize_t nargs,
				  PyObject *kwnames)
{
	struct py_error error;
	PyObject *r, *status = NULL, *response = NULL;

	request_begin(a->task);
	r = py_original(originals[a->method], all, nargs, kwnames);
	py_error_save(&error);
	xrootd_answered(a->announced);
	if (r && py_is(r, &PyTuple_Type) && PyTuple_Size(r) == 2) {
		status = PyTuple_GetItem(r, 0);
		response = PyTuple_GetItem(r, 1);
	}
	ends(a, status, response);
	PyErr_Clear();
	py_error_restore(&error);
	return r;
}

/* Index of an argument in all[] (self first): by its name, else its position; 0: it is not
 * given. */
static Py_ssize_t argument(const char *name, Py_ssize_t position, Py_ssize_t nargs,
			   PyObject *kwnames)
{
	Py_ssize_t n = kwnames ? PyTuple_Size(kwnames) : 0;

	for (Py_ssize_t i = 0; i < n; i++) {
		const char *text = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(kwnames, i), NULL);

		if (text && !strcmp(text, name))
			return nargs + i + 1;
	}
	PyErr_Clear();
	return position < nargs ? position + 1 : 0;
}

static uint32_t chunks_of(PyObject *const *all, Py_ssize_t nargs, PyObject *kwnames)
{
	Py_ssize_t at = argument("chunks", 0, nargs, kwnames);
	Py_ssize_t n = at ? PyObject_Size(all[at]) : 0;

	PyErr_Clear();
	return n > 0 ? (uint32_t)n : 0;
}

/* An argument as a number, 0 if it was not given. Returns 1 unless it is something else. */
static int take_number(PyObject *object, uint64_t *n)
{
	*n = object ? PyLong_AsUnsignedLongLong(object) : 0;
	if (!PyErr_Occurred())
		return 1;
	PyErr_Clear();
	return 0;
}

/* Before it is sent: what the client will request on the wire. */
static uint32_t announce(const struct ask *a, PyObject *const *all, Py_ssize_t nargs,
			 PyObject *kwnames)
{
	enum kind kind = methods[a->method].kind;
	Py_ssize_t at = argument(kind == READS_CHUNKS ? "chunks" : "offset", 0, nargs, kwnames);
	PyObject *first = at ? all[at] : NULL, *second = NULL;
	uint64_t offset, bytes;

	if (a->method == File_write)
		return xrootd_announce(XROOTD_WRITES, 0, 0);
	if (kind == COPIES)
		return xrootd_announce(XROOTD_COPIES, 0, 0);
	if (kind == OPENS || kind == ASKS)
		return xrootd_announce(XROOTD_OTHER, 0, 0);
	if (kind == READS) {
		at = argument("size", 1, nargs, kwnames);
		second = at ? all[at] : NULL;
	} else if (kind == READS_CHUNKS && first) {
		first = PyList_GetItem(first, 0);
		second = first ? PyTuple_GetItem(first, 1) : NULL;
		first = second ? PyTuple_GetItem(first, 0) : NULL;
		PyErr_Clear();
	}
	if (kind == READS_LINES || (kind == READS_CHUNKS && !second) ||
	    !take_number(first, &offset) || !take_number(second, &bytes))
		return xrootd_announce(XROOTD_READS, 0, 0);
	return xrootd_announce(kind == READS ? XROOTD_READ : XROOTD_VECTOR, offset, bytes);
}

/* 1 for a File on this machine, which needs no server; for an open the argument decides. Sets what
 * is known of the server. */
static int is_local(int method, PyObject *const *all, Py_ssize_t nargs, PyObject *kwnames,
		    struct xrootd_file *of)
{
	Py_ssize_t at = argument("url", method == File_openusingtemplate, nargs, kwnames);
	const char *url;

	if (methods[method].kind == ASKS && !strcmp(methods[method].class, "FileSystem"))
		xrootd_filesystem_get(all[0], of);
	if (strcmp(methods[method].class, "File"))
		return 0;
	if (methods[method].kind != OPENS || !at || !py_is(all[at], &PyUnicode_Type))
		return !xrootd_file_get(all[0], of);
	url = PyUnicode_AsUTF8AndSize(all[at], NULL);
	PyErr_Clear();
	if (url && (!strstr(url, "://") || !strncmp(url, "file:", 5)))
		return 1;
	of->url = url ? url_id(url, strlen(url)) : 0;
	of->scheme = url ? xrootd_scheme(url) : 0;
	return 0;
}

/* While it waits in there, the agent can see for which URL. */
static PyObject *asked(const struct ask *a, PyObject **all, Py_ssize_t nargs, PyObject *kwnames)
{
	struct crema_thread *t = thread_self();
	PyObject *r;

	if (t)
		STORE(&t->about, a->of.url);
	r = without_callback(a, all, nargs, kwnames);
	if (t)
		STORE(&t->about, 0);
	return r;
}

static void mark_unknown(const struct ask *a)
{
	static const uint64_t counts[] = {
		[READS_LINES] = CREMA_COUNT_BIT(network_read_bytes),
		[COPIES] = CREMA_COUNT_BIT(network_read_bytes) | CREMA_COUNT_BIT(read_calls) |
			   CREMA_COUNT_BIT(read_bytes) | CREMA_COUNT_BIT(write_calls) |
			   CREMA_COUNT_BIT(write_bytes) | CREMA_COUNT_BIT(storage_read_bytes) |
			   CREMA_COUNT_BIT(storage_write_bytes),
		[ASKS] = 0,
	};
	uint64_t unknown = counts[methods[a->method].kind] | CREMA_COUNT_BIT(network_write_bytes);

	if (xrootd_file_has_plugin(&a->of)) {
		unknown |= CREMA_COUNT_BIT(network_read_bytes);
		shim_note("XRootD's client reads another protocol (https, davs, s3) by a plug-in: "
			  "network bytes of tasks that use it are unknown, and its requests are "
			  "not counted");
	}
	task_counts_unknown(a->task, unknown);
}

/* all[0] is the File or FileSystem, then come the arguments. */
static PyObject *ask(int method, PyObject **all, Py_ssize_t nargs, PyObject *kwnames)
{
	enum kind kind = methods[method].kind;
	struct ask a = {.method = (uint32_t)method};
	Py_ssize_t at;
	int local;

	if (shim_armed())
		a.task = pool_current();
	local = a.task && is_local(method, all, nargs, kwnames, &a.of);
	if (kind == OPENS)
		xrootd_file_changes(all[0]);
	if (!shim_armed() || local)
		return py_original(originals[method], all, nargs + 1, kwnames);
	if (a.task) {
		mark_unknown(&a);
		a.stack = kind == READS || kind == READS_CHUNKS ? pool_stack() : 0;
	}
	if (kind == READS_CHUNKS)
		a.chunks = chunks_of(all, nargs, kwnames);
	at = argument("callback", methods[method].callback, nargs, kwnames);
	a.announced = announce(&a, all, nargs, kwnames);
	a.start = ticks();
	if (at && PyCallable_Check(all[at]))
		return with_callback(&a, &all[at], all, nargs + 1, kwnames);
	return asked(&a, all, nargs + 1, kwnames);
}

static PyObject *take(int method, PyObject *self, PyObject *const *args, Py_ssize_t nargs,
		      PyObject *kwnames)
{
	PyObject *all[ARGS_MAX + 1] = {self};
	Py_ssize_t n = nargs + (kwnames ? PyTuple_Size(kwnames) : 0);
	PY_TURN;

	if (n > ARGS_MAX) /* more than any of them takes: the original reports that */
		n = nargs = ARGS_MAX, kwnames = NULL;
	memcpy(all + 1, args, (size_t)n * sizeof(*args));
	return ask(method, all, nargs, kwnames);
}

#define X(class, name, callback, kind)                                                             \
	static PyObject *class##_##name##_(PyObject *self, PyObject *const *args,                  \
					   Py_ssize_t nargs, PyObject *kwnames)                    \
	{                                                                                          \
		return take(class##_##name, self, args, nargs, kwnames);                           \
	}
METHODS
#undef X

static PyMethodDef defs[METHOD_COUNT] = {
#define X(class, name, callback, kind)                                                             \
	[class##_##name] = {#name, (void *)class##_##name##_, METH_FASTCALL | METH_KEYWORDS, NULL},
	METHODS
#undef X
};

static int replace(int method, PyObject *module)
{
	PyObject *class = py_attr_string(module, methods[method].class), *d, *doc;
	int r = -ENOENT;

	originals[method] = class ? py_attr_string(class, methods[method].name) : NULL;
	if (originals[method]) {
		doc = py_attr_string(originals[method], "__doc__"); /* kept by the original */
		if (doc && py_is(doc, &PyUnicode_Type))
			defs[method].ml_doc = PyUnicode_AsUTF8AndSize(doc, NULL);
		Py_DecRef(doc);
		d = PyDescr_NewMethod(class, &defs[method]);
		if (d && !PyObject_SetAttrString(class, methods[method].name, d))
			r = 0;
		Py_DecRef(d);
	}
	PyErr_Clear();
	Py_DecRef(class);
	return r;
}

int patch_xrootd(PyObject *module)
{
	int r = 0;

	n_ok = PyUnicode_InternFromString("ok");
	n_size = PyUnicode_InternFromString("size");
	if (!n_ok || !n_size || !xrootd_file_ready())
		return -ENOENT;
	/* An older client lacks some of them; without the reads nothing is counted. */
	for (int i = 0; i < METHOD_COUNT; i++)
		if (replace(i, module) &&
		    (methods[i].kind == READS || methods[i].kind == READS_CHUNKS))
			r = -ENOENT;
	return r;
}
