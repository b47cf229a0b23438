/* SPDX-License-Identifier: BSD-3-Clause */
/* chunk.c - records of synthetic coffea chunks. */
#include "tests/bench/chunk.h"

#include <stdio.h>
#include <string.h>

#include "common/task.h"

#define CHUNK_READ 2000000u

uint64_t chunk_random(uint64_t *seed, uint64_t n)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed % n;
}

#define COUNT(r, id, n) ((r)->count[CREMA_C_##id] = (n))
#define OWN(r, id, ns) ((r)->own[CREMA_T_##id] = (ns))

static void fill_counters(const struct chunk *c, struct task_record *r)
{
	uint64_t read = c->read_bytes ? c->read_bytes : CHUNK_READ + chunk_random(c->seed, 100000);

	r->own_known = r->pool_known = (1u << CREMA_TIMES) - 1;
	r->count_known = (UINT64_C(1) << CREMA_COUNTS) - 1;
	OWN(r, cpu, c->task_ns / 2 + chunk_random(c->seed, 10000000));
	OWN(r, runqueue, chunk_random(c->seed, 9000000));
	OWN(r, gil_wait, chunk_random(c->seed, 20000000));
	OWN(r, storage_wait, chunk_random(c->seed, 90000000));
	r->pool[CREMA_T_cpu] = chunk_random(c->seed, 50000000);
	COUNT(r, read_calls, 40);
	COUNT(r, read_bytes, read);
	COUNT(r, storage_read_bytes, read / 4096 * 4096);
	COUNT(r, large_read_bytes, read - 5000);
	COUNT(r, cached_bytes, chunk_random(c->seed, 4000));
	COUNT(r, readahead_bytes, chunk_random(c->seed, 100000));
	COUNT(r, decompress_calls, 60);
	COUNT(r, decompress_in_bytes, read - 20000);
	COUNT(r, decompress_out_bytes, 3 * read);
	COUNT(r, decompress_cpu_ns, c->task_ns / 4 + chunk_random(c->seed, 1000000));
	COUNT(r, decompress_wall_ns, c->task_ns / 4 + 5000000);
	COUNT(r, basket_calls, 60);
	COUNT(r, basket_bytes, read - 15000);
	COUNT(r, basket_raw_bytes, 3 * read);
	COUNT(r, voluntary_switches, chunk_random(c->seed, 200));
	COUNT(r, involuntary_switches, chunk_random(c->seed, 20));
	COUNT(r, pool_segments, 10);
	COUNT(r, pool_wall_ns, 60000000);
}

static struct text text_of(const char *s)
{
	return (struct text){s, strlen(s)};
}

struct names {
	char key[64], span[48], path[96], dataset[32];
};

static void make_names(const struct chunk *c, struct names *n)
{
	unsigned long long file = c->task % CHUNK_FILES;

	snprintf(n->key, sizeof(n->key), "TTbarProcessor-%016llx%016llx",
		 (unsigned long long)(c->task * UINT64_C(0x9e3779b97f4a7c15)),
		 (unsigned long long)c->task);
	snprintf(n->span, sizeof(n->span), "00000000-0000-4000-8000-%012llx",
		 (unsigned long long)c->run);
	snprintf(n->path, sizeof(n->path), "/store/nano/sample%llu/file%llu.root", file % 8, file);
	snprintf(n->dataset, sizeof(n->dataset), "sample%llu", file % 8);
}

static void fill_start(const struct chunk *c, const struct names *n, struct task_record *r)
{
	uint64_t entry = c->task / CHUNK_FILES * CHUNK_EVENTS;

	memset(r, 0, sizeof(*r));
	r->type = CREMA_MSG_TASK_START;
	r->rev = 1;
	TASK_SET(r, attempt, c->attempt);
	TASK_SET(r, thread, 2000 + c->thread);
	TASK_SET(r, thread_sequence, c->attempt / c->threads + 1);
	TASK_SET(r, status, text_of("running"));
	TASK_SET(r, key, text_of(n->key));
	TASK_SET(r, key_hash, (c->task + 1) * UINT64_C(0x9e3779b97f4a7c15));
	TASK_SET(r, prefix, text_of("TTbarProcessor"));
	TASK_SET(r, span, text_of(n->span));
	TASK_SET(r, function, text_of("coffea.processor.executor.WorkItem"));
	TASK_SET(r, worker_address, text_of(c->address));
	TASK_SET(r, worker_name, text_of(c->name));
	TASK_SET(r, flags, CREMA_TASK_CHUNK);
	TASK_SET(r, start_boot_ns, c->start_ns);
	TASK_SET(r, rss_start_bytes, 800000000 + chunk_random(c->seed, 1000) * 4096);
	TASK_SET(r, dataset, text_of(n->dataset));
	TASK_SET(r, filename, text_of(n->path));
	TASK_SET(r, treename, text_of("Events"));
	TASK_SET(r, entrystart, (int64_t)entry);
	TASK_SET(r, entrystop, (int64_t)entry + CHUNK_EVENTS);
}

static void fill_end(const struct chunk *c, struct task_record *r)
{
	static const char columns[] =
		"nJet\nJet_pt\nJet_eta\nJet_phi\nJet_mass\nMuon_pt\nMuon_eta\n"
		"Muon_phi\nElectron_pt\nElectron_eta\nMET_pt\nMET_phi";

	r->type = CREMA_MSG_TASK_END;
	r->rev = 2;
	fill_counters(c, r);
	TASK_SET(r, status, text_of(c->fails ? "erred" : "ok"));
	TASK_SET(r, wall_ns, c->task_ns - chunk_random(c->seed, c->task_ns / 10));
	TASK_SET(r, stop_boot_ns, c->start_ns + r->wall_ns);
	TASK_SET(r, rss_stop_bytes, 900000000 + chunk_random(c->seed, 1000) * 4096);
	TASK_SET(r, rss_peak_bytes, 910000000 + chunk_random(c->seed, 1000) * 4096);
	if (!c->fails) {
		TASK_SET(r, events, CHUNK_EVENTS);
		TASK_SET(r, coffea_bytesread, r->count[CREMA_C_read_bytes] - 30000);
		TASK_SET(r, coffea_processtime, (double)r->wall_ns / 1.1e9);
		TASK_SET(r, columns, text_of(columns));
	}
}

uint32_t chunk_pack(msgpack_packer *pk, const struct chunk *c, struct chunk_sums *sums)
{
	struct task_record r;
	struct names n;

	make_names(c, &n);
	fill_start(c, &n, &r);
	if (c->with_start)
		task_encode(pk, &r);
	fill_end(c, &r);
	task_encode(pk, &r);
	sums->read_bytes += r.count[CREMA_C_read_bytes];
	sums->cpu_ns += r.own[CREMA_T_cpu];
	sums->events += c->fails ? 0 : CHUNK_EVENTS;
	return c->with_start ? 2 : 1;
}
