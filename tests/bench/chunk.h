/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chunk.h - records of coffea chunks that never were, as agents pack them: all counters, keys,
 * files and columns of the usual length. What is in them is made from the chunk's number and a
 * seed.
 */
#ifndef TESTS_BENCH_CHUNK_H
#define TESTS_BENCH_CHUNK_H

#include <msgpack.h>
#include <stdbool.h>
#include <stdint.h>

#define CHUNK_FILES 200u    /* names of files come again after so many tasks */
#define CHUNK_EVENTS 50000u /* of each chunk that does not fail */

struct chunk {
	uint64_t task, run, attempt;
	unsigned int thread, threads;
	const char *address, *name; /* of the Dask worker */
	uint64_t start_ns, task_ns;
	uint64_t read_bytes; /* 0: by chance */
	bool fails;
	bool with_start; /* a TASK_START stands before the TASK_END */
	uint64_t *seed;
};

struct chunk_sums {
	uint64_t read_bytes, cpu_ns, events;
};

/* Writes its messages, adds what they count to *sums; how many messages. */
uint32_t chunk_pack(msgpack_packer *pk, const struct chunk *chunk, struct chunk_sums *sums);
/* The next number below n of a sequence; *seed must not be 0. */
uint64_t chunk_random(uint64_t *seed, uint64_t n);

#endif
