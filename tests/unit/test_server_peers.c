/* SPDX-License-Identifier: BSD-3-Clause */
/* test_server_peers.c - bad peers: refused with a reason, counted, without effect on others. */
#include "fixture_server.h"

#include "collector/ingest/server_streams.h"

/* The peer was refused with this reason, and a good one still gets through. */
static void expect_refused(struct site *site, struct agent *agent, enum server_reason reason)
{
	struct agent good;

	assert_int_equal(agent_receive(agent), CREMA_FRAME_REFUSE);
	assert_int_equal(agent_receive(agent), 0);
	assert_int_equal(refused(site, reason), 1);
	agent_close(agent);
	assert_int_equal(agent_open(site, &good, 200), 0);
	agent_data(&good, 0, 1);
	assert_int_equal(agent_ack(&good), 1);
	assert_int_equal(connected(site), 1);
	agent_close(&good);
	assert_int_equal(connected(site), 0);
}

static void wrong_token_is_refused(void **state)
{
	struct auth_token wrong = {.text = "some other token of good length"};
	struct agent agent;
	struct site site;

	(void)state;
	site_init(&site);
	wrong.len = strlen(wrong.text);
	agent_connect(&site, &agent, 1);
	agent_auth(&agent, &wrong);
	assert_int_equal(agent_proof(&agent), -EACCES);
	agent_refuse(&agent);
	expect_refused(&site, &agent, SERVER_bad_token);
	site_release(&site);
}

static void no_token_is_refused(void **state)
{
	struct agent agent;
	struct site site;

	(void)state;
	site_init(&site);
	agent_connect(&site, &agent, 1);
	agent_auth(&agent, NULL);
	expect_refused(&site, &agent, SERVER_bad_token);
	site_release(&site);
}

/* A peer that ignores the proof and continues as if it had the token. */
static void a_stranger_who_goes_on_is_refused(void **state)
{
	struct auth_token wrong = {.text = "some other token of good length", .len = 31};
	struct auth_keys keys;
	struct agent agent;
	struct site site;

	(void)state;
	for (int sealed = 0; sealed < 2; sealed++) {
		site_init(&site);
		agent_connect(&site, &agent, 1);
		agent_auth(&agent, &wrong);
		assert_int_equal(agent_receive(&agent), CREMA_FRAME_PROOF);
		assert_int_equal(auth_keys(&wrong, &agent.session.start, &keys), 0);
		seal_init(&agent.session.out, seal_cipher_new(), keys.to_collector);
		agent.session.in.cipher = agent.session.out.cipher; /* is released */
		agent.session.sealed = sealed;
		agent_hello(&agent);
		agent.session.sealed = false;
		expect_refused(&site, &agent, sealed ? SERVER_bad_token : SERVER_bad_order);
		site_release(&site);
	}
}

/* The same bytes on a second connection: its challenge, and therefore its keys, differ. */
static void a_replayed_connection_is_refused(void **state)
{
	struct agent first, second;
	struct buf out = BUF_INIT;
	struct unpack map;
	struct site site;
	uint8_t body[200];
	size_t n;

	(void)state;
	site_init(&site);
	agent_connect(&site, &first, 1);
	agent_connect(&site, &second, 1);
	assert_memory_not_equal(first.challenge, second.challenge, AUTH_NONCE_BYTES);
	assert_int_equal(unpack_open(&map, first.offer.data, first.offer.len), 0);
	assert_int_equal(session_answer(&first.session, &site.token, &map.root, first.worker, &out),
			 0);
	unpack_release(&map);
	agent_write(&first, out.data, out.len);
	agent_write(&second, out.data, out.len);
	buf_clear(&out);
	assert_int_equal(agent_receive(&first), CREMA_FRAME_PROOF);
	assert_int_equal(unpack_open(&map, first.frame.stored, first.frame.head.raw_bytes), 0);
	assert_int_equal(session_proof(&first.session, &map.root, &out), 0);
	unpack_release(&map);
	n = out.len;
	assert_true(n < sizeof(body));
	memcpy(body, out.data, n);
	agent_write(&first, body, n);
	site_turns(&site, 3);
	assert_int_equal(refused(&site, SERVER_bad_token), 0);
	assert_int_equal(agent_receive(&second), CREMA_FRAME_PROOF);
	agent_write(&second, body, n);
	expect_refused(&site, &second, SERVER_bad_token);
	agent_close(&first);
	buf_release(&out);
	site_release(&site);
}

