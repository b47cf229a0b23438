/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_net.c - asyncio transports: a write, which runs in the requester's context, binds the socket
 * to the requester's task, or to none. So what the loop receives or sends later has an owner.
 *
 * run_coroutine_threadsafe() shows native threads that have a loop request something (net.h).
 *
 * What a transport writes while it receives is not a request: TLS answers a change of keys there,
 * in the context that opened the connection. On other loops (uvloop) a transport is not a Python
 * class; there aiohttp's own start of a request binds. httpcore's HTTP/2 connections are marked as
 * shared.
 */
#include <errno.h>

#include "shim/count/net.h"
#include "shim/count/thread.h"
#include "shim/python/patch.h"
#include "shim/shim.h"

enum {
	WRITE,
	WRITELINES,
	READ_READY,
	CALL_SOON,
	SET_PARAMS,
	HTTP2_ASYNC,
	HTTP2_SYNC,
	RUN_COROUTINE,
	METHODS
};

static PyObject *originals[METHODS];
static PyObject *n_sock_fd;
static __thread int receiving;

/* The number that an attribute, or a method without arguments, returns; -1: none. */
static int number(PyObject *value)
{
	long long n = value ? PyLong_AsLongLong(value) : -1;

	PyErr_Clear();
	Py_DecRef(value);
	return n >= 0 && n < INT32_MAX ? (int)n : -1;
}

static PyObject *bind_and_call(int which, PyObject *self, PyObject *data)
{
	PyObject *args[2] = {self, data};
	int fd;
	PY_TURN;

	if (shim_armed()) {
		fd = number(py_attr(self, n_sock_fd));
		if (fd >= 0 && !(receiving && net_is_bound(fd)))
			net_bind(fd, pool_current(), pool_stack());
	}
	return py_original(originals[which], args, 2, NULL);
}

static PyObject *transport_write(PyObject *self, PyObject *data)
{
	return bind_and_call(WRITE, self, data);
}

static PyObject *transport_writelines(PyObject *self, PyObject *data)
{
	return bind_and_call(WRITELINES, self, data);
}

static PyObject *transport_read_ready(PyObject *self, PyObject *unused)
{
	PyObject *r;

	(void)unused;
	receiving++;
	r = py_vectorcall(originals[READ_READY], &self, 1, NULL);
	receiving--;
	return r;
}

/* The descriptor of stream.get_extra_info("socket"); -1: none, without an exception. */
static int socket_of(PyObject *stream)
{
	PyObject *get = py_attr_string(stream, "get_extra_info"), *socket = NULL, *fileno = NULL;
	PyObject *name = get ? PyUnicode_InternFromString("socket") : NULL, *n = NULL;

	if (name)
		socket = py_vectorcall(get, &name, 1, NULL);
	if (socket && socket != PY_NONE)
		fileno = py_attr_string(socket, "fileno");
	if (fileno)
		n = py_vectorcall(fileno, NULL, 0, NULL);
	PyErr_Clear();
	Py_DecRef(fileno);
	Py_DecRef(socket);
	Py_DecRef(name);
	Py_DecRef(get);
	return number(n);
}

/* (self,) + args for a method that takes any. */
static PyObject *call_method(int which, PyObject *self, PyObject *args, PyObject *kwargs)
{
	Py_ssize_t n = PyTuple_Size(args);
	PyObject *all = PyTuple_New(n + 1), *r;

	if (!all)
		return NULL;
	Py_IncRef(self);
	PyTuple_SetItem(all, 0, self);
	for (Py_ssize_t i = 0; i < n; i++) {
		Py_IncRef(PyTuple_GetItem(args, i));
		PyTuple_SetItem(all, i + 1, PyTuple_GetItem(args, i));
	}
	r = py_original_call(originals[which], all, kwargs);
	Py_DecRef(all);
	return r;
}

/* aiohttp calls it in the requester's context before each request. A selector loop's transport
 * binds by its write. */
static PyObject *set_params(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *transport, *plain;
	int fd;
	PY_TURN;

	if (shim_armed()) {
		transport = py_attr_string(self, "transport");
		plain = py_attr(transport, n_sock_fd);
		fd = transport && transport != PY_NONE && !plain ? socket_of(transport) : -1;
		if (fd >= 0)
			net_bind(fd, pool_current(), pool_stack());
		Py_DecRef(plain);
		Py_DecRef(transport);
	}
	return call_method(SET_PARAMS, self, args, kwargs);
}

