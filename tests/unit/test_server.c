/* SPDX-License-Identifier: BSD-3-Clause */
/* test_server.c - good agents: the handshake, what is journaled, what is acknowledged. */
#include "fixture_server.h"

#include "common/clock.h"

#include <signal.h>
#include <sys/resource.h>

static void good_token_is_welcome_and_acknowledged(void **state)
{
	struct server_stats stats;
	struct agent agent;
	struct site site;

	(void)state;
	site_init(&site);
	assert_int_equal(agent_open(&site, &agent, 1), 0);
	agent_data(&agent, 0, 5);
	assert_int_equal(agent_ack(&agent), 5);
	assert_int_equal(journaled(&site).data, 1); /* written before the acknowledgement */
	assert_int_equal(journaled(&site).hello, 1);
	agent_data(&agent, 5, 2);
	assert_int_equal(agent_ack(&agent), 7);
	server_get_stats(site.server, &stats);
	assert_int_equal(stats.records, 7);
	assert_int_equal(stats.workers, 1);
	assert_int_equal(server_refused_total(&stats), 0);
	agent_close(&agent);
	site_release(&site);
}

/* An agent that has a token proves it only to collectors that have it, too. */
static void insecure_takes_agents_without_a_token(void **state)
{
	struct auth_token wrong = {.text = "some other token of good length", .len = 31};
	struct agent agent;
	struct site site;

	(void)state;
	fixture_insecure = true;
	for (int i = 0; i < 2; i++) {
		fixture_no_token = i;
		site_init(&site);
		agent_connect(&site, &agent, 1);
		agent_auth(&agent, NULL);
		assert_int_equal(agent_proof(&agent), 0);
		assert_false(agent.session.sealed);
		agent_hello(&agent);
		assert_int_equal(agent_receive(&agent), CREMA_FRAME_WELCOME);
		agent_close(&agent);
		agent_connect(&site, &agent, 2);
		agent_auth(&agent, &wrong);
		assert_int_equal(agent_proof(&agent), -EACCES);
		agent_refuse(&agent);
		assert_int_equal(agent_receive(&agent), CREMA_FRAME_REFUSE);
		assert_int_equal(refused(&site, SERVER_bad_token), 1);
		agent_close(&agent);
		agent_connect(&site, &agent, 3);
		agent_auth(&agent, &site.token);
		assert_int_equal(agent_proof(&agent), fixture_no_token ? -EACCES : 0);
		assert_int_equal(agent.session.sealed, !fixture_no_token);
		agent_close(&agent);
		site_release(&site);
	}
	fixture_insecure = fixture_no_token = false;
}

static void old_agents_are_taken_only_if_it_is_said(void **state)
{
	struct auth_token wrong = {.text = "some other token of good length", .len = 31};
	struct agent agent;
	struct site site;

	(void)state;
	for (int i = 0; i < 3; i++) {
		fixture_old_agents = i;
		site_init(&site);
		agent_connect(&site, &agent, 1);
		agent_auth_as(&agent, i == 2 ? &wrong : &site.token, 1);
		agent_hello(&agent);
		assert_int_equal(agent_receive(&agent),
				 i == 1 ? CREMA_FRAME_WELCOME : CREMA_FRAME_REFUSE);
		assert_int_equal(refused(&site, SERVER_bad_version), i == 0);
		assert_int_equal(refused(&site, SERVER_bad_token), i == 2);
		if (i == 1) {
			agent_data(&agent, 0, 3);
			assert_int_equal(agent_ack(&agent), 3);
		}
		agent_close(&agent);
		site_release(&site);
	}
	fixture_old_agents = false;
}

static void duplicates_are_journaled_once(void **state)
{
	struct server_stats stats;
	struct agent agent;
	struct site site;

	(void)state;
	site_init(&site);
	agent_open(&site, &agent, 1);
	agent_data(&agent, 0, 4);
	assert_int_equal(agent_ack(&agent), 4);
	agent_data(&agent, 0, 4);
	assert_int_equal(agent_ack(&agent), 4);
	agent_data(&agent, 2, 4); /* half of it is new */
	assert_int_equal(agent_ack(&agent), 6);
	server_get_stats(site.server, &stats);
	assert_int_equal(stats.records, 6);
	assert_int_equal(stats.duplicate_records, 6);
	assert_int_equal(journaled(&site).data, 2);
	agent_data(&agent, 10, 1);
	assert_int_equal(agent_ack(&agent), 11);
	server_get_stats(site.server, &stats);
	assert_int_equal(stats.missing_records, 4);
	agent_close(&agent);
	site_release(&site);
}

static void a_round_with_few_frames_is_followed_by_a_rest(void **state)
{
	struct agent agent;
	struct site site;
	uint64_t begin_ns;

	(void)state;
	site_init(&site);
	agent_open(&site, &agent, 1);
	begin_ns = clock_mono_ns();
	for (unsigned int i = 0; i < 4; i++) {
		agent_data(&agent, i, 1);
		assert_int_equal(agent_ack(&agent), i + 1);
	}
	assert_true(clock_mono_ns() - begin_ns >= 3 * SERVER_REST_NS);
	agent_close(&agent);
	site_release(&site);
}

