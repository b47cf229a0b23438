/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chunk.h - records of synthetic coffea chunks, as agents pack them: all counters, and keys, files
 * and columns of the usual length. The chunk's number and a seed determine the contents.
 */
#ifndef TESTS_BENCH_CHUNK_H
#define TESTS_BENCH_CHUNK_H

#include <msgpack.h>
#include <stdbool.h>
#include <stdint.h>

#define CHUNK_FILES 200u    /* file names repeat after this many tasks */
#define CHUNK_EVENTS 50000u /* of each successful chunk */

struct chunk {
	uint64_t task, run, attempt;
	unsigned int thread, threads;
	const char *address, *name; /* of the Dask worker */
	uint64_t start_ns, task_ns;
	uint64_t read_bytes; /* 0: random */
	bool fails;
	bool with_start; /* send TASK_START before TASK_END */
	uint64_t *seed;
};

struct chunk_sums {
	uint64_t read_bytes, cpu_ns, events;
};

/* Writes its messages and adds their counts to *sums; returns the number of messages. */
uint32_t chunk_pack(msgpack_packer *pk, const struct chunk *chunk, struct chunk_sums *sums);
/* The next number below n of a sequence; *seed must not be 0. */
uint64_t chunk_random(uint64_t *seed, uint64_t n);

#endif
