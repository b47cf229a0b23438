/* SPDX-License-Identifier: BSD-3-Clause */
/* py_probe.c - the worker probe's functions for the rest of the shim, and what it writes. */
#include <string.h>

#include "shim/libc/sys.h"
#include "shim/python/patch.h"
#include "shim/shim.h"

static PyObject *probe; /* NULL: no worker has started here */

void probe_set(PyObject *functions)
{
	probe = functions;
}

PyObject *probe_call(const char *name, PyObject *const *args, size_t n)
{
	PyObject *f = probe ? PyDict_GetItemString(probe, name) : NULL;
	PyObject *r = f ? py_original(f, args, n, NULL) : NULL;

	PyErr_Clear();
	return r;
}

PyObject *probe_actor_key(PyObject *worker, PyObject *method)
{
	PyObject *args[2] = {worker, method};

	return probe_call("actor_key", args, 2);
}

void probe_put(struct crema_probe_text *p, const char *text, size_t n)
{
	if (n > sizeof(p->text))
		return;
	ADD(&p->seq, 1);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(p->text, text, n);
	p->bytes = (uint32_t)n;
	p->boot_ns = clock_ns(CLOCK_BOOTTIME);
	__atomic_fetch_add(&p->seq, 1, __ATOMIC_RELEASE);
}