static void a_restarted_collector_knows_what_it_has(void **state)
{
	struct agent agent;
	struct site site;

	(void)state;
	site_init(&site);
	agent_open(&site, &agent, 1);
	agent_data(&agent, 0, 4);
	assert_int_equal(agent_ack(&agent), 4);
	agent_close(&agent);
	site_stop(&site);
	site_start(&site);
	assert_int_equal(agent_open(&site, &agent, 1), 4);
	agent_data(&agent, 0, 4);
	assert_int_equal(agent_ack(&agent), 4);
	assert_int_equal(journaled(&site).records, 4);
	agent_data(&agent, 4, 1);
	assert_int_equal(agent_ack(&agent), 5);
	assert_int_equal(journaled(&site).hello, 2); /* one in each segment */
	agent_close(&agent);
	site_release(&site);
}

/* Makes writes really fail. */
static void fill_disk(bool full)
{
	static struct rlimit before;
	struct rlimit small;

	if (full) {
		signal(SIGXFSZ, SIG_IGN);
		getrlimit(RLIMIT_FSIZE, &before);
	}
	small = before;
	if (full)
		small.rlim_cur = 1;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
}

static void a_full_disk_stops_acknowledging_until_it_has_room(void **state)
{
	struct agent agent, other;
	struct site site;

	(void)state;
	site_init(&site);
	agent_open(&site, &agent, 1);
	fill_disk(true);
	agent_data(&agent, 0, 4);
	agent_data(&agent, 4, 4);
	assert_int_equal(agent_receive(&agent), -1);
	assert_true(journal_is_stuck(site.journal));
	/* What is only queued is not acknowledged. */
	assert_int_equal(agent_open(&site, &other, 1), 0);
	fill_disk(false);
	assert_int_equal(agent_ack(&agent), 8);
	assert_false(journal_is_stuck(site.journal));
	assert_int_equal(journaled(&site).records, 8);
	agent_close(&agent);
	agent_close(&other);
	site_release(&site);
}

static void clocks_are_answered(void **state)
{
	struct buf body = BUF_INIT;
	struct unpack map;
	struct agent agent;
	msgpack_packer pk;
	struct site site;

	(void)state;
	site_init(&site);
	agent_open(&site, &agent, 1);
	pack_init(&pk, &body);
	pack_map(&pk, 1);
	pack_kv_u64(&pk, "t0", 12345);
	agent_send(&agent, CREMA_FRAME_CLOCK, 0, 0, &body);
	assert_int_equal(agent_receive(&agent), CREMA_FRAME_CLOCK);
	assert_int_equal(unpack_open(&map, agent.frame.stored, agent.frame.head.raw_bytes), 0);
	assert_int_equal(get_u64(&map.root, "t0", 0), 12345);
	assert_true(get_u64(&map.root, "t1", 0) > UINT64_C(1700000000000000000));
	unpack_release(&map);
	agent_close(&agent);
	site_release(&site);
}

static void frames_may_come_byte_by_byte_and_many_at_once(void **state)
{
	struct buf out = BUF_INIT, frame = BUF_INIT, body = BUF_INIT;
	struct crema_frame_header head;
	struct agent agent;
	struct site site;
	uint32_t i;

	(void)state;
	site_init(&site);
	agent_open(&site, &agent, 1);
	head = frame_head(CREMA_FRAME_DATA, agent.worker, agent.stream);
	head.count = 40;
	data_body(&body, 40, 30000); /* 1.2 MB of payload each */
	for (i = 0; i < 30; i++, head.first_seq += 40) {
		buf_clear(&frame);
		assert_int_equal(frame_encode(&frame, &head, body.data, body.len), 0);
		assert_int_equal(session_send(&agent.session, &out, frame.data, frame.len), 0);
	}
	for (i = 0; i < 100; i++) {
		agent_write(&agent, out.data + i, 1);
		site_turns(&site, 1);
	}
	agent_write(&agent, out.data + 100, out.len - 100);
	while (agent_ack(&agent) < 1200)
		;
	assert_int_equal(journaled(&site).data, 30);
	buf_release(&out);
	buf_release(&frame);
	buf_release(&body);
	agent_close(&agent);
	site_release(&site);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_token_is_welcome_and_acknowledged),
		cmocka_unit_test(insecure_takes_agents_without_a_token),
		cmocka_unit_test(old_agents_are_taken_only_if_it_is_said),
		cmocka_unit_test(duplicates_are_journaled_once),
		cmocka_unit_test(a_round_with_few_frames_is_followed_by_a_rest),
		cmocka_unit_test(a_restarted_collector_knows_what_it_has),
		cmocka_unit_test(a_full_disk_stops_acknowledging_until_it_has_room),
		cmocka_unit_test(clocks_are_answered),
		cmocka_unit_test(frames_may_come_byte_by_byte_and_many_at_once),
	};

	return fixture_run("server", tests);
}
