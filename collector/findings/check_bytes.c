/* SPDX-License-Identifier: BSD-3-Clause */
/* check_bytes.c - bytes read twice, without use, in small pieces, from storage or from memory. */
#include "collector/findings/check.h"

/* Of a file with used baskets, as far as known. */
static bool layers_of(const struct file_sum *f, struct layer_values *v)
{
	double used = value_number(f->basket_calls, NULL);

	if (!(used > 0))
		return false;
	layers_values(f, v);
	return true;
}

enum verdict finding_baskets_reread(const struct report *r, struct draft *d)
{
	double all = 0, again = 0, one, most = 0;
	const struct file_sum *f, *worst = NULL;
	struct layer_values v;
	struct value bytes;
	size_t i, n = 0;
	bool known;

	for (i = 0; i < r->files.n; i++) {
		f = &r->files.v[i];
		if (!layers_of(f, &v))
			continue;
		bytes = value_minus(f->basket_bytes, v.unique_basket_bytes);
		one = value_number(bytes, &known);
		if (!known)
			return draft_unknown(d, "unique_basket_bytes");
		n++;
		all += value_number(f->basket_bytes, NULL);
		again += one;
		if (one > most)
			worst = f, most = one;
	}
	if (!n)
		return CHECK_IDLE;
	if (!worst || !reaches(again, all, d->check->first, d->check->second))
		return CHECK_QUIET;
	draft_evidence(d, "file_basket_bytes", value_real(all), "bytes");
	draft_evidence(d, "reread_basket_bytes", value_real(again), "bytes");
	draft_evidence(d, "percent", value_real(again / all * 100), "%");
	draft_evidence(d, "file", value_text(worst->path), "");
	draft_evidence(d, "file_reread_basket_bytes", value_real(most), "bytes");
	draft_sentence(
		d,
		"%s of the basket bytes (%s of %s) had been decompressed before; %s of these "
		"are in %s",
		draft_percent(d, again / all * 100), draft_human(d, value_real(again), AS_BYTES),
		draft_human(d, value_real(all), AS_BYTES),
		draft_human(d, value_real(most), AS_BYTES), draft_name(d, worst->path));
	if (!r->facts->chunks.attempts)
		draft_advise(d, "Tasks read what others have read: give each its own range of "
				"entries (entry_start, entry_stop of TTree.arrays() and iterate()) "
				"that ends where baskets end (TTree.common_entry_offsets()), and "
				"read each column once.");
	/* the cost of uproot building the arrays is additional */
	draft_cost_least(d, cost_part(again, all, cost_of_baskets(r, d->costs)));
	if (d->f.cost_s * 100 < d->f.of_s * LEAST_WARNING_PERCENT)
		d->f.severity = FINDING_NOTE;
	return draft_found(d, again / all);
}

enum verdict finding_read_amplification(const struct report *r, struct draft *d)
{
	double all = 0, used = 0, one, most = 0;
	const struct file_sum *f, *worst = NULL;
	struct layer_values v;
	size_t i, n = 0;

	for (i = 0; i < r->files.n; i++) {
		f = &r->files.v[i];
		if (!layers_of(f, &v))
			continue;
		if (v.unique_bytes.type == VALUE_NULL || v.unique_basket_bytes.type == VALUE_NULL)
			return draft_unknown(d, "unique_bytes");
		/* for mapped files it is unknown which bytes were accessed */
		if (f->mapped_bytes.type != VALUE_UINT || f->mapped_bytes.v.u)
			return draft_unknown(d, "unique_bytes");
		n++;
		one = value_number(v.unique_bytes, NULL) -
		      value_number(v.unique_basket_bytes, NULL);
		all += value_number(v.unique_bytes, NULL);
		used += value_number(v.unique_basket_bytes, NULL);
		if (one > most)
			worst = f, most = one;
	}
	if (!n)
		return CHECK_IDLE;
	if (!worst || !reaches(all, used, d->check->first, 0) || all - used < d->check->second)
		return CHECK_QUIET;
	draft_evidence(d, "unique_bytes", value_real(all), "bytes");
	draft_evidence(d, "unique_basket_bytes", value_real(used), "bytes");
	draft_evidence(d, "amplification", value_real(all / used), "");
	draft_evidence(d, "file", value_text(worst->path), "");
	draft_evidence(d, "file_outside_bytes", value_real(most), "bytes");
	draft_sentence(
		d,
		"of the %s read from files, counting each byte once, the baskets used are %s "
		"(%s); %s unused in %s",
		draft_human(d, value_real(all), AS_BYTES),
		draft_human(d, value_real(used), AS_BYTES),
		draft_human(d, value_real(all / used), AS_TIMES),
		draft_human(d, value_real(most), AS_BYTES), draft_name(d, worst->path));
	draft_cost_least(d, cost_part(all - used, all, d->costs->class_s[CREMA_T_storage_wait]));
	return draft_found(d, (all - used) / all);
}

