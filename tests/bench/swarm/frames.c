/* SPDX-License-Identifier: BSD-3-Clause */
/* frames.c - what a simulated worker sends. */
#include "tests/bench/swarm/frames.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "common/clock.h"
#include "common/frame.h"
#include "common/task.h"
#include "tests/bench/chunk.h"

#define SECOND_NS UINT64_C(1000000000)
#define TASK_NS (SECOND_NS / 2)
#define THREADS 4u
#define SECOND_MESSAGES 3u
/* read_bytes of task i: READ_MIN + STEP * (i * PRIME mod CYCLE), so each value of a cycle occurs
 * once */
#define READ_MIN 2000000u
#define CYCLE 1000u
#define PRIME 7919u
#define STEP 100u

/* Counting */

static uint64_t seconds_before(const struct frames_plan *plan, uint64_t k)
{
	return k * plan->interval_ns / SECOND_NS;
}

static unsigned int records(const struct frames_plan *plan)
{
	return plan->with_start ? 2 * plan->tasks : plan->tasks;
}

uint64_t frames_records_before(const struct frames_plan *plan, uint64_t k)
{
	return k * records(plan);
}

uint64_t frames_before(const struct frames_plan *plan, uint64_t k)
{
	return frames_records_before(plan, k) + SECOND_MESSAGES * seconds_before(plan, k);
}

