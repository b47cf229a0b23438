/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_py_stack.c - the memory of a Python process as an agent finds it: the input is a version and
 * then 64 KiB, which are repeated over the whole address space, except for its first page.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/py_lock.h"
#include "tests/fuzz/fuzz.h"

#define MEMORY 65536u
#define RUNTIME 4096u /* the address of _PyRuntime */

static unsigned int runtime_reads;

static size_t take(void *memory, uint64_t address, void *to, size_t bytes)
{
	runtime_reads += address == RUNTIME && bytes == 512;
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)to)[i] = ((const uint8_t *)memory)[(address + i) % MEMORY];
	/* Sometimes a page ends earlier than that. */
	return address % 251 == 0 ? bytes / 2 : bytes;
}

/* With the semaphore and the lock anywhere. */
static void find_locks(struct py_process *p, const struct py_frame *frame, size_t frames,
		       uint8_t seed)
{
	struct py_lock lock = {.object = seed * UINT64_C(263), .type = seed};

	for (size_t i = 0; i < frames; i++)
		py_lock_of(p, seed * UINT64_C(4099), &frame[i], &lock);
	py_lock_is_within(p, &lock, frame, frames);
	py_lock_owner(p, &lock);
	py_thread_ident(p, 2 * RUNTIME);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static uint8_t memory[MEMORY];
	char function[PY_NAME_BYTES], file[PY_FILE_BYTES];
	struct py_frame frame[PY_FRAMES];
	struct py_process p = {.read = take, .arg = memory, .runtime = RUNTIME};
	size_t frames;
	int line;

	if (!n)
		return 0;
	memset(memory, 0, sizeof(memory));
	memcpy(memory, data + 1, n - 1 < MEMORY ? n - 1 : MEMORY);
	p.version = 3u << 24 | (9u + data[0] % 8) << 16;
	p.code_type = p.unicode_type = p.bytes_type = UINT64_C(0x4141414141414141);
	runtime_reads = 0;
	frames = py_stack_walk(&p, 2 * RUNTIME, 0x41414141, frame);
	if (frames > PY_FRAMES)
		abort();
	for (size_t i = 0; i < frames; i++)
		if (py_stack_name(&p, &frame[i], function, file, &line) &&
		    (strlen(function) >= PY_NAME_BYTES || strlen(file) >= PY_FILE_BYTES ||
		     line < 0))
			abort();
	if (runtime_reads > 1) /* once for all frames */
		abort();
	find_locks(&p, frame, frames, data[0]);
	/* With any address, too: a frame may be gone by then. */
	frame[0].code = data[0] * UINT64_C(257);
	py_stack_name(&p, &frame[0], function, file, &line);
	return 0;
}