static PyObject *http2_made(int which, PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *r = call_method(which, self, args, kwargs), *stream;
	int fd;
	PY_TURN;

	if (r && shim_armed()) {
		stream = py_attr_string(self, "_network_stream");
		fd = stream ? socket_of(stream) : -1;
		if (fd >= 0)
			net_mark_shared(fd);
		shim_note(
			fd >= 0 ? "HTTP/2 serves several tasks over one connection: its bytes are "
				  "unattributed"
				: "an HTTP/2 connection could not be marked as shared");
		Py_DecRef(stream);
	}
	return r;
}

static PyObject *http2_async(PyObject *self, PyObject *args, PyObject *kwargs)
{
	return http2_made(HTTP2_ASYNC, self, args, kwargs);
}

static PyObject *http2_sync(PyObject *self, PyObject *args, PyObject *kwargs)
{
	return http2_made(HTTP2_SYNC, self, args, kwargs);
}

/* A task hands work to a loop of another thread: what it requests is for this stack. */
static PyObject *call_soon_threadsafe(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *token, *r;
	struct py_error error;
	PY_TURN;

	token = shim_armed() ? pool_stack_enter() : NULL;
	r = call_method(CALL_SOON, self, args, kwargs);
	if (token) {
		py_error_save(&error);
		pool_stack_leave(token);
		py_error_restore(&error);
	}
	return r;
}

/* As libarrow's threads do to read a file of fsspec's. */
static PyObject *run_coroutine_threadsafe(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PY_TURN;

	(void)self;
	if (shim_armed() && thread_is_native() && !pool_current())
		net_native_asks();
	return py_original_call(originals[RUN_COROUTINE], args, kwargs);
}

static PyMethodDef defs[METHODS] = {
	[WRITE] = {"write", (void *)transport_write, METH_O, NULL},
	[WRITELINES] = {"writelines", (void *)transport_writelines, METH_O, NULL},
	[READ_READY] = {"_read_ready", (void *)transport_read_ready, METH_NOARGS, NULL},
	[CALL_SOON] = {"call_soon_threadsafe", (void *)call_soon_threadsafe,
		       METH_VARARGS | METH_KEYWORDS, NULL},
	[SET_PARAMS] = {"set_response_params", (void *)set_params, METH_VARARGS | METH_KEYWORDS,
			NULL},
	[RUN_COROUTINE] = {"run_coroutine_threadsafe", (void *)run_coroutine_threadsafe,
			   METH_VARARGS | METH_KEYWORDS, NULL},
	[HTTP2_ASYNC] = {"__init__", (void *)http2_async, METH_VARARGS | METH_KEYWORDS, NULL},
	[HTTP2_SYNC] = {"__init__", (void *)http2_sync, METH_VARARGS | METH_KEYWORDS, NULL},
};

static int replace_in(PyObject *module, const char *class_name, int which)
{
	return py_replace_in(module, class_name, &defs[which], &originals[which]);
}

static int names_make(void)
{
	if (!n_sock_fd)
		n_sock_fd = PyUnicode_InternFromString("_sock_fd");
	return n_sock_fd ? 0 : -ENOMEM;
}

int patch_asyncio(PyObject *module)
{
	int r = names_make();

	if (r)
		return r;
	r = replace_in(module, "_SelectorSocketTransport", WRITE);
	/* Before 3.12 it is the base class's, which calls write(). */
	replace_in(module, "_SelectorSocketTransport", WRITELINES);
	replace_in(module, "_SelectorSocketTransport", READ_READY);
	replace_in(module, "BaseSelectorEventLoop", CALL_SOON);
	return r;
}

int patch_coroutines(PyObject *module)
{
	PyMethodDef *def = &defs[RUN_COROUTINE];
	PyObject **original = &originals[RUN_COROUTINE], *before;
	PyObject *package = py_module("asyncio"), *f;
	int r = py_replace_function(module, "asyncio.tasks", def, original);

	/* which may have its names already */
	before = package ? py_attr_string(package, def->ml_name) : NULL;
	f = !r && before == *original ? py_attr_string(module, def->ml_name) : NULL;
	if (f)
		PyObject_SetAttrString(package, def->ml_name, f);
	PyErr_Clear();
	Py_DecRef(f);
	Py_DecRef(before);
	Py_DecRef(package);
	return r;
}

int patch_aiohttp(PyObject *module)
{
	int r = names_make();

	return r ? r : replace_in(module, "ResponseHandler", SET_PARAMS);
}

int patch_arrow(PyObject *module)
{
	(void)module;
	net_native_note("libarrow, or another library, requests data in native threads of its "
			"own: what tasks that run meanwhile receive and send is unknown");
	return 0;
}

int patch_http2(PyObject *module)
{
	int r = replace_in(module, "AsyncHTTP2Connection", HTTP2_ASYNC);

	return r ? replace_in(module, "HTTP2Connection", HTTP2_SYNC) : r;
}
