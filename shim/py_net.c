/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_net.c - asyncio transports: a write, which runs in the requester's context, binds the socket
 * to the requester's task, or to nobody. What the loop receives or sends later then has an owner.
 */
#include <errno.h>

#include "net.h"
#include "patch.h"
#include "shim.h"

enum { WRITE, WRITELINES, METHODS };

static PyObject *originals[METHODS];
static PyObject *n_sock_fd;

static PyObject *bind_and_call(int which, PyObject *self, PyObject *data)
{
	PyObject *args[2] = {self, data}, *fd;
	long long number;

	if (shim_armed()) {
		fd = py_attr(self, n_sock_fd);
		number = fd ? PyLong_AsLongLong(fd) : -1;
		PyErr_Clear();
		Py_DecRef(fd);
		if (number >= 0 && number < INT32_MAX)
			net_bind((int)number, pool_current());
	}
	return py_vectorcall(originals[which], args, 2, NULL);
}

static PyObject *transport_write(PyObject *self, PyObject *data)
{
	return bind_and_call(WRITE, self, data);
}

static PyObject *transport_writelines(PyObject *self, PyObject *data)
{
	return bind_and_call(WRITELINES, self, data);
}

static PyMethodDef defs[METHODS] = {
	[WRITE] = {"write", (void *)transport_write, METH_O, NULL},
	[WRITELINES] = {"writelines", (void *)transport_writelines, METH_O, NULL},
};

static int replace(int which, PyObject *class)
{
	PyObject *d;
	int r = -ENOENT;

	originals[which] = py_attr_string(class, defs[which].ml_name);
	d = originals[which] ? PyDescr_NewMethod(class, &defs[which]) : NULL;
	if (d && !PyObject_SetAttrString(class, defs[which].ml_name, d))
		r = 0;
	PyErr_Clear();
	Py_DecRef(d);
	return r;
}

int patch_asyncio(PyObject *module)
{
	PyObject *class = py_attr_string(module, "_SelectorSocketTransport");
	int r = -ENOENT;

	n_sock_fd = PyUnicode_InternFromString("_sock_fd");
	if (class && n_sock_fd) {
		r = replace(WRITE, class);
		/* Before 3.12 it is the base class's and calls write() by itself. */
		replace(WRITELINES, class);
	}
	Py_DecRef(class);
	return r;
}
