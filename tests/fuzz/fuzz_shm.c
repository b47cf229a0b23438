/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_shm.c - the worker's memory with arbitrary contents, as an agent may find it. The input is a
 * list of [offset (3 bytes), length, bytes], which are written into zeros; then the agent does
 * everything that it does with the memory.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/doing.h"
#include "agent/drain.h"
#include "agent/ending.h"
#include "agent/hello.h"
#include "agent/rows.h"
#include "agent/sampler.h"
#include "agent/stacks.h"
#include "tests/fuzz/fuzz.h"

#define SECOND UINT64_C(1000000000)

static struct crema_shm *shm;

struct site {
	struct view view;
	struct fskinds kinds;
	struct outbox out;
	struct drain drain;
	struct rows rows;
	struct sampler sampler;
	struct doing doing;
	struct ending ending;
	struct buf hello;
};

static void put(const uint8_t *data, size_t n)
{
	memset(shm, 0, sizeof(*shm));
	shm->strings_used = 8;
	while (n >= 4) {
		size_t at = data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16, bytes = data[3];

		if (bytes > n - 4)
			bytes = n - 4;
		memcpy((uint8_t *)shm + at % (sizeof(*shm) - 256), data + 4, bytes);
		data += 4 + bytes;
		n -= 4 + bytes;
	}
}

static void look(struct site *s)
{
	fskinds_poll(&s->kinds, &s->view, getpid());
	view_repair(&s->view);
	for (unsigned int round = 0; round < 2; round++) {
		uint64_t now = (round + 1) * SECOND;

		drain_poll(&s->drain, 1, now, now);
		rows_files(&s->rows, round);
		rows_codecs(&s->rows, round);
		rows_servers(&s->rows, round);
		rows_dask(&s->rows);
		rows_totals(&s->rows, &s->drain.unknown, round, now);
		sampler_worker(&s->sampler, 1, 0, now, now);
		doing_look(&s->doing, now, 10 * now);
	}
	if (hello_frame(&s->hello, &s->view, &s->kinds, NULL, 1))
		abort();
	ending_goodbye(&s->ending, &s->view, &s->out, 5, 1, 3 * SECOND);
	drain_end(&s->drain);
	outbox_flush(&s->out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const uint8_t worker[16] = {9};
	struct site *s = calloc(1, sizeof(*s));

	if (!shm)
		shm = malloc(sizeof(*shm));
	if (!shm || !s)
		abort();
	s->view.shm = shm;
	s->view.fd = -1;
	put(data, n);
	outbox_init(&s->out, worker, 5, NULL, false);
	if (drain_init(&s->drain, &s->view, &s->out, &s->kinds, 0) ||
	    doing_init(&s->doing, &s->view, &s->out, getpid()))
		abort();
	rows_init(&s->rows, &s->view, &s->out, &s->kinds);
	sampler_init(&s->sampler, &s->view, &s->out, getpid(), NULL);
	ending_init(&s->ending, getpid());
	look(s);
	buf_release(&s->hello);
	rows_release(&s->rows);
	drain_release(&s->drain);
	doing_release(&s->doing);
	outbox_release(&s->out);
	free(s);
	return 0;
}
