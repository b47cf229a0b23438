/* SPDX-License-Identifier: BSD-3-Clause */
/* test_hosts.c - workers by the host and by the network that they share. */
#include "collector/metrics/metrics_hosts.h"
#include "report_fixture.h"

/* "1: 1 3, 2: 2": the groups by their first workers, and their members. */
static const char *groups(const struct hosts *hosts, enum sharing by, char *out, size_t size)
{
	const struct host *h;
	size_t i, k, n = 0;

	*out = 0;
	for (i = 0; i < hosts->by[by].n; i++) {
		h = &hosts->by[by].v[i];
		n += (size_t)snprintf(out + n, size - n, "%s%zu:", i ? ", " : "",
				      h->first->place + 1);
		for (k = 0; k < h->n; k++)
			n += (size_t)snprintf(out + n, size - n, " %zu", h->v[k]->place + 1);
	}
	return out;
}

/* Workers 1 and 2 are on host "one", 3 to 6 on "other" (fx_hello). */
static void test_groups_are_by_boot_id_and_by_namespace_of_it(void **state)
{
	struct fixture *fx = fx_new();
	struct hosts *hosts;
	char text[80];
	int i;

	(void)state;
	for (i = 1; i <= 6; i++)
		fx_hello(fx, i, NULL);
	fx_simple(fx, 6, 1, "k", "s", 0, 1000, 2000, "ok");
	fx->m.workers.v[3]->net_namespace = value_uint(9); /* a container */
	fx->m.workers.v[4]->net_namespace = value_null();
	fx_runs(fx);
	assert_int_equal(fx->runs.v[0].workers.n, 6);
	hosts = hosts_build(&fx->runs.v[0]);
	assert_non_null(hosts);
	assert_string_equal(groups(hosts, SHARE_HOST, text, sizeof(text)), "1: 1 2, 3: 3 4 5 6");
	assert_string_equal(groups(hosts, SHARE_NET, text, sizeof(text)),
			    "1: 1 2, 3: 3 6, 4: 4, 5: 5");
	hosts_free(hosts);

	/* Of the run are 2 and 3 only: whoever shares a host with them has sent samples of it. */
	fx->runs.v[0].workers.v[0] = fx->m.workers.v[1];
	fx->runs.v[0].workers.v[1] = fx->m.workers.v[2];
	fx->runs.v[0].workers.n = 2;
	fx->m.workers.v[5]->boot_id = NULL; /* shares nothing */
	hosts = hosts_build(&fx->runs.v[0]);
	assert_non_null(hosts);
	assert_string_equal(groups(hosts, SHARE_HOST, text, sizeof(text)), "2: 1 2, 3: 3 4 5");
	assert_string_equal(groups(hosts, SHARE_NET, text, sizeof(text)), "2: 1 2, 3: 3");
	hosts_free(hosts);
	fx_free(fx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_groups_are_by_boot_id_and_by_namespace_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
