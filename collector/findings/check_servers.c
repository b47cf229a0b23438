/* SPDX-License-Identifier: BSD-3-Clause */
/* check_servers.c - requests, and bytes over the network. */
#include <math.h>
#include <string.h>

#include "collector/findings/check.h"

struct requests {
	double n, ns;
};

static bool requests_of(const struct server_sum *s, struct requests *q)
{
	bool n_known, ns_known;

	q->n = value_number(s->requests, &n_known);
	q->ns = value_number(s->latency_sum_ns, &ns_known);
	return n_known && ns_known;
}

static const char *service_advice(const struct server_sum *s)
{
	static const char *const services[][2] = {
#define SERVICE(scheme, advice) {#scheme, advice},
#include "findings.def"
	};

	for (size_t i = 0; s->scheme && i < sizeof(services) / sizeof(*services); i++)
		if (!strcmp(s->scheme, services[i][0]))
			return services[i][1];
	return NULL;
}

void draft_server(struct draft *d, const struct report *r)
{
	const struct server_sum *s, *worst = NULL;
	struct value mean;
	double sum, most = 0;
	size_t i;

	for (i = 0; i < r->servers.n; i++) {
		s = &r->servers.v[i];
		sum = value_number(s->latency_sum_ns, NULL);
		if (s->server && sum > most)
			worst = s, most = sum;
	}
	mean = worst ? value_seconds(value_ratio(worst->latency_sum_ns, worst->requests, 1))
		     : value_null();
	if (mean.type == VALUE_NULL)
		return;
	if (service_advice(worst))
		draft_advise(d, "%s", service_advice(worst));
	draft_evidence(d, "server", value_text(worst->server), "");
	draft_evidence(d, "requests", worst->requests, "requests");
	draft_evidence(d, "mean_latency_seconds", mean, "s");
	draft_sentence_more(d, "; %s answered %s request%s in %s on average",
			    draft_name(d, worst->server), draft_human(d, worst->requests, AS_COUNT),
			    value_number(worst->requests, NULL) == 1 ? "" : "s",
			    draft_human(d, mean, AS_SECONDS));
}

/* A server that computes its answers is not compared with those that send files. */
static bool computes(const struct server_sum *s)
{
	return service_advice(s) != NULL;
}

static struct requests without(struct requests all, struct requests some)
{
	return (struct requests){all.n - some.n, all.ns - some.ns};
}

enum verdict finding_slow_server(const struct report *r, struct draft *d)
{
	struct requests one, of[2] = {{0, 0}, {0, 0}}, slow = {0, 0}, rest; /* of each kind */
	const struct server_sum *worst = NULL;
	double percent, most = 0;
	size_t i;

	if (r->servers.n < 2)
		return CHECK_IDLE;
	for (i = 0; i < r->servers.n; i++) {
		if (!requests_of(&r->servers.v[i], &one))
			return draft_unknown(d, "servers");
		of[computes(&r->servers.v[i])].n += one.n;
		of[computes(&r->servers.v[i])].ns += one.ns;
	}
	for (i = 0; i < r->servers.n; i++) {
		requests_of(&r->servers.v[i], &one);
		rest = without(of[computes(&r->servers.v[i])], one);
		if (one.n < d->check->second || rest.n < d->check->second || !(rest.ns > 0))
			continue;
		percent = one.ns / one.n / (rest.ns / rest.n) * 100;
		if (percent > most)
			worst = &r->servers.v[i], slow = one, most = percent;
	}
	if (!worst || most < d->check->first)
		return CHECK_QUIET;
	rest = without(of[computes(worst)], slow);
	draft_evidence(d, "server", value_text(worst->server ? worst->server : "unknown"), "");
	draft_evidence(d, "requests", value_real(slow.n), "requests");
	draft_evidence(d, "mean_latency_seconds", value_real(slow.ns / slow.n / 1e9), "s");
	draft_evidence(d, "other_requests", value_real(rest.n), "requests");
	draft_evidence(d, "other_mean_latency_seconds", value_real(rest.ns / rest.n / 1e9), "s");
	draft_sentence(d, "%s answered %s requests in %s on average, the other servers in %s (%s)",
		       draft_name(d, worst->server), draft_human(d, value_real(slow.n), AS_COUNT),
		       draft_human(d, value_real(slow.ns / slow.n / 1e9), AS_SECONDS),
		       draft_human(d, value_real(rest.ns / rest.n / 1e9), AS_SECONDS),
		       draft_human(d, value_real(most / 100), AS_TIMES));
	draft_evidence(d, "times", value_real(most / 100), "");
	draft_cost(d, cost_part(slow.ns - slow.n * (rest.ns / rest.n), of[0].ns + of[1].ns,
				d->costs->class_s[CREMA_T_network_wait]));
	return draft_found(d, slow.ns / (of[0].ns + of[1].ns));
}

enum verdict finding_failed_requests(const struct report *r, struct draft *d)
{
	const struct server_sum *worst = NULL;
	double failed = 0, all = 0, one, most = 0;
	bool known;
	size_t i;

	if (!r->servers.n)
		return CHECK_IDLE;
	for (i = 0; i < r->servers.n; i++) {
		one = value_number(r->servers.v[i].failed, &known);
		if (!known)
			return draft_unknown(d, "servers");
		failed += one;
		all += value_number(r->servers.v[i].requests, NULL);
		if (one > most)
			worst = &r->servers.v[i], most = one;
	}
	if (!worst || failed < d->check->first)
		return CHECK_QUIET;
	draft_evidence(d, "failed", value_real(failed), "requests");
	draft_evidence(d, "requests", value_real(all), "requests");
	draft_evidence(d, "server", value_text(worst->server ? worst->server : "unknown"), "");
	draft_evidence(d, "server_failed", value_real(most), "requests");
	draft_sentence(d, "%s of %s requests failed, %s of them to %s",
		       draft_human(d, value_real(failed), AS_COUNT),
		       draft_human(d, value_real(all), AS_COUNT),
		       draft_human(d, value_real(most), AS_COUNT), draft_name(d, worst->server));
	return draft_found(d, all > 0 ? failed / all : 1);
}