/* Sealed records in transit: one bit changed, one duplicated, one removed, two swapped. */
static void what_is_changed_on_its_way_ends_the_connection(void **state)
{
	enum { CHANGED, LENGTH, TWICE, LEFT_OUT, SWAPPED, WAYS };
	struct crema_frame_header head;
	struct buf frame = BUF_INIT, out[2] = {BUF_INIT, BUF_INIT}, body = BUF_INIT;
	struct agent agent;
	struct site site;

	(void)state;
	for (int way = 0; way < WAYS; way++) {
		site_init(&site);
		agent_open(&site, &agent, 1);
		agent_data(&agent, 0, 2);
		assert_int_equal(agent_ack(&agent), 2);
		for (unsigned int i = 0; i < 2; i++) {
			head = frame_head(CREMA_FRAME_DATA, agent.worker, agent.stream);
			head.first_seq = 2 + i;
			head.count = 1;
			data_body(&body, 1, 10);
			assert_int_equal(frame_encode_buf(&frame, &head, &body), 0);
			assert_int_equal(
				session_send(&agent.session, &out[i], frame.data, frame.len), 0);
			buf_release(&frame);
		}
		if (way == CHANGED)
			out[0].data[out[0].len / 2] ^= 16;
		if (way == LENGTH)
			out[0].data[0] -= 1;
		if (way == TWICE)
			agent_write(&agent, out[0].data, out[0].len);
		if (way == LEFT_OUT || way == SWAPPED)
			agent_write(&agent, out[1].data, out[1].len);
		else
			agent_write(&agent, out[0].data, out[0].len);
		expect_refused(&site, &agent, SERVER_bad_seal);
		assert_int_equal(journaled(&site).records, way == TWICE ? 4 : 3);
		buf_release(&out[0]);
		buf_release(&out[1]);
		site_release(&site);
	}
}

static void data_before_the_token_is_refused(void **state)
{
	struct agent agent;
	struct site site;

	(void)state;
	site_init(&site);
	agent_connect(&site, &agent, 0); /* an unauthenticated connection has this identity */
	agent.stream = 0;
	agent_data(&agent, 0, 1);
	expect_refused(&site, &agent, SERVER_bad_order);
	assert_int_equal(journaled(&site).data, 1); /* the good one's */
	site_release(&site);
}

static void wrong_version_is_refused(void **state)
{
	struct agent agent;
	struct site site;

	(void)state;
	site_init(&site);
	agent_connect(&site, &agent, 1);
	agent_auth_as(&agent, &site.token, CREMA_PROTOCOL + 1);
	expect_refused(&site, &agent, SERVER_bad_version);
	site_release(&site);
}

static void garbage_is_refused(void **state)
{
	struct agent agent;
	struct site site;

	(void)state;
	site_init(&site);
	agent_connect(&site, &agent, 1);
	agent_write(&agent, "GET / HTTP/1.1\r\n\r\n", 18);
	expect_refused(&site, &agent, SERVER_bad_frame);
	site_release(&site);
}

static void a_wrong_crc_is_refused(void **state)
{
	struct crema_frame_header head;
	struct buf body = BUF_INIT, out = BUF_INIT, sealed = BUF_INIT;
	struct agent agent;
	struct site site;

	(void)state;
	site_init(&site);
	agent_open(&site, &agent, 1);
	data_body(&body, 3, 10);
	head = frame_head(CREMA_FRAME_DATA, agent.worker, agent.stream);
	head.count = 3;
	assert_int_equal(frame_encode(&out, &head, body.data, body.len), 0);
	out.data[out.len - 1] ^= 1;
	assert_int_equal(session_send(&agent.session, &sealed, out.data, out.len), 0);
	agent_write(&agent, sealed.data, sealed.len);
	expect_refused(&site, &agent, SERVER_bad_frame);
	assert_int_equal(journaled(&site).records, 1);
	buf_release(&body);
	buf_release(&out);
	buf_release(&sealed);
	site_release(&site);
}

static void a_claim_of_a_large_frame_is_refused_by_its_header(void **state)
{
	struct crema_frame_header head = frame_head(CREMA_FRAME_AUTH, NULL, 0);
	struct agent agent;
	struct site site;

	(void)state;
	site_init(&site);
	head.magic = CREMA_WIRE_MAGIC;
	head.version = CREMA_WIRE_VERSION;
	head.stored_bytes = head.raw_bytes = SERVER_AUTH_BYTES + 1;
	agent_connect(&site, &agent, 1);
	agent_write(&agent, &head, sizeof(head));
	expect_refused(&site, &agent, SERVER_too_large);
	site_release(&site);
}

