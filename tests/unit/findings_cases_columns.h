/* SPDX-License-Identifier: BSD-3-Clause */
/* findings_cases_columns.h - cases of columns. */
#ifndef FINDINGS_CASES_COLUMNS_H
#define FINDINGS_CASES_COLUMNS_H

struct column_of {
	const char *name, *dataset;
	uint64_t calls, requests, wait_min_ns, preload_tasks, basket_bytes;
};

static void column_row(struct fixture *fx, const struct column_of *c, bool known)
{
	static uint64_t number;

	fx_pairs(fx, 1, CREMA_MSG_COLUMN, "number:u", ++number, "column:s", c->name, "tree:s",
		 "Events", "dataset:s", c->dataset, "span:s", "span", "rev:u", UINT64_C(1),
		 "calls:u", c->calls, "tasks:u", c->calls, "requests:u", c->requests,
		 "wait_min_ns:u", c->wait_min_ns, "network_wait_ns:u",
		 2 * c->requests * c->wait_min_ns, "basket_bytes:u", c->basket_bytes,
		 known ? "preload_tasks:u" : "other:u", c->preload_tasks, NULL);
}

/* 8 requests for three columns, when two would be enough: 6 x 1 s of 120 s saved. */
static bool case_preload_columns(struct fixture *fx, int side)
{
	uint64_t ns = side == BELOW_SECOND ? 166666666 : 1000000000;
	const struct column_of columns[] = {
		{"Jet_pt", "a", 2, 3, ns, 0, 10},
		{"<b>Jet_eta", "a", 2, 3, 2 * ns, 0, 10},
		{"Jet_pt", "b", 1, 3, 3 * ns, 0, 10},
		{"ahead", "b", 1, 0, 0, 1, 1000},
	};
	struct task_record r = chunk(1, "a", 0,
				     side == BELOW	    ? 120001
				     : side == BELOW_SECOND ? 10000
							    : 120000,
				     "/data/a.root", 0, 1000);

	SET_OWN(&r, network_wait, side == BELOW_SECOND ? 9000 : 36000);
	fx_hello(fx, 1, "{}");
	fx_task(fx, 1, &r);
	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		column_row(fx, &columns[i], side != UNKNOWN);
	return true;
}

/* One column was preloaded in two datasets and used in neither, another one was used in one of
 * them. */
static bool case_unused_columns(struct fixture *fx, int side)
{
	const struct column_of columns[] = {
		{"unused", "a", 0, 0, 0, 5, side == BELOW_SECOND ? 399999 : 400000},
		{"unused", "b", 0, 0, 0, 5, 600000},
		{"used", "a", 0, 0, 0, 5,
		 side == BELOW		? 5000001
		 : side == BELOW_SECOND ? 1
					: 5000000},
		{"used", "b", 5, 0, 0, 5, 4000000},
	};
	struct task_record r = chunk(1, "a", 0, 1000, "/data/a.root", 0, 1000);

	fx_hello(fx, 1, "{}");
	fx_task(fx, 1, &r);
	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		column_row(fx, &columns[i], side != UNKNOWN);
	return true;
}

#endif
