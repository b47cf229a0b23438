/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * zstd.c - zstd inside C libraries (libarrow's for Parquet, ...).
 *
 * zstd calls ZSTD_trace_* at the start and end of each frame if they are defined: its symbols are
 * weak, and a preloaded library comes before all others. zstd keeps the start's return value in its
 * context and passes it at the end; 0 means that no end is needed. A frame inside a hooked function
 * of an extension module belongs to that function, and so does one that threads of the same library
 * do for it. Frames that fail have no end.
 *
 * A frame that is done in one call has known CPU time. For a frame that is fed piece by piece only
 * the bytes are known: the CPU time in between is the caller's, and the task's codec times become
 * unknown.
 */
#define _GNU_SOURCE
#include <stddef.h>

#include "ids.h"
#include "shim/count/clock.h"
#include "shim/count/codec.h"
#include "shim/count/task.h"
#include "shim/libc/real.h"
#include "shim/libc/sys.h"

#define EXPORT __attribute__((visibility("default")))

/* The beginning of zstd's public trace record, unchanged since it came with 1.5.0. */
struct zstd_trace {
	unsigned int version; /* 10506: 1.5.6 */
	int streaming;
	unsigned int dictionary;
	int dictionary_is_cold;
	size_t dictionary_bytes, uncompressed_bytes, compressed_bytes;
};
#define FIRST_VERSION 10405u /* the first with the trace */
#define LAST_VERSION 20000u

#define HOOK(family, ret, name, params, args, fd, size)
#define CALLBACK(ret, name, params) ret name params;
#include "hooks.def"
#undef HOOK

/* The last frame that this thread has begun. */
static __thread struct {
	uint64_t name, cpu_ns, start;
} begun;

__thread uint64_t zstd_frames_here;
uint64_t zstd_frames_of_nobody;

/* Libraries with hooked functions. */
#define HOOKED 32
static struct {
	const void *start, *end;
} hooked[HOOKED];
static uint32_t hooked_count;

static int is_hooked(const void *caller)
{
	uint32_t n = __atomic_load_n(&hooked_count, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n; i++)
		if (caller >= hooked[i].start && caller < hooked[i].end)
			return 1;
	return 0;
}

void zstd_is_hooked(const void *function)
{
	const void *start, *end;

	if (is_hooked(function) || hooked_count == HOOKED ||
	    !real_object_of(function, &start, &end))
		return;
	hooked[hooked_count].start = start;
	hooked[hooked_count].end = end;
	__atomic_store_n(&hooked_count, hooked_count + 1, __ATOMIC_RELEASE);
}

static unsigned long long frame_begin(const void *caller)
{
	if (!shim_armed() || codec_depth || is_hooked(caller) || !thread_self())
		return 0;
	begun.name = (uint64_t)thread_self()->tid << 32 | (uint32_t)(begun.name + 1);
	begun.cpu_ns = clock_cpu_ns();
	begun.start = ticks();
	return begun.name;
}

static void frame_end(int id, int decompress, uint64_t name, const struct zstd_trace *frame)
{
	struct codec_sum sum = {1, 0, 0, 0, 0, 0};

	if (!shim_armed())
		return;
	if (frame->version < FIRST_VERSION || frame->version >= LAST_VERSION) {
		shim_note("a zstd whose trace is unknown: its calls are not counted");
		return;
	}
	sum.in_bytes = decompress ? frame->compressed_bytes : frame->uncompressed_bytes;
	sum.out_bytes = decompress ? frame->uncompressed_bytes : frame->compressed_bytes;
	if (!frame->streaming && name == begun.name) {
		sum.wall_ns = ticks_ns(ticks() - begun.start);
		sum.cpu_ns = clock_cpu_inside(begun.cpu_ns, sum.wall_ns);
	} else {
		sum.time_unknown = 1;
	}
	zstd_frames_here++;
	if (segment_owner() == OWNER_NONE)
		ADD(&zstd_frames_of_nobody, 1);
	codec_count(id, decompress, &sum);
}

EXPORT unsigned long long ZSTD_trace_decompress_begin(const void *context)
{
	(void)context;
	return frame_begin(__builtin_return_address(0));
}

EXPORT void ZSTD_trace_decompress_end(unsigned long long started, const struct zstd_trace *frame)
{
	frame_end(CREMA_CODEC_zstd_trace_d, 1, started, frame);
}

EXPORT unsigned long long ZSTD_trace_compress_begin(const void *context)
{
	(void)context;
	return frame_begin(__builtin_return_address(0));
}

EXPORT void ZSTD_trace_compress_end(unsigned long long started, const struct zstd_trace *frame)
{
	frame_end(CREMA_CODEC_zstd_trace_c, 0, started, frame);
}
