/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_live.c - the cost of the live numbers per record, and their memory.
 *
 *	bench_live DIR       a journal, as make_journal writes it
 *
 * Reads the journal four times: to inflate it, then also to check the messages, to feed the records
 * of tasks, and to feed everything. Costs are the differences to the previous step: the third step
 * gives that of a task record. CPU seconds of this process.
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collector/journal/journal.h"
#include "collector/live/live.h"
#include "collector/ingest/server_payload.h"
#include "ids.h"

enum step { INFLATE, CHECK, FEED_TASKS, FEED, STEPS };

struct bench {
	enum step step;
	struct live *live;
	struct buf scratch, starts;
	uint64_t records, tasks;
};

static void feed_hello(struct bench *b, const struct frame *frame, const unsigned char *raw)
{
	struct unpack map;

	if (unpack_open(&map, raw, frame->head.raw_bytes))
		return;
	live_hello(b->live, frame->head.worker, frame->head.stream, &map.root);
	unpack_release(&map);
}

/* Keeps the starts of tasks' records; returns their number. */
static uint32_t only_tasks(const unsigned char *raw, uint32_t *starts, uint32_t count)
{
	const unsigned char *p;
	uint32_t i, n = 0;

	for (i = 0; i < count; i++) {
		p = raw + starts[i];
		p += *p == 0xdc ? 3 : *p == 0xdd ? 5 : 1;
		if (*p >= CREMA_MSG_TASK_START && *p <= CREMA_MSG_TASK_AMEND)
			starts[n++] = starts[i];
	}
	return n;
}

static void visit(void *arg, const struct frame *frame)
{
	struct bench *b = arg;
	struct crema_frame_header head = frame->head;
	struct live_frame to = {.head = &head};
	const unsigned char *raw;

	if (frame_payload(frame, &b->scratch, &raw))
		return;
	if (frame->head.type == CREMA_FRAME_HELLO && b->step >= FEED_TASKS)
		feed_hello(b, frame, raw);
	if (frame->head.type != CREMA_FRAME_DATA)
		return;
	b->records += frame->head.count;
	if (b->step == INFLATE)
		return;
	buf_clear(&b->starts);
	if (buf_reserve(&b->starts, (frame->head.count + 1) * sizeof(uint32_t)) ||
	    server_payload_check(raw, frame->head.raw_bytes, frame->head.count,
				 (uint32_t *)(void *)b->starts.data))
		return;
	to.raw = raw;
	to.starts = (const uint32_t *)(const void *)b->starts.data;
	if (b->step == FEED_TASKS)
		head.count = only_tasks(raw, (uint32_t *)(void *)b->starts.data, head.count);
	b->tasks += head.count;
	if (b->step >= FEED_TASKS)
		live_data(b->live, &to);
}

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	static const char *const name[STEPS] = {"read and inflate", "and check messages",
						"and feed tasks", "and feed the rest"};
	struct bench b = {0};
	struct live_cluster c;
	double begin, spent, before = 0;
	uint64_t tasks = 0, part;
	size_t memory;

	if (argc != 2) {
		fprintf(stderr, "usage: bench_live DIR\n");
		return 2;
	}
	memory = mallinfo2().uordblks;
	for (b.step = INFLATE; b.step < STEPS; b.step++) {
		b.records = b.tasks = 0;
		live_free(b.live);
		b.live = live_new();
		live_restoring(b.live, true);
		begin = cpu_seconds();
		if (journal_scan_from(argv[1], 0, visit, &b, NULL) || !b.records) {
			fprintf(stderr, "bench_live: no records in '%s'\n", argv[1]);
			return 1;
		}
		spent = cpu_seconds() - begin;
		part = b.step == FEED_TASKS ? b.tasks : b.records - (b.step == FEED ? tasks : 0);
		tasks = b.step == FEED_TASKS ? b.tasks : tasks;
		printf("%-18s %8.3f s  %9.0f records/s  %+7.0f ns for each of %" PRIu64
		       " records\n",
		       name[b.step], spent, (double)b.records / spent,
		       (spent - before) / (double)part * 1e9, part);
		before = spent;
	}
	buf_release(&b.scratch);
	buf_release(&b.starts);
	live_cluster(b.live, &c);
	printf("live numbers: %zu bytes for %" PRIu64 " workers, %" PRIu64 " ended attempts\n",
	       mallinfo2().uordblks - memory, c.workers_seen,
	       c.ended[LIVE_OK] + c.ended[LIVE_ERRED] + c.ended[LIVE_KILLED] + c.ended[LIVE_OTHER]);
	live_free(b.live);
	return 0;
}
