/* SPDX-License-Identifier: BSD-3-Clause */
/* test_hosts.c - workers grouped by host and by the network that they share. */
#include "collector/metrics/metrics_hosts.h"
#include "report_fixture.h"

/* "1: 1 3, 2: 2": the groups by their first workers, with their members. */
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

	/* Only 2 and 3 belong to the run: workers that share a host with them have sent its
	 * samples. */
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

/* Sums over different sets of mounts cannot be compared, although each of them grows. */
static void test_mounts_that_come_and_go(void **state)
{
	struct fixture *fx;
	uint64_t set;

	(void)state;
	for (set = 7; set <= 8; set++) {
		fx = fx_new();
		fx_hello(fx, 1, NULL);
		fx_simple(fx, 1, 1, "k", "s", 0, 1000, 2000, "ok");
		fx_map(fx, 1, CREMA_MSG_HOST, "boot_ns", AT(900), "nfs_set", UINT64_C(7),
		       "nfs_read_bytes", UINT64_C(1000), "lustre_set", UINT64_C(1),
		       "lustre_read_bytes", UINT64_C(50), NULL);
		fx_map(fx, 1, CREMA_MSG_HOST, "boot_ns", AT(2100), "nfs_set", set, "nfs_read_bytes",
		       UINT64_C(31000), "lustre_set", UINT64_C(1), "lustre_read_bytes",
		       UINT64_C(70), NULL);
		fx_runs(fx);
		if (set == 7)
			assert_uint_value(metric_value(fx_facts(fx, 0), "host_nfs_read_bytes"),
					  30000);
		else
			assert_unknown(metric_value(fx_facts(fx, 0), "host_nfs_read_bytes"));
		assert_uint_value(metric_value(&fx->facts, "host_lustre_read_bytes"), 20);
		assert_unknown(metric_value(&fx->facts, "host_nfs_server_read_bytes"));
		fx_free(fx);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_groups_are_by_boot_id_and_by_namespace_of_it),
		cmocka_unit_test(test_mounts_that_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
