/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * codec.h - adds a codec's call to the numbers of the thread's task and to the codec's row.
 *
 * Calls come from two sources: functions of extension modules (py_codec.h) and zstd's own trace
 * (zstd.c). A call that both see counts once: the outermost, by codec_depth.
 *
 * Armed process only, any thread, with or without the GIL.
 */
#ifndef CREMA_SHIM_COUNT_CODEC_H
#define CREMA_SHIM_COUNT_CODEC_H

#include <stdint.h>

#include "ids.h"

/* The bits of all counts of a direction, decompress or compress. */
#define CODEC_COUNTS(direction)                                                                    \
	(CREMA_COUNT_BIT(direction##_calls) | CREMA_COUNT_BIT(direction##_in_bytes) |              \
	 CREMA_COUNT_BIT(direction##_out_bytes) | CREMA_COUNT_BIT(direction##_cpu_ns) |            \
	 CREMA_COUNT_BIT(direction##_wall_ns))

/* How many hooked codec functions this thread is in. */
extern __thread uint32_t codec_depth;

/* How many modules this thread is importing: data decompressed meanwhile belongs to the import,
 * like the bytes that were read for it. */
extern __thread uint32_t codec_importing;

struct codec_sum {
	uint64_t calls, in_bytes, out_bytes, cpu_ns, wall_ns;
	int time_unknown; /* cpu_ns and wall_ns could not be measured, and are 0 */
};

/* Frames that zstd's trace has counted: in this thread, and in threads without a task. */
extern __thread uint64_t zstd_frames_here;
extern uint64_t zstd_frames_of_nobody;

/* zstd in the library that contains the hooked `function` is counted by hooked functions alone,
 * also when the library's own threads call it. While patching, GIL held. */
void zstd_is_hooked(const void *function);

/* For a forked child, whose shared memory has other rows. */
void codec_forget(void);

void codec_count(int id, int decompress, const struct codec_sum *sum);

#endif
