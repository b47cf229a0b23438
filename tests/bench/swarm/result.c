/* SPDX-License-Identifier: BSD-3-Clause */
/* result.c - the result of a run of the swarm. */
#include "tests/bench/swarm/result.h"

#include <inttypes.h>

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static double mib(uint64_t bytes)
{
	return (double)bytes / (1u << 20);
}

static double per(double amount, double n)
{
	return n > 0 ? amount / n : 0;
}

void result_sample(struct result *r)
{
	uint64_t rss = r->pid ? watch_rss_bytes(r->pid) : 0;

	if (!r->rss_first)
		r->rss_first = rss;
	if (rss)
		r->rss_last = rss;
	if (rss > r->rss_most)
		r->rss_most = rss;
}

void result_begin(struct result *r, uint64_t now_ns)
{
	r->begin.at_ns = now_ns;
	r->begin.cpu_ns = r->pid ? watch_cpu_ns(r->pid) : 0;
	r->block = r->begin;
	result_sample(r);
	printf("%9s %12s %12s %12s %10s %10s %10s\n", "seconds", "records", "records/s",
	       "ns/record", "cores", "RSS MiB", "p99 ms");
}

static void print_part(const struct result *r, const struct result_mark *from, double at)
{
	const struct result_mark *to = &r->now;
	double seconds = (double)(to->at_ns - from->at_ns) / 1e9;
	double records = (double)(to->records - from->records);
	double cpu = (double)(to->cpu_ns - from->cpu_ns);
	struct stats part;

	stats_since(&to->stats, &from->stats, &part);
	printf("%9.1f %12" PRIu64 " %12.0f %12.0f %10.2f %10.1f %10.2f\n", at, to->records,
	       per(records, seconds), per(cpu, records), per(cpu / 1e9, seconds), mib(r->rss_last),
	       ms(stats_quantile(&part, 0.99)));
	fflush(stdout);
}

void result_block(struct result *r, uint64_t now_ns, uint64_t acked, const struct stats *stats)
{
	uint64_t cpu = r->pid ? watch_cpu_ns(r->pid) : 0;

	result_sample(r);
	r->now.at_ns = now_ns;
	r->now.records = acked;
	r->now.cpu_ns = cpu ? cpu : r->now.cpu_ns;
	r->now.stats = *stats;
	print_part(r, &r->block, (double)(now_ns - r->begin.at_ns) / 1e9);
	if (r->parts < RESULT_PARTS) {
		r->part[r->parts].records = acked;
		r->part[r->parts].rss_bytes = r->rss_last;
		r->part[r->parts++].cpu_ns_per_record =
			per((double)(r->now.cpu_ns - r->block.cpu_ns),
			    (double)(acked - r->block.records));
	}
	r->block = r->now;
}

void result_print(const struct result *r)
{
	double seconds = (double)(r->now.at_ns - r->begin.at_ns) / 1e9;
	const struct stats *stats = &r->now.stats;

	printf("workers %" PRIu64 ", connected in %.1f s\n", r->workers, r->connect_seconds);
	printf("task records: sent %" PRIu64 ", acknowledged %" PRIu64 " (%.0f/s over %.1f s)\n",
	       r->sent, r->acked, per((double)r->acked, seconds), seconds);
	printf("frames: %" PRIu64 ", again %" PRIu64 ", left out %" PRIu64
	       ", not sent in time %" PRIu64 "; connections cut %" PRIu64 "\n",
	       r->frames, r->sent_again, r->skipped, r->late_frames, r->cuts);
	printf("acknowledged after: p50 %.2f ms, p99 %.2f ms, p99.9 %.2f ms, most %.2f ms\n",
	       ms(stats_quantile(stats, 0.5)), ms(stats_quantile(stats, 0.99)),
	       ms(stats_quantile(stats, 0.999)), ms(stats->max_ns));
	if (r->pid)
		printf("collector: %.0f ns of CPU per record, %.2f cores; RSS first %.1f, last "
		       "%.1f, most %.1f, peak %.1f MiB\n",
		       per((double)(r->now.cpu_ns - r->begin.cpu_ns), (double)r->acked),
		       per((double)(r->now.cpu_ns - r->begin.cpu_ns) / 1e9, seconds),
		       mib(r->rss_first), mib(r->rss_last), mib(r->rss_most),
		       mib(watch_peak_bytes(r->pid)));
}

void result_pages(const struct watch_page *pages, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		printf("%s: %" PRIu64 " answers, %" PRIu64
		       " failures, slowest %.0f ms, %.1f KiB the last\n",
		       pages[i].name, pages[i].answers, pages[i].failures, 1e3 * pages[i].slowest,
		       (double)pages[i].bytes / 1024);
}

void result_json(const struct result *r, FILE *out)
{
	double seconds = (double)(r->now.at_ns - r->begin.at_ns) / 1e9;
	const struct stats *stats = &r->now.stats;
	unsigned int i;

	fprintf(out,
		"{\"workers\": %" PRIu64 ", \"seconds\": %.3f, \"records_sent\": %" PRIu64
		", \"records_acked\": %" PRIu64 ", \"messages\": %" PRIu64 ", \"tasks\": %" PRIu64
		", \"read_bytes\": %" PRIu64 ",\n \"frames\": %" PRIu64
		", \"frames_again\": %" PRIu64 ", \"frames_left_out\": %" PRIu64
		", \"frames_late\": %" PRIu64 ", \"cuts\": %" PRIu64 ",\n",
		r->workers, seconds, r->sent, r->acked, r->messages, r->tasks, r->read_bytes,
		r->frames, r->sent_again, r->skipped, r->late_frames, r->cuts);
	fprintf(out,
		" \"ack_p50_ms\": %.3f, \"ack_p99_ms\": %.3f, \"ack_max_ms\": %.3f, "
		"\"cpu_seconds\": %.3f, \"cpu_ns_per_record\": %.1f,\n \"rss_first_bytes\": "
		"%" PRIu64 ", \"rss_last_bytes\": %" PRIu64 ", \"rss_most_bytes\": %" PRIu64
		",\n \"parts\": [",
		ms(stats_quantile(stats, 0.5)), ms(stats_quantile(stats, 0.99)), ms(stats->max_ns),
		(double)(r->now.cpu_ns - r->begin.cpu_ns) / 1e9,
		per((double)(r->now.cpu_ns - r->begin.cpu_ns), (double)r->acked), r->rss_first,
		r->rss_last, r->rss_most);
	for (i = 0; i < r->parts; i++)
		fprintf(out,
			"%s{\"records\": %" PRIu64 ", \"rss_bytes\": %" PRIu64
			", \"cpu_ns_per_record\": %.1f}",
			i ? ",\n  " : "", r->part[i].records, r->part[i].rss_bytes,
			r->part[i].cpu_ns_per_record);
	fprintf(out, "]}\n");
}
