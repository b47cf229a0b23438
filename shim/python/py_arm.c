/* SPDX-License-Identifier: BSD-3-Clause */
/* py_arm.c - arms a process that runs Python: records the interpreter and patches the modules. */
#define _GNU_SOURCE
#include <string.h>

#include "shim/count/digits.h"
#include "shim/count/op.h"
#include "shim/count/task.h"
#include "shim/libc/real.h"
#include "shim/python/notify.h"
#include "shim/python/patch.h"
#include "shim/shim.h"
#include "shim/start/arm.h"

/* Before the first module is watched. */
static void nothing(void)
{
}

void (*patch_pending)(void) = nothing;
void (*patch_armed)(void) = nothing;
void (*patch_loaded)(void) = nothing;

/* "3.11.7 (main, ...": 0x030b0700 */
static uint32_t python_version(const char *text)
{
	uint32_t part[3] = {0}, i = 0;

	for (; *text && i < 3; text++) {
		if (*text >= '0' && *text <= '9')
			part[i] = part[i] * 10 + (uint32_t)(*text - '0');
		else if (*text == '.')
			i++;
		else
			break;
	}
	return part[0] << 24 | part[1] << 16 | part[2] << 8;
}

/* Which lock is the GIL, and where frames are, is known for tested versions only. */
static void check_version(uint32_t version)
{
	static const uint8_t tested[] = {
#define PYTHON(minor, ...) minor,
#include "pythons.def"
	};
	static const char what[] = "crema was not tested with Python ",
			  lost[] = ": waits for the interpreter lock and for other locks are "
				   "unknown, and no lines of Python are sampled";
	char text[sizeof(what) + sizeof(lost) + 8], *p = text + sizeof(what) - 1;

	for (size_t i = 0; i < sizeof(tested); i++)
		if (version >> 16 == (3u << 8 | tested[i]))
			return;
	memcpy(text, what, sizeof(what));
	p = put_number(p, version >> 24, 10);
	*p++ = '.';
	p = put_number(p, version >> 16 & 0xff, 10);
	memcpy(p, lost, sizeof(lost));
	shim_note(text);
	tasks_cannot_time(1u << CREMA_T_gil_wait | 1u << CREMA_T_lock_wait);
}

/* Where the interpreter's runtime is in memory, for the waits for the GIL here and for the
 * agent. */
static void tell_python(void)
{
	size_t bytes = real_symbol_bytes("_PyRuntime", _PyRuntime);

	wait_set_runtime(_PyRuntime, bytes);
	crema_shm->python_runtime_bytes = bytes;
	crema_shm->python_types[0] = (uintptr_t)&PyCode_Type;
	crema_shm->python_types[1] = (uintptr_t)&PyUnicode_Type;
	crema_shm->python_types[2] = (uintptr_t)&PyBytes_Type;
	crema_shm->python_version = python_version(Py_GetVersion());
	check_version(crema_shm->python_version);
	if (py_without_gil())
		shim_note("this Python is free threaded, which allocates large objects of its own "
			  "unseen: memory by line has those of arrays and libraries only");
	__atomic_store_n(&crema_shm->python_runtime, (uintptr_t)_PyRuntime, __ATOMIC_RELEASE);
}

int py_arm(const char *usual, int say)
{
	int error;

	if (shim_armed())
		return 0;
	error = arm_process(usual, say, notify_forked);
	if (error)
		return error;
	tell_python();
	patch_armed();
	return 0;
}
