/* SPDX-License-Identifier: BSD-3-Clause */
/* test_model_rows.c - rows whose numbers become unknown or known, in any order of arrival. */
#include "report_fixture.h"

enum { RECORDS = 3, ORDERS = 6 };

static const uint8_t orders[ORDERS][RECORDS] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
						{1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

/* One record of a row: a later agent has a larger stream, and numbers its records from 0. */
struct said {
	uint64_t stream, number;
	bool known;
	uint64_t value;
};

/* A message that has the row's key, one number that may be nil, and one that is always known. */
struct kind {
	uint64_t type;
	const char *key, *number, *other;
	bool rev; /* the same in all of its records */
};

static const struct kind kinds[] = {
	{CREMA_MSG_FILE, "path", "storage_read_bytes", "read_bytes", false},
	{CREMA_MSG_CODEC, "function", "cpu_ns", "calls", false},
	{CREMA_MSG_SERVER, "server", "latency_sum_ns", "requests", false},
	{CREMA_MSG_COLUMN, "column", "storage_read_bytes", "calls", true},
	{CREMA_MSG_SECTION, "path", "wall_ns", "count", true},
	{CREMA_MSG_GAUGE, "path", "broken", "other", true},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static void say(struct fixture *fx, const struct kind *kind, const struct said *said)
{
	uint8_t id[CREMA_WORKER_ID_BYTES];
	struct crema_frame_header head;
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	memset(id, 1, sizeof(id));
	head = frame_head(CREMA_FRAME_DATA, id, said->stream);
	/* Two records in a frame: the first is of another row. */
	head.first_seq = said->number - 1;
	head.count = 2;
	pack_init(&pk, &b);
	pack_array(&pk, 2);
	for (int mine = 0; mine < 2; mine++) {
		pack_array(&pk, 2);
		pack_u64(&pk, kind->type);
		pack_map(&pk, kind->rev ? 6 : 5);
		pack_kv_text(&pk, kind->key, mine ? "mine" : "another");
		pack_kv_text(&pk, "span", "span");
		pack_kv_text(&pk, "storage", said->known ? "exact" : "unknown");
		pack_kv_maybe(&pk, kind->number, mine && said->known, said->value);
		pack_kv_u64(&pk, kind->other, said->value);
		if (kind->rev)
			pack_kv_u64(&pk, "rev", 7);
	}
	assert_int_equal(model_feed(&fx->m, &head, b.data, b.len), 0);
	buf_release(&b);
}

static struct value number_of(const struct model *m, const struct kind *kind)
{
	switch (kind->type) {
	case CREMA_MSG_FILE:
		return m->files.v[1]->storage_read_bytes;
	case CREMA_MSG_CODEC:
		return m->codecs.v[1]->cpu_ns;
	case CREMA_MSG_SERVER:
		return m->servers.v[1]->latency_sum_ns;
	case CREMA_MSG_COLUMN:
		return m->columns.v[1]->storage_read_bytes;
	case CREMA_MSG_SECTION:
		return m->sections.v[1]->wall_ns;
	default:
		return m->gauges.v[1]->broken;
	}
}

static void assert_number(const struct kind *kind, struct value got, struct value want,
			  const uint8_t *order)
{
	if (got.type != want.type || (want.type == VALUE_UINT && got.v.u != want.v.u))
		fail_msg("%s in the order %d, %d, %d: %s %llu, not %s %llu", kind->number, order[0],
			 order[1], order[2], got.type == VALUE_NULL ? "unknown" : "known",
			 (unsigned long long)got.v.u, want.type == VALUE_NULL ? "unknown" : "known",
			 (unsigned long long)want.v.u);
}

/* Each row, with its records in each order, each record once or twice. */
static void assert_said(const struct said said[RECORDS], struct value want)
{
	for (int i = 0; i < KINDS * ORDERS * 2; i++) {
		const struct kind *kind = &kinds[i % KINDS];
		const uint8_t *order = orders[i / KINDS % ORDERS];
		struct fixture *fx = fx_new();
		const struct file_row *f;

		for (int k = 0; k < RECORDS * (i < KINDS * ORDERS ? 1 : 2); k++)
			say(fx, kind, &said[order[k % RECORDS]]);
		assert_number(kind, number_of(&fx->m, kind), want, order);
		if (kind->type == CREMA_MSG_FILE) {
			f = fx->m.files.v[1];
			assert_string_equal(f->storage,
					    want.type == VALUE_NULL ? "unknown" : "exact");
			assert_uint_value(f->read_bytes, 300);
		}
		fx_free(fx);
	}
}

/* A verdict is taken back, or a call's time could not be measured: the number is too small. */
static void test_a_number_becomes_unknown(void **state)
{
	static const struct said said[] = {
		{5, 8, true, 100}, {5, 9, true, 200}, {5, 10, false, 300}};

	(void)state;
	assert_said(said, value_null());
}

/* A calibration arrives. */
static void test_a_number_becomes_known(void **state)
{
	static const struct said said[] = {
		{5, 8, false, 100}, {5, 9, false, 200}, {5, 10, true, 300}};

	(void)state;
	assert_said(said, value_uint(300));
}

static void test_a_number_becomes_known_again(void **state)
{
	static const struct said said[] = {
		{5, 8, true, 100}, {5, 9, false, 200}, {5, 10, true, 300}};

	(void)state;
	assert_said(said, value_uint(300));
}

/* Another agent in its place numbers its records from 0. */
static void test_the_later_agent_decides(void **state)
{
	static const struct said less[] = {
		{5, 80, true, 100}, {6, 1, true, 200}, {6, 3, false, 300}};
	static const struct said more[] = {
		{5, 80, false, 100}, {5, 90, false, 200}, {6, 1, true, 300}};

	(void)state;
	assert_said(less, value_null());
	assert_said(more, value_uint(300));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_number_becomes_unknown),
		cmocka_unit_test(test_a_number_becomes_known),
		cmocka_unit_test(test_a_number_becomes_known_again),
		cmocka_unit_test(test_the_later_agent_decides),
	};

	return cmocka_run_group_tests_name("model rows", tests, NULL, NULL);
}
