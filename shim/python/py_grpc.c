/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_grpc.c - calls of gRPC's Python client, as Triton's is (coffea's triton_wrapper). The threads
 * that wait for answers take turns at one socket for all tasks, so only the call shows its owner:
 * its state is made by the task, and each event of the call passes through one function.
 *
 * From its beginning to its status it is a request (request.h). It counts by server: latency, the
 * bytes of its messages as they were before gRPC and HTTP/2 framed them, and as failed if the
 * status is not OK. What the task received and sent on the wire is unknown: frames of several calls
 * share headers, acknowledgements and pings.
 *
 * Calls of gRPC's asyncio only make the task's network bytes unknown.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/count/net.h"
#include "shim/count/request.h"
#include "shim/count/server.h"
#include "shim/count/task.h"
#include "shim/libc/sys.h"
#include "shim/python/patch.h"

#define CAPSULE "crema.rpc"

static PyObject *make_state, *handle_event, *deserialize, *make_aio_call;
static PyObject *n_crema, *n_message_bytes, *n_code, *n_target, *status_ok;
/* Of the messages in the event that this thread handles. */
static __thread uint64_t message_bytes;

/* A call under way is a capsule in its state: the task's name, with the tick of its beginning as
 * the context; 0: it has ended. */
static int first_end(PyObject *capsule, struct server_request *r)
{
	uint64_t start = (uintptr_t)PyCapsule_GetContext(capsule);

	if (!start)
		return 0;
	PyCapsule_SetContext(capsule, NULL);
	r->task = (uintptr_t)PyCapsule_GetPointer(capsule, CAPSULE);
	r->latency_ns = ticks_ns(ticks() - start);
	request_end(r->task);
	return 1;
}

/* A call that never ended is not counted by server. */
static void capsule_free(PyObject *capsule)
{
	struct server_request r;

	if (shim_armed())
		first_end(capsule, &r);
}

static void begins(PyObject *state)
{
	uint64_t task = pool_current();
	PyObject *capsule =
		task ? PyCapsule_New((void *)(uintptr_t)task, CAPSULE, capsule_free) : NULL;

	if (task)
		task_counts_unknown(task, CREMA_NETWORK_COUNTS);
	if (capsule) {
		request_begin(task);
		PyCapsule_SetContext(capsule, (void *)(uintptr_t)ticks());
		PyObject_SetAttrString(state, "_crema", capsule);
	}
	PyErr_Clear();
	Py_DecRef(capsule);
}

/* _RPCState(due, ...): without due events it only describes an error. */
static PyObject *make_state_(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *r = py_call_original(make_state, self, args, kwargs);
	PY_TURN;

	if (r && shim_armed() && PyTuple_Size(args) > 0 &&
	    PyObject_Size(PyTuple_GetItem(args, 0)) > 0)
		begins(self);
	if (r)
		PyErr_Clear();
	return r;
}

static uint64_t number(PyObject *value)
{
	uint64_t n = value ? PyLong_AsUnsignedLongLong(value) : 0;

	if (PyErr_Occurred()) {
		PyErr_Clear();
		n = 0;
	}
	Py_DecRef(value);
	return n;
}

/* The address in a name of gRPC: "host:port", "dns:///host:port", "ipv4:host:port". */
static uint32_t address_of(PyObject *state)
{
	static const char *const kinds[] = {"dns:", "ipv4:", "ipv6:"};
	PyObject *target = py_attr(state, n_target);
	const char *text = NULL, *slash;
	uint32_t id = 0;

	if (target && py_is(target, &PyUnicode_Type))
		text = PyUnicode_AsUTF8AndSize(target, NULL);
	for (size_t i = 0; text && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strncmp(text, kinds[i], strlen(kinds[i])))
			text += strlen(kinds[i]);
	slash = text && strncmp(text, "unix:", 5) ? strrchr(text, '/') : NULL;
	text = slash ? slash + 1 : text;
	if (text)
		id = arena_bulk_id(text, (uint32_t)strlen(text));
	PyErr_Clear();
	Py_DecRef(target);
	return id;
}

static void ends(PyObject *state, PyObject *capsule, PyObject *code, uint64_t bytes)
{
	struct server_request r = {.scheme = arena_id("grpc", 4), .read_bytes = bytes};

	r.failed = code != status_ok;
	r.address = address_of(state);
	if (first_end(capsule, &r))
		server_count(&r);
}

static void count_event(PyObject *state, uint64_t bytes)
{
	PyObject *capsule = py_attr(state, n_crema), *code = py_attr(state, n_code), *sum;

	if (capsule && PyCapsule_GetContext(capsule)) {
		bytes += number(py_attr(state, n_message_bytes));
		sum = PyLong_FromUnsignedLongLong(bytes);
		if (code && code != PY_NONE)
			ends(state, capsule, code, bytes);
		else if (sum)
			PyObject_SetAttrString(state, "_crema_message_bytes", sum);
		Py_DecRef(sum);
	}
	PyErr_Clear();
	Py_DecRef(code);
	Py_DecRef(capsule);
}

/* _handle_event(event, state, deserializer) */
static PyObject *handle_event_(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kw)
{
	struct py_error error;
	PyObject *r;
	PY_TURN;

	(void)self;
	message_bytes = 0;
	r = py_original(handle_event, args, n, kw);
	if (shim_armed() && n > 1) {
		py_error_save(&error);
		count_event(args[1], message_bytes);
		py_error_restore(&error);
	}
	return r;
}

/* deserialize(message, deserializer) */
static PyObject *deserialize_(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kw)
{
	PY_TURN;

	(void)self;
	if (n > 0 && py_is(args[0], &PyBytes_Type))
		message_bytes += (uint64_t)PyObject_Size(args[0]);
	return py_original(deserialize, args, n, kw);
}

static PyObject *make_aio_call_(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *r = py_call_original(make_aio_call, self, args, kwargs);
	PY_TURN;

	if (r && shim_armed())
		task_counts_unknown(pool_current(), CREMA_NETWORK_COUNTS);
	return r;
}

/* HTTP/2's first bytes tell its connections apart (http2.h), but not behind a proxy. */
static int uses_proxy(void)
{
	static const char *const names[] = {"grpc_proxy", "https_proxy", "http_proxy"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (getenv(names[i]) && *getenv(names[i]))
			return 1;
	return 0;
}

static int find_ok(PyObject *module)
{
	PyObject *grpc = py_attr_string(module, "grpc");
	PyObject *codes = grpc ? py_attr_string(grpc, "StatusCode") : NULL;

	status_ok = codes ? py_attr_string(codes, "OK") : NULL;
	n_crema = PyUnicode_InternFromString("_crema");
	n_message_bytes = PyUnicode_InternFromString("_crema_message_bytes");
	n_code = PyUnicode_InternFromString("code");
	n_target = PyUnicode_InternFromString("target");
	PyErr_Clear();
	Py_DecRef(codes);
	Py_DecRef(grpc);
	return status_ok && n_crema && n_message_bytes && n_code && n_target;
}

int patch_grpc(PyObject *module)
{
	static PyMethodDef state = {"__init__", (void *)make_state_, METH_VARARGS | METH_KEYWORDS,
				    NULL};
	static PyMethodDef event = {"_handle_event", (void *)handle_event_,
				    METH_FASTCALL | METH_KEYWORDS, NULL};
	static PyMethodDef message = {"deserialize", (void *)deserialize_,
				      METH_FASTCALL | METH_KEYWORDS, NULL};
	PyObject *common = py_attr_string(module, "_common");
	int r = -ENOENT;

	if (common && find_ok(module) &&
	    !py_replace_function(common, "grpc", &message, &deserialize) &&
	    !py_replace_function(module, "grpc", &event, &handle_event))
		r = py_replace_in(module, "_RPCState", &state, &make_state);
	Py_DecRef(common);
	if (r)
		return r;
	if (uses_proxy())
		tasks_cannot_count(CREMA_NETWORK_COUNTS, 0);
	net_grpc_tells();
	shim_note("gRPC is loaded: its threads serve several tasks, what a task that calls it "
		  "receives and sends is unknown");
	return 0;
}

int patch_grpc_aio(PyObject *module)
{
	static PyMethodDef call = {"__init__", (void *)make_aio_call_, METH_VARARGS | METH_KEYWORDS,
				   NULL};

	return py_replace_in(module, "Call", &call, &make_aio_call);
}