static void content_that_is_no_messages_is_refused(void **state)
{
	static const uint8_t text[] = {0x91, 0xa2, 'h', 'i'};
	struct buf body = BUF_INIT;
	struct agent agent;
	struct site site;

	(void)state;
	site_init(&site);
	agent_open(&site, &agent, 1);
	buf_add(&body, text, sizeof(text));
	agent_send(&agent, CREMA_FRAME_DATA, 0, 1, &body);
	expect_refused(&site, &agent, SERVER_bad_payload);
	site_release(&site);
}

static void half_a_frame_then_close_is_counted(void **state)
{
	struct crema_frame_header head = frame_head(CREMA_FRAME_AUTH, NULL, 0);
	struct agent agent;
	struct site site;

	(void)state;
	site_init(&site);
	head.magic = CREMA_WIRE_MAGIC;
	agent_connect(&site, &agent, 1);
	agent_write(&agent, &head, 30);
	site_turns(&site, 3);
	agent_close(&agent);
	assert_int_equal(refused(&site, SERVER_cut), 1);
	site_release(&site);
}

static void slow_peers_are_dropped(void **state)
{
	struct agent silent, half;
	struct site site;
	static const uint8_t begun[30] = {100}; /* part of a record */

	(void)state;
	fixture_patience_ms = 300;
	site_init(&site);
	fixture_patience_ms = 5000;
	agent_open(&site, &half, 2);
	agent_write(&half, begun, sizeof(begun));
	agent_connect(&site, &silent, 1);
	assert_int_equal(agent_receive(&silent), CREMA_FRAME_REFUSE);
	assert_int_equal(agent_receive(&half), CREMA_FRAME_REFUSE);
	assert_int_equal(refused(&site, SERVER_too_slow), 2);
	agent_close(&silent);
	agent_close(&half);
	site_release(&site);
}

/* A limited number of streams with records is kept per worker; those without are forgotten. */
static void a_worker_has_so_many_streams(void **state)
{
	struct agent agent, other;
	struct server_stats stats;
	struct site site;

	(void)state;
	site_init(&site);
	agent_open(&site, &agent, 1);
	for (unsigned int i = 0; i < 2 * SERVER_STREAMS_OF_WORKER; i++) {
		agent.stream = 100000 + i;
		agent_hello(&agent);
		assert_int_equal(agent_receive(&agent), CREMA_FRAME_WELCOME);
	}
	for (unsigned int i = 0; i < SERVER_STREAMS_OF_WORKER; i++) {
		agent.stream = 1 + i;
		agent_hello(&agent);
		assert_int_equal(agent_receive(&agent), CREMA_FRAME_WELCOME);
		agent_data(&agent, 0, 1);
		assert_int_equal(agent_ack(&agent), 1);
	}
	agent_close(&agent);
	agent_connect(&site, &agent, 1); /* a stream that is known is still accepted */
	agent.stream = 5;
	agent_auth(&agent, &site.token);
	assert_int_equal(agent_proof(&agent), 0);
	agent_hello(&agent);
	assert_int_equal(agent_receive(&agent), CREMA_FRAME_WELCOME);
	assert_int_equal(agent.frame.head.first_seq, 1);
	agent_open(&site, &other, 2);
	server_get_stats(site.server, &stats);
	assert_int_equal(stats.workers, 2);
	agent_close(&other);
	agent.stream = 100000;
	agent_hello(&agent);
	expect_refused(&site, &agent, SERVER_too_many_streams);
	site_release(&site);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_token_is_refused),
		cmocka_unit_test(no_token_is_refused),
		cmocka_unit_test(a_stranger_who_goes_on_is_refused),
		cmocka_unit_test(a_replayed_connection_is_refused),
		cmocka_unit_test(what_is_changed_on_its_way_ends_the_connection),
		cmocka_unit_test(data_before_the_token_is_refused),
		cmocka_unit_test(wrong_version_is_refused),
		cmocka_unit_test(garbage_is_refused),
		cmocka_unit_test(a_wrong_crc_is_refused),
		cmocka_unit_test(a_claim_of_a_large_frame_is_refused_by_its_header),
		cmocka_unit_test(content_that_is_no_messages_is_refused),
		cmocka_unit_test(half_a_frame_then_close_is_counted),
		cmocka_unit_test(slow_peers_are_dropped),
		cmocka_unit_test(a_worker_has_so_many_streams),
	};

	return fixture_run("server_peers", tests);
}
