/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_memory.h - objects of another process's CPython, as the modules that read them need it.
 */
#ifndef CREMA_AGENT_PY_MEMORY_H
#define CREMA_AGENT_PY_MEMORY_H

#include <string.h>

#include "agent/py_stack.h"

#define PY_TABLE_BYTES 65536u /* of a code object's tables at most */
/* As all offsets in objects, plus the layout's `more`. */
#define PY_SIZE 16u /* of a tuple or a bytes object: the number of its items */
#define PY_BYTES_DATA 32u

/* All of it, or false. */
static inline bool py_copy(const struct py_process *p, uint64_t at, void *to, size_t bytes)
{
	return at >= 4096 && p->read(p->arg, at, to, bytes) == bytes;
}

static inline uint64_t py_word(const void *from, unsigned int at)
{
	uint64_t v;

	memcpy(&v, (const uint8_t *)from + at, sizeof(v));
	return v;
}

static inline bool py_has_type(const struct py_process *p, uint64_t object, uint64_t type)
{
	uint64_t v;

	return type && py_copy(p, object + PY_OBJECT_TYPE + p->layout.more, &v, sizeof(v)) &&
	       v == type;
}

struct py_table {
	uint8_t byte[PY_TABLE_BYTES];
	size_t n;
};

/* A bytes object. */
static inline bool py_read_bytes(const struct py_process *p, uint64_t object, struct py_table *to)
{
	uint64_t n;

	if (!py_has_type(p, object, p->bytes_type))
		return false;
	object += p->layout.more;
	if (!py_copy(p, object + PY_SIZE, &n, sizeof(n)) || n > sizeof(to->byte) ||
	    (n && !py_copy(p, object + PY_BYTES_DATA, to->byte, n)))
		return false;
	to->n = n;
	return true;
}

#endif