/* A read call from Python uses less CPU. */
#define READ_CALL_SECONDS 3e-6
#define READS_WARNING_PERCENT 10

/* Whether these calls and all waits for storage can have cost little of the tasks' time. */
static bool reads_are_cheap(const struct report *r, double calls)
{
	const struct tally *t = &r->facts->all;
	bool known;
	double waits = value_number(tally_class(t, CREMA_T_storage_wait), &known);

	return known &&
	       !reaches(waits + calls * READ_CALL_SECONDS, t->wall, READS_WARNING_PERCENT, 0);
}

enum verdict finding_small_reads(const struct report *r, struct draft *d)
{
	struct value calls = metric_read_calls(r->facts), bytes = metric_read_bytes(r->facts);
	const char *opened;
	double n, b, of_line;
	bool known;

	n = value_number(calls, &known);
	if (!known)
		return draft_unknown(d, "read_calls");
	b = value_number(bytes, &known);
	if (!known)
		return draft_unknown(d, "read_bytes");
	if (!(n > 0))
		return CHECK_IDLE;
	if (n < d->check->first || b / n > d->check->second)
		return CHECK_QUIET;
	draft_evidence(d, "read_calls", calls, "calls");
	draft_evidence(d, "read_bytes", bytes, "bytes");
	draft_evidence(d, "mean_bytes", value_real(b / n), "bytes");
	draft_sentence(d, "%s read calls returned %s on average", draft_human(d, calls, AS_COUNT),
		       draft_human(d, value_real(b / n), AS_BYTES));
	opened = draft_opened_by(d, r, CREMA_OPENED_N_read_calls, n, &of_line);
	if (opened)
		draft_sentence_more(d, "; %s of them read what was opened at %s",
				    draft_human(d, value_real(of_line), AS_COUNT), opened);
	if (reads_are_cheap(r, n))
		draft_severity(d, FINDING_NOTE);
	return draft_found(d, 0);
}

/* Compares bytes from storage with those that read calls returned; CHECK_QUIET: both are known. */
static enum verdict from_storage(const struct report *r, struct draft *d, double *storage,
				 double *read)
{
	struct value mapped = metric_mapped_bytes(r->facts);
	bool known;

	*read = value_number(metric_read_bytes(r->facts), &known);
	if (!known)
		return draft_unknown(d, "read_bytes");
	*storage = value_number(metric_disk_read_bytes(r->facts), &known);
	if (!known)
		return draft_unknown(d, "disk_read_bytes");
	if (mapped.type != VALUE_UINT || mapped.v.u)
		return draft_unknown(d, "read_bytes");
	return *read > 0 ? CHECK_QUIET : CHECK_IDLE;
}

static void see_storage(const struct report *r, struct draft *d, double storage, double read)
{
	draft_evidence_metric(d, r, "disk_read_bytes", "bytes");
	draft_evidence_metric(d, r, "read_bytes", "bytes");
	draft_evidence(d, "percent", value_real(storage / read * 100), "%");
}

enum verdict finding_cold_cache(const struct report *r, struct draft *d)
{
	double storage, read;
	enum verdict verdict = from_storage(r, d, &storage, &read);

	if (verdict != CHECK_QUIET || !reaches(storage, read, d->check->first, d->check->second))
		return verdict;
	see_storage(r, d, storage, read);
	draft_sentence(
		d,
		"storage delivered %s, %s of the %s that read calls returned: the files were "
		"not in memory yet",
		draft_human(d, value_real(storage), AS_BYTES),
		draft_percent(d, storage / read * 100), draft_human(d, value_real(read), AS_BYTES));
	return draft_found(d, 0);
}

enum verdict finding_warm_cache(const struct report *r, struct draft *d)
{
	double storage, read;
	enum verdict verdict = from_storage(r, d, &storage, &read);

	if (verdict != CHECK_QUIET || read < d->check->second ||
	    storage * 100 >= read * d->check->first)
		return verdict;
	see_storage(r, d, storage, read);
	draft_sentence(d, "storage delivered %s of the %s that read calls returned (%s)",
		       draft_human(d, value_real(storage), AS_BYTES),
		       draft_human(d, value_real(read), AS_BYTES),
		       draft_percent(d, storage / read * 100));
	return draft_found(d, 0);
}
