/* SPDX-License-Identifier: BSD-3-Clause */
/* check_codecs.c - the cost of compressing and decompressing. */
#include "collector/findings/check.h"

/* Enough to count as a measured speed. */
#define SPEED_LEAST_BYTES 1e6
#define SPEED_LEAST_SECONDS 1e-3
#define FASTER 1.5

/* Bytes out per second of CPU; 0 if this run measured too little of it. */
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
	d->f.gain_s = cost_of_cpu(d->costs, cpu - took);
	draft_evidence(d, "other_codec", value_text(best->codec), "");
	draft_evidence(d, "other_codec_bytes_per_second", value_real(speed_of(best)), "bytes/s");
	draft_evidence(d, "saved_cpu_seconds", value_real(cpu - took), "s");
	draft_sentence_more(d, "; at the %s at which this run decompressed %s, it would save %s",
			    draft_human(d, value_real(speed_of(best) / 1e6), AS_MBS),
			    draft_upper(d, best->codec),
			    draft_human(d, value_real(cpu - took), AS_SECONDS));
}

/* Names the reader of the columns that took most of it; less than a fifth explains little. */
static void say_reader(const struct report *r, double cpu, struct draft *d)
{
	const struct read_line *line;
	const char *name =
		draft_reader(r, d, CREMA_COLUMN_N_decompress_cpu_ns, cpu * 1e9 / 5, &line);
	struct value took;

	if (!name)
		return;
	took = value_seconds(line->decompress_cpu_ns);
	draft_evidence(d, "read_line_decompress_cpu_seconds", took, "s");
	draft_sentence_more(d, "; columns that %s asked for took %s of decompression", name,
			    draft_human(d, took, AS_SECONDS));
}

enum verdict finding_decompression(const struct report *r, struct draft *d)
{
	struct value all = tally_cpu(&r->facts->all);
	const struct codec_sum *c, *worst = NULL;
	double cpu, most = -1, sum = 0, percent;
	bool known;
	size_t i;

	for (i = 0; i < r->codecs.n; i++) {
		c = &r->codecs.v[i];
		cpu = value_number(c->decompress.cpu_ns, &known) / 1e9;
		if (!known)
			return draft_unknown(d, "codecs");
		sum += cpu;
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
	draft_evidence(d, "codec", value_text(worst->codec), "");
	draft_evidence(d, "decompress_cpu_seconds", value_real(most), "s");
	draft_evidence(d, "total_cpu_time_true_all", all, "s");
	draft_evidence(d, "percent", value_real(percent), "%");
	draft_evidence(d, "decompress_out_bytes", worst->decompress.out_bytes, "bytes");
	draft_sentence(d, "%s of the tasks' CPU time (%s of %s) is %s decompression",
		       draft_percent(d, percent), draft_human(d, value_real(most), AS_SECONDS),
		       draft_human(d, all, AS_SECONDS), draft_upper(d, worst->codec));
	say_reader(r, most, d);
	if (codec_is_beside_baskets(r, worst))
		draft_advise(d, "Baskets are the smaller part of what was unpacked: load other "
				"files once per worker (a function with @functools.cache), not in "
				"each chunk.");
	else
		say_gain(r, worst, d);
	draft_cost(d, cost_part(most, sum, d->costs->decompress));

	return draft_found(d, percent / 100);
}

enum verdict finding_compression(const struct report *r, struct draft *d)
{
	struct value all = tally_cpu(&r->facts->all), packing = value_uint(0), in = packing;
	double cpu, whole;
	bool known;
	size_t i;

	if (!r->codecs.n)
		return CHECK_IDLE;
	for (i = 0; i < r->codecs.n; i++) {
		packing = value_plus(packing, r->codecs.v[i].compress.cpu_ns);
		in = value_plus(in, r->codecs.v[i].compress.in_bytes);
	}
	cpu = value_number(packing, &known) / 1e9;
	if (!known)
		return draft_unknown(d, "codecs");
	whole = value_number(all, &known);
	if (!known)
		return draft_unknown(d, "total_cpu_time_true_all");
	if (!reaches(cpu, whole, d->check->first, d->check->second))
		return CHECK_QUIET;
	draft_evidence(d, "compress_cpu_seconds", value_real(cpu), "s");
	draft_evidence(d, "total_cpu_time_true_all", all, "s");
	draft_evidence(d, "percent", value_real(cpu / whole * 100), "%");
	draft_sentence(d, "%s of the tasks' CPU time (%s of %s) is compression",
		       draft_percent(d, cpu / whole * 100),
		       draft_human(d, value_real(cpu), AS_SECONDS),
		       draft_human(d, all, AS_SECONDS));
	if (in.type != VALUE_NULL) {
		draft_evidence(d, "compress_in_bytes", in, "bytes");
		draft_sentence_more(d, ", of %s", draft_human(d, in, AS_BYTES));
	}
	draft_cost(d, d->costs->compress);
	return draft_found(d, cpu / whole);
}

/* The codec with the most bytes among those that hardly reduce the size. */
enum verdict finding_low_compression(const struct report *r, struct draft *d)
{
	const struct codec_sum *c, *worst = NULL;
	struct value cpu;
	double in, out;
	size_t i, n = 0;
	bool known;

	for (i = 0; i < r->codecs.n; i++) {
		c = &r->codecs.v[i];
		if (c->decompress.in_bytes.type == VALUE_NULL ||
		    c->decompress.out_bytes.type == VALUE_NULL)
			return draft_unknown(d, "codecs");
		in = value_number(c->decompress.in_bytes, NULL);
		out = value_number(c->decompress.out_bytes, NULL);
		n += in > 0;
		/* a failed or streamed call may return nothing */
		if (in < d->check->second || out <= 0 || out * 100 >= in * d->check->first)
			continue;
		if (!worst || in > value_number(worst->decompress.in_bytes, NULL))
			worst = c;
	}
	if (!n)
		return CHECK_IDLE;
	if (!worst)
		return CHECK_QUIET;
	in = value_number(worst->decompress.in_bytes, NULL);
	out = value_number(worst->decompress.out_bytes, NULL);
	draft_evidence(d, "codec", value_text(worst->codec), "");
	draft_evidence(d, "decompress_in_bytes", worst->decompress.in_bytes, "bytes");
	draft_evidence(d, "decompress_out_bytes", worst->decompress.out_bytes, "bytes");
	draft_evidence(d, "codec_ratio", value_real(out / in), "");
	draft_sentence(d, "%s expanded %s to only %s (%s)", draft_upper(d, worst->codec),
		       draft_human(d, worst->decompress.in_bytes, AS_BYTES),
		       draft_human(d, worst->decompress.out_bytes, AS_BYTES),
		       draft_human(d, value_real(out / in), AS_TIMES));
	cpu = value_seconds(worst->decompress.cpu_ns);
	value_number(cpu, &known);
	if (known) {
		draft_evidence(d, "decompress_cpu_seconds", cpu, "s");
		draft_sentence_more(d, ", for %s of CPU", draft_human(d, cpu, AS_SECONDS));
	}
	return draft_found(d, 0);
}
