/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_layout.h - where CPython's objects have the members that lead from a thread to its frames, and
 * from a frame to its function and line.
 *
 * By pythons.def: old versions by a table of their layouts, newer ones by the offsets at the start
 * of _PyRuntime. Used by the agent, which reads the worker's memory from outside, and by the shim,
 * where a thread reads its own frames. Pure functions.
 */
#ifndef CREMA_CONTRACT_PY_LAYOUT_H
#define CREMA_CONTRACT_PY_LAYOUT_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PY_ABSENT 0xffffu     /* a member that this version does not have */
#define PY_OFFSETS_BYTES 512u /* of _PyRuntime */
#define PY_FRAME_BYTES 128u   /* covers every member that is read */
#define PY_CODE_BYTES 256u
#define PY_OBJECT_TYPE 8u /* of every object; plus py_layout.more */
#define PY_OWNED_BY_C 3	  /* owners of frames of the interpreter itself, from here on */
#define PY_CODE_OF(word) ((word) & ~UINT64_C(7)) /* a frame's code object: the word has tags */

enum py_member {
	PY_THREAD_FRAME,
	PY_CFRAME_FRAME, /* the frame is one step further; PY_ABSENT: it is not */
	PY_THREAD_TID,
	PY_THREAD_IDENT, /* what pthread_self() is */
	PY_FRAME_BACK,
	PY_FRAME_CODE,
	PY_FRAME_AT,
	PY_FRAME_OWNER,
	PY_FRAME_SLOTS, /* its variables, and then its stack of values */
	PY_CODE_FILE,
	PY_CODE_NAME,
	PY_CODE_LINES,
	PY_CODE_FIRST,
	PY_CODE_START,
	PY_CODE_SLOTS,	/* the tuple of its variables' names */
	PY_CODE_COPIES, /* free threaded: the copies of its instructions */
	PY_MEMBERS
};

/* Offsets of members; ascii, compact: bytes before the characters of a text. A free-threaded
 * build's objects have PY_MORE_BYTES more before their first member, their type included; member[]
 * has them, constants for offsets do not. */
#define PY_MORE_BYTES 16u
struct py_layout {
	uint16_t minor; /* 0: unknown */
	uint16_t told, ascii, compact;
	uint16_t more; /* PY_MORE_BYTES, or 0 */
	uint16_t member[PY_MEMBERS];
};

static inline uint64_t py_layout_limit(int member)
{
	return member <= PY_THREAD_IDENT  ? 4096
	       : member <= PY_FRAME_SLOTS ? PY_FRAME_BYTES - 8
					  : PY_CODE_BYTES - 8;
}

/* Replaces positions in _PyRuntime by the offsets that it has there. */
static inline int py_layout_told(uint32_t version, const uint8_t *runtime, struct py_layout *l)
{
	uint64_t v;

	if (!runtime || memcmp(runtime, "xdebugpy", 8))
		return -ENOENT;
	memcpy(&v, runtime + 8, 8);
	if (v >> 16 != version >> 16)
		return -ENOENT;
	memcpy(&v, runtime + 16, 8); /* free threaded */
	if (v && l->member[PY_CODE_COPIES] == PY_ABSENT)
		return -ENOENT;
	l->more = v ? PY_MORE_BYTES : 0;
	l->ascii = (uint16_t)(l->ascii + l->more);
	l->compact = (uint16_t)(l->compact + l->more);
	if (!l->more)
		l->member[PY_CODE_COPIES] = PY_ABSENT;
	for (int i = 0; i < PY_MEMBERS; i++) {
		if (l->member[i] == PY_ABSENT)
			continue;
		memcpy(&v, runtime + l->member[i], 8);
		if (v >= py_layout_limit(i) && i != PY_CODE_START)
			return -ENOENT;
		l->member[i] = (uint16_t)v;
	}
	return 0;
}

/* version: as crema_shm.python_version; runtime: the first PY_OFFSETS_BYTES of _PyRuntime, NULL if
 * they cannot be read. 0, or -ENOENT: unknown, minor is 0. */
static inline int py_layout_find(uint32_t version, const uint8_t *runtime, struct py_layout *out)
{
	static const struct py_layout layouts[] = {
#define PYTHON(minor, release, particular, told, ascii, compact, ...)                              \
	{minor, told, ascii, compact, 0, {__VA_ARGS__}},
#include "pythons.def"
	};

	out->minor = 0;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++) {
		struct py_layout l = layouts[i];

		if (version >> 24 != 3 || (version >> 16 & 0xff) != l.minor)
			continue;
		if (l.told && py_layout_told(version, runtime, &l))
			return -ENOENT;
		*out = l;
		return 0;
	}
	return -ENOENT;
}

/* Differs if the code object at an address has become another one: made from the addresses of its
 * name, file and table of lines, and its first line. */
static inline uint32_t py_code_check(uint64_t name, uint64_t file, uint64_t lines, uint32_t first)
{
	uint64_t v = name * UINT64_C(0x9e3779b97f4a7c15);

	v = (v ^ file) * UINT64_C(0xc2b2ae3d27d4eb4f);
	v = (v ^ lines ^ first) * UINT64_C(0x165667b19e3779f9);
	return (uint32_t)(v >> 32);
}

#endif