uint64_t frames_of(const struct frames_plan *plan, uint64_t seq)
{
	uint64_t low = 0, high = seq + 1, middle;

	if (!plan->tasks && plan->interval_ns < SECOND_NS)
		high = (seq + 1) * (SECOND_NS / plan->interval_ns + 1);
	while (high - low > 1) {
		middle = low + (high - low) / 2;
		if (frames_before(plan, middle) <= seq)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static uint64_t storage_of_task(uint64_t i)
{
	return READ_MIN + STEP * (i % CYCLE * PRIME % CYCLE);
}

uint64_t frames_read_bytes(uint64_t tasks)
{
	uint64_t i, sum = tasks / CYCLE * (CYCLE * READ_MIN + STEP * (CYCLE * (CYCLE - 1) / 2));

	for (i = 0; i < tasks % CYCLE; i++)
		sum += storage_of_task(i);
	return sum;
}

/* Messages */

static void begin_map(msgpack_packer *pk, uint64_t type, size_t n)
{
	pack_array(pk, 2);
	pack_u64(pk, type);
	pack_map(pk, n);
}

static void put_counters(msgpack_packer *pk, const char *key, uint64_t tasks)
{
	unsigned int i, first = TASK_FIELDS;

	pack_text(pk, key);
	pack_map(pk, TASK_SLOTS - first);
	for (i = first; i < TASK_SLOTS; i++)
		pack_kv_u64(pk, task_name(i),
			    !strcmp(task_name(i), "read_bytes") ? frames_read_bytes(tasks)
								: tasks * (i * 1001 + 7));
}

static void put_amounts(msgpack_packer *pk, const char *key, uint64_t tasks)
{
	pack_text(pk, key);
	pack_map(pk, 3);
	pack_kv_u64(pk, "cpu_ns", tasks * (TASK_NS / 2));
	pack_kv_u64(pk, "storage_read_bytes", tasks * 1995776);
	pack_kv_u64(pk, "storage_write_bytes", 0);
}

static void put_totals(msgpack_packer *pk, uint64_t boot_ns, uint64_t tasks)
{
	begin_map(pk, CREMA_MSG_TOTALS, 9);
	pack_kv_u64(pk, "boot_ns", boot_ns);
	pack_kv_u64(pk, "tasks_started", tasks);
	pack_kv_u64(pk, "tasks_done", tasks);
	pack_kv_u64(pk, "tasks_refused", 0);
	pack_kv_u64(pk, "records_refused", 0);
	put_counters(pk, "tasks", tasks);
	put_counters(pk, "unattributed", 0);
	put_amounts(pk, "process", tasks);
	put_amounts(pk, "seen", tasks);
}

static void put_second(msgpack_packer *pk, uint64_t boot_ns, uint64_t tasks)
{
	char dask[200];

	begin_map(pk, CREMA_MSG_SAMPLE, 6);
	pack_kv_u64(pk, "boot_ns", boot_ns);
	pack_kv_f64(pk, "cpu_percent", 350);
	pack_kv_f64(pk, "cpu_seconds", (double)tasks / 4);
	pack_kv_u64(pk, "rss_bytes", 900000000 + boot_ns % 1000 * 4096);
	pack_kv_u64(pk, "threads", 20);
	pack_kv_u64(pk, "tasks_running", tasks ? THREADS : 0);
	put_totals(pk, boot_ns, tasks);
	snprintf(dask, sizeof(dask),
		 "{\"executing\": %u, \"ready\": 3, \"nthreads\": %u, \"nbytes_managed\": 1000000, "
		 "\"memory_limit_bytes\": 4000000000, \"status\": \"running\"}",
		 tasks ? THREADS : 0, THREADS);
	pack_array(pk, 3);
	pack_u64(pk, CREMA_MSG_DASK);
	pack_u64(pk, boot_ns);
	pack_text(pk, dask);
}

/* Frames */

static void put_tasks(struct frames *f, const struct frames_worker *w, uint64_t k,
		      msgpack_packer *pk)
{
	uint64_t number = f->plan.shared ? 0 : w->number, first = k * f->plan.tasks;
	uint64_t seed = (number << 40) + k + UINT64_C(88172645463325252);
	struct chunk_sums sums = {0};
	unsigned int i;

	for (i = 0; i < f->plan.tasks; i++) {
		struct chunk chunk = {
			.task = (number << 32) + first + i,
			.attempt = first + i + 1,
			.thread = i % THREADS,
			.threads = THREADS,
			.address = f->plan.shared ? "tcp://10.0.0.1:40000" : w->address,
			.name = f->plan.shared ? "worker" : w->name,
			.start_ns = f->plan.boot_ns + k * f->plan.interval_ns,
			.task_ns = TASK_NS,
			.read_bytes = storage_of_task(first + i),
			.with_start = f->plan.with_start,
			.seed = &seed,
		};

		chunk_pack(pk, &chunk, &sums);
	}
}

static int encode(struct frames *f, const struct frames_worker *w, uint64_t k,
		  struct frames_slot *slot)
{
	struct crema_frame_header head = frame_head(CREMA_FRAME_DATA, NULL, 0);
	uint64_t end = f->plan.boot_ns + (k + 1) * f->plan.interval_ns;
	msgpack_packer pk;
	int rc;

	head.count = (uint32_t)(frames_before(&f->plan, k + 1) - frames_before(&f->plan, k));
	buf_clear(&f->raw);
	pack_init(&pk, &f->raw);
	pack_array(&pk, head.count);
	put_tasks(f, w, k, &pk);
	for (uint64_t s = seconds_before(&f->plan, k); s < seconds_before(&f->plan, k + 1); s++)
		put_second(&pk, end, (k + 1) * f->plan.tasks);
	buf_clear(&slot->frame);
	rc = f->raw.error;
	if (!rc)
		rc = frame_encode(&slot->frame, &head, f->raw.data, f->raw.len);
	if (rc)
		return rc;
	slot->crc = (uint32_t)crc32_z(0, slot->frame.data + FRAME_HEAD_BYTES,
				      slot->frame.len - FRAME_HEAD_BYTES);
	slot->used = true;
	slot->k = k;
	slot->worker = w->number;
	f->made++;
	return 0;
}

/* The payload unchanged, with this worker's header. */
static int address(const struct frames_worker *w, uint64_t seq, const struct frames_slot *slot,
		   struct buf *out)
{
	struct crema_frame_header head;
	size_t stored = slot->frame.len - FRAME_HEAD_BYTES;
	uLong crc;

	buf_clear(out);
	if (buf_add(out, slot->frame.data, slot->frame.len))
		return out->error;
	memcpy(&head, out->data, sizeof(head));
	memcpy(head.worker, w->id, sizeof(head.worker));
	head.stream = htole64(w->stream);
	head.first_seq = htole64(seq);
	head.crc = 0;
	crc = crc32(0, (const Bytef *)&head, sizeof(head));
	head.crc = htole32((uint32_t)crc32_combine(crc, slot->crc, (z_off_t)stored));
	memcpy(out->data, &head, sizeof(head));
	return 0;
}

int frames_make(struct frames *f, const struct frames_worker *w, uint64_t k, struct buf *out)
{
	struct frames_slot *slot =
		&f->slot[(f->plan.shared ? k : k + 31 * w->number) % FRAMES_CACHE];
	int rc = 0;

	if (!slot->used || slot->k != k || (!f->plan.shared && slot->worker != w->number))
		rc = encode(f, w, k, slot);
	return rc ? rc : address(w, frames_before(&f->plan, k), slot, out);
}

int frames_goodbye(struct frames *f, const struct frames_worker *w, uint64_t k, struct buf *out)
{
	struct crema_frame_header head = frame_head(CREMA_FRAME_DATA, w->id, w->stream);
	msgpack_packer pk;

	head.first_seq = frames_before(&f->plan, k);
	head.count = 1;
	buf_clear(&f->raw);
	pack_init(&pk, &f->raw);
	pack_array(&pk, 1);
	begin_map(&pk, CREMA_MSG_GOODBYE, 2);
	pack_kv_u64(&pk, "boot_ns", f->plan.boot_ns + k * f->plan.interval_ns);
	pack_kv_text(&pk, "how", "exit");
	buf_clear(out);
	return f->raw.error ? f->raw.error : frame_encode(out, &head, f->raw.data, f->raw.len);
}

int frames_hello(const struct frames_plan *plan, const struct frames_worker *w, struct buf *out)
{
	struct crema_frame_header head = frame_head(CREMA_FRAME_HELLO, w->id, w->stream);
	struct buf raw = BUF_INIT;
	msgpack_packer pk;
	char stack[256];
	int rc;

	snprintf(stack, sizeof(stack),
		 "{\"nthreads\": %u, \"memory_limit_bytes\": 4000000000, \"worker_address\": "
		 "\"%s\", "
		 "\"worker_name\": \"%s\", \"dask\": \"2026.1.0\"}",
		 THREADS, w->address, w->name);
	pack_init(&pk, &raw);
	pack_map(&pk, 2);
	pack_text(&pk, "facts");
	pack_map(&pk, 7);
	pack_kv_text(&pk, "host", "node");
	pack_kv_u64(&pk, "pid", 1000 + w->number);
	pack_kv_u64(&pk, "boot_ns", plan->boot_ns);
	pack_kv_u64(&pk, "real_ns", clock_real_ns());
	pack_kv_u64(&pk, "cores", 64);
	pack_kv_u64(&pk, "memory_bytes", UINT64_C(256000000000));
	pack_kv_text(&pk, "stack", stack);
	pack_text(&pk, "task_fields");
	task_pack_names(&pk);
	rc = raw.error ? raw.error : frame_encode(out, &head, raw.data, raw.len);
	buf_release(&raw);
	return rc;
}

void frames_release(struct frames *f)
{
	unsigned int i;

	for (i = 0; i < FRAMES_CACHE; i++)
		buf_release(&f->slot[i].frame);
	buf_release(&f->raw);
}
