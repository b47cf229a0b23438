/* SPDX-License-Identifier: BSD-3-Clause */
/* py_frames.c - see py_frames.h. */
#include "shim/python/py_frames.h"

#include "py_layout.h"
#include "shim/count/byte_sample.h"
#include "shim/count/large.h"
#include "shim/libc/sys.h"
#include "shim/python/py.h"

#define STEPS 1024	       /* frames of the interpreter itself included */
#define COMPARED 4096u	       /* frames */
#define END_WAIT_NS 100000000u /* reached only if a thread is stopped */

static struct py_layout layout;

static uint64_t word(uint64_t at)
{
	return *(const uint64_t *)(uintptr_t)at;
}

static uint64_t member(uint64_t object, enum py_member m)
{
	return word(object + layout.member[m]);
}

static uint64_t innermost(void)
{
	uint64_t state = (uintptr_t)PyGILState_GetThisThreadState(), at;

	if (!state)
		return 0;
	at = member(state, PY_THREAD_FRAME);
	if (at && layout.member[PY_CFRAME_FRAME] != PY_ABSENT)
		at = member(at, PY_CFRAME_FRAME);
	return at;
}

/* The code object of a frame that runs Python code; 0: it runs none. */
static uint64_t code_of(uint64_t frame)
{
	uint64_t code = PY_CODE_OF(member(frame, PY_FRAME_CODE));
	const uint8_t *bytes = (const uint8_t *)(uintptr_t)frame;

	if (layout.member[PY_FRAME_OWNER] != PY_ABSENT &&
	    bytes[layout.member[PY_FRAME_OWNER]] >= PY_OWNED_BY_C)
		return 0;
	return code && word(code + PY_OBJECT_TYPE + layout.more) == (uintptr_t)&PyCode_Type ? code
											    : 0;
}

static struct crema_py_frame record_of(uint64_t frame, uint64_t code)
{
	struct crema_py_frame f = {.code = code};
	uint64_t at = member(frame, PY_FRAME_AT);

	/* Free threaded: it may be in a copy of the instructions, which only the agent looks up. */
	f.at = (uint32_t)(layout.member[PY_CODE_START] == PY_ABSENT || layout.more ? at
										   : at - code);
	f.check = py_code_check(member(code, PY_CODE_NAME), member(code, PY_CODE_FILE),
				member(code, PY_CODE_LINES), (uint32_t)member(code, PY_CODE_FIRST));
	return f;
}

static uint32_t follow(struct crema_py_frame *frame, uint32_t most, uint32_t *cut)
{
	uint64_t at = innermost(), code;
	uint32_t n = 0;
	int steps = 0;

	for (; at && n < most && steps < STEPS; steps++) {
		code = code_of(at);
		if (code)
			frame[n++] = record_of(at, code);
		at = member(at, PY_FRAME_BACK);
	}
	*cut = at != 0;
	return n;
}

/* How many threads follow their frames now; 1 once the interpreter ends. */
static uint32_t walkers, ended;

static uint32_t walk(struct crema_py_frame *frame, uint32_t most, uint32_t *cut)
{
	uint32_t n = 0;

	*cut = 0;
	__atomic_fetch_add(&walkers, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&ended, __ATOMIC_SEQ_CST))
		n = follow(frame, most, cut);
	__atomic_fetch_sub(&walkers, 1, __ATOMIC_RELEASE);
	return n;
}

static PyObject *end(PyObject *self, PyObject *unused)
{
	uint64_t latest = clock_ns(CLOCK_MONOTONIC) + END_WAIT_NS;

	(void)self;
	(void)unused;
	__atomic_store_n(&ended, 1, __ATOMIC_SEQ_CST);
	large_end();
	while (__atomic_load_n(&walkers, __ATOMIC_SEQ_CST) && clock_ns(CLOCK_MONOTONIC) < latest)
		SYS0(SYS_sched_yield);
	Py_IncRef(PY_NONE);
	return PY_NONE;
}

static PyMethodDef end_def = {"end", (void *)end, METH_NOARGS, NULL};

/* 1 if end() is called before the interpreter frees the states of threads. */
static int watch_end(void)
{
	PyObject *atexit = PyImport_ImportModule("atexit");
	PyObject *f = atexit ? py_builtin(&end_def, NULL, "crema") : NULL;
	PyObject *r = f ? py_call(atexit, "register", f, NULL) : NULL;

	PyErr_Clear();
	Py_DecRef(f);
	Py_DecRef(atexit);
	Py_DecRef(r);
	return r != NULL;
}

/* 1 if the interpreter's functions return the same code objects as the chain. */
static int is_right(void)
{
	PyObject *frame = PyEval_GetFrame(), *back;
	uint64_t at = innermost(), code;
	int same = frame != NULL;

	Py_IncRef(frame);
	for (uint32_t n = 0; frame && same && n < COMPARED; n++) {
		PyObject *expected = PyFrame_GetCode(frame);

		for (code = 0; at && !code; at = member(at, PY_FRAME_BACK))
			code = code_of(at);
		same = code == (uintptr_t)expected;
		Py_DecRef(expected);
		back = PyFrame_GetBack(frame);
		Py_DecRef(frame);
		frame = back;
	}
	Py_DecRef(frame);
	PyErr_Clear();
	return same;
}

void py_frames_ready(void)
{
	static uint32_t asked; /* the epoch */

	if (asked == shim_epoch)
		return;
	asked = shim_epoch;
	byte_sample_walk = NULL;
	walkers = ended = 0; /* a forked child has its parent's */
	if (py_layout_find(crema_shm->python_version, (const uint8_t *)_PyRuntime, &layout))
		return; /* the agent reports it */
	if (is_right() && watch_end())
		byte_sample_walk = walk;
	else
		shim_note("this Python's frames are not where its version has them: bytes have no "
			  "stacks");
}
