/* SPDX-License-Identifier: BSD-3-Clause */
/* first_use.c - see first_use.h. */
#include "shim/python/first_use.h"

#include "shim/count/task.h"
#include "shim/python/py.h"

/* While they run. */
#define USED_TASKS 64
static struct {
	uint64_t task;
	PyObject *used; /* a set of keys */
} tasks[USED_TASKS];

static int is_over(uint64_t task)
{
	uint32_t owner = task_ref_name(task);

	task_unref(owner);
	return !task_slot(owner);
}

/* NULL: more tasks at once than there is room for. */
static PyObject *used_by(uint64_t task)
{
	int at = -1;

	for (int i = 0; i < USED_TASKS; i++) {
		if (tasks[i].used && tasks[i].task == task)
			return tasks[i].used;
		if (at < 0 && (!tasks[i].used || is_over(tasks[i].task)))
			at = i;
	}
	if (at < 0)
		return NULL;
	Py_DecRef(tasks[at].used);
	tasks[at].task = task;
	tasks[at].used = PySet_New(NULL);
	return tasks[at].used;
}

int first_use(uint64_t task, uint32_t owner, uint64_t of)
{
	PyObject *used = task_slot(owner) ? used_by(task) : NULL;
	PyObject *key = used ? PyLong_FromUnsignedLongLong(of) : NULL;
	Py_ssize_t before = used ? PySet_Size(used) : 0;
	int first = !key || PySet_Add(used, key) ? -1 : PySet_Size(used) > before;

	PyErr_Clear();
	Py_DecRef(key);
	return first;
}

void first_use_forget(void)
{
	for (int i = 0; i < USED_TASKS; i++) {
		if (tasks[i].used)
			Py_DecRef(tasks[i].used);
		tasks[i].used = NULL;
	}
}
