/* SPDX-License-Identifier: BSD-3-Clause */
/* check_codecs.c - what packing and unpacking cost. */
#include "collector/findings/check.h"

/* Enough to call it a measured speed. */
#define SPEED_LEAST_BYTES 1e6
#define SPEED_LEAST_SECONDS 1e-3
#define FASTER 1.5

/* Bytes out per second of CPU, 0 if this run measured too little of it. */
static double speed_of(const struct codec_sum *c)
{
	double out = value_number(c->decompress.out_bytes, NULL);
	double cpu = value_number(c->decompress.cpu_ns, NULL) / 1e9;

	return out >= SPEED_LEAST_BYTES && cpu >= SPEED_LEAST_SECONDS ? out / cpu : 0;
}

/* What another codec would have taken, at the speed that this run measured for it. */
static void say_gain(const struct report *r, const struct codec_sum *worst, struct draft *d)
{
	double cpu = value_number(worst->decompress.cpu_ns, NULL) / 1e9, took;
	const struct codec_sum *best = NULL;
	size_t i;

	for (i = 0; i < r->codecs.n; i++) {
		if (speed_of(&r->codecs.v[i]) > (best ? speed_of(best) : 0))
			best = &r->codecs.v[i];
	}
	if (!best || best == worst || !speed_of(worst) || speed_of(best) < FASTER * speed_of(worst))
		return;
	took = value_number(worst->decompress.out_bytes, NULL) / speed_of(best);
	draft_see(d, "other_codec", value_text(best->codec), "");
	draft_see(d, "other_codec_bytes_per_second", value_real(speed_of(best)), "bytes/s");
	draft_see(d, "saved_cpu_seconds", value_real(cpu - took), "s");
	draft_say_more(d, "; at the %s that this run unpacked %s with, it would save %s",
		       draft_human(d, value_real(speed_of(best) / 1e6), AS_MBS),
		       draft_upper(d, best->codec),
		       draft_human(d, value_real(cpu - took), AS_SECONDS));
}

enum verdict finding_decompression(const struct report *r, struct draft *d)
{
	struct value all = tally_cpu(&r->facts->all);
	const struct codec_sum *c, *worst = NULL;
	double cpu, most = -1, percent;
	bool known;
	size_t i;

	for (i = 0; i < r->codecs.n; i++) {
		c = &r->codecs.v[i];
		cpu = value_number(c->decompress.cpu_ns, &known) / 1e9;
		if (!known)
			return draft_unknown(d, "codecs");
		if (cpu > most)
			worst = c, most = cpu;
	}
	if (!worst)
		return CHECK_IDLE;
	cpu = value_number(all, &known);
	if (!known)
		return draft_unknown(d, "total_cpu_time_true_all");
	if (!reaches(most, cpu, d->check->first, d->check->second))
		return CHECK_QUIET;
	percent = most / cpu * 100;
	draft_see(d, "codec", value_text(worst->codec), "");
	draft_see(d, "decompress_cpu_seconds", value_real(most), "s");
	draft_see(d, "total_cpu_time_true_all", all, "s");
	draft_see(d, "percent", value_real(percent), "%");
	draft_see(d, "decompress_out_bytes", worst->decompress.out_bytes, "bytes");
	draft_say(d, "%s of the CPU of tasks (%s of %s) is %s decompression",
		  draft_percent(d, percent), draft_human(d, value_real(most), AS_SECONDS),
		  draft_human(d, all, AS_SECONDS), draft_upper(d, worst->codec));
	say_gain(r, worst, d);
	return draft_found(d, percent / 100);
}