/* The host with the longest waits for name lookup; NULL: they were short, or none was recorded. */
static const struct blocking_row *host_of(const struct report *r)
{
	const struct blocking_row *row;
	size_t i;

	for (i = 0; i < r->blocking->rows.n; i++) {
		row = r->blocking->rows.v[i];
		if (row->site->on && !strcmp(row->site->on, "host") && row->site->peer)
			return row;
	}
	return NULL;
}

/* For a task's pool threads the sum counts, so the result is capped at its wait for the network. */
enum verdict finding_name_lookup(const struct report *r, struct draft *d)
{
	const struct tally *t = facts_shown(r->facts);
	struct value s = value_seconds(sum_value(&t->count[CREMA_C_lookup_ns]));
	struct value calls = sum_value(&t->count[CREMA_C_lookup_calls]);
	const struct blocking_row *host;
	double seconds;
	bool known;

	if (!(t->wall > 0))
		return CHECK_IDLE;
	seconds = value_number(s, &known);
	if (!known)
		return draft_unknown(d, "lookup_seconds");
	if (!reaches(seconds, t->wall, d->check->first, d->check->second))
		return CHECK_QUIET;
	draft_evidence(d, "lookup_seconds", s, "s");
	draft_evidence(d, "lookup_calls", calls, "calls");
	draft_evidence(d, "task_wall_seconds", value_real(t->wall), "s");
	draft_evidence(d, "percent", value_real(seconds / t->wall * 100), "%");
	draft_sentence(d, "tasks took %s of their time (%s) to look up host names (DNS), %s time%s",
		       draft_percent(d, seconds / t->wall * 100), draft_human(d, s, AS_SECONDS),
		       draft_human(d, calls, AS_COUNT), value_number(calls, NULL) == 1 ? "" : "s");
	host = host_of(r);
	if (host) {
		s = value_real((double)host->waits.ns / 1e9);
		draft_evidence(d, "host", value_text(host->site->peer), "");
		draft_evidence(d, "host_seconds", s, "s");
		draft_sentence_more(d, "; %s of it waiting for %s", draft_human(d, s, AS_SECONDS),
				    draft_name(d, host->site->peer));
	}
	draft_cost(d, fmin(cost_part(seconds, d->costs->task_seconds, d->costs->any),
			   d->costs->class_s[CREMA_T_network_wait]));
	return draft_found(d, fmin(seconds / t->wall, 1));
}

enum verdict finding_remote_amplification(const struct report *r, struct draft *d)
{
	double received = 0, used = 0;
	const struct attempt *a;
	bool known, baskets;
	size_t i, n = 0;

	for (i = 0; i < r->run->attempts.n; i++) {
		a = r->run->attempts.v[i];
		if (!a->counted || !attempt_is_chunk(a) || !file_is_remote(a->filename))
			continue;
		received += value_number(count_of(&a->c, CREMA_C_network_read_bytes), &known);
		used += value_number(count_of(&a->c, CREMA_C_basket_bytes), &baskets);
		if (!known || !baskets)
			return draft_unknown(d, known ? "basket_bytes" : "network_read_bytes");
		n++;
	}
	if (!n)
		return CHECK_IDLE;
	if (!(used > 0)) /* files of another format */
		return draft_unknown(d, "basket_bytes");
	if (!reaches(received, used, d->check->first, 0) || received - used < d->check->second)
		return CHECK_QUIET;
	draft_evidence(d, "remote_received_bytes", value_real(received), "bytes");
	draft_evidence(d, "remote_basket_bytes", value_real(used), "bytes");
	draft_evidence(d, "amplification", value_real(received / used), "");
	draft_evidence(d, "chunks", value_uint(n), "chunks");
	draft_sentence(d, "%s chunk%s of remote files received %s for %s of baskets used (%s)",
		       draft_human(d, value_uint(n), AS_COUNT), n == 1 ? "" : "s",
		       draft_human(d, value_real(received), AS_BYTES),
		       draft_human(d, value_real(used), AS_BYTES),
		       draft_human(d, value_real(received / used), AS_TIMES));
	draft_cost(d,
		   cost_part(received - used, received, d->costs->class_s[CREMA_T_network_wait]));
	return draft_found(d, (received - used) / received);
}

enum verdict finding_unattributed_network(const struct report *r, struct draft *d)
{
	double tasks, rest;
	bool known;

	tasks = value_number(r->balance.tasks.network_read_bytes, &known);
	if (!known)
		return draft_unknown(d, "completeness");
	rest = value_number(r->balance.unattributed.network_read_bytes, &known);
	if (!known)
		return draft_unknown(d, "completeness");
	if (!reaches(rest, tasks + rest, d->check->first, d->check->second))
		return CHECK_QUIET;
	draft_evidence(d, "unattributed_network_read_bytes", value_real(rest), "bytes");
	draft_evidence(d, "received_bytes", value_real(tasks + rest), "bytes");
	draft_evidence(d, "percent", value_real(rest / (tasks + rest) * 100), "%");
	draft_sentence(d, "%s of what the workers received in total (%s of %s) belongs to no task",
		       draft_percent(d, rest / (tasks + rest) * 100),
		       draft_human(d, value_real(rest), AS_BYTES),
		       draft_human(d, value_real(tasks + rest), AS_BYTES));
	return draft_found(d, rest / (tasks + rest));
}
