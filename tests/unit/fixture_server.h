/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fixture_server.h - the real server over a socketpair, in one thread: the test plays the agent and
 * runs the loop's turns. Included by one test file each.
 */
#ifndef TESTS_FIXTURE_SERVER_H
#define TESTS_FIXTURE_SERVER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collector/ingest/server.h"
#include "common/log.h"
#include "common/session.h"
#include "ids.h"

struct site {
	char dir[64];
	struct auth_token token;
	struct loop *loop;
	struct journal *journal;
	struct server *server;
};

struct agent {
	struct site *site;
	int fd;
	uint8_t worker[16], challenge[AUTH_NONCE_BYTES];
	uint64_t stream;
	struct session session;
	struct buf offer; /* the challenge's payload */
	struct buf in;
	struct frame frame; /* the last one received */
	size_t used;
	bool ended;
};

/* Not every test uses every function. */
#define FIXTURE static __attribute__((unused))

static uint64_t fixture_segment_bytes;
static int64_t fixture_patience_ms = 5000; /* a slower peer is refused */
static struct live *fixture_live;	   /* what the server feeds, or NULL */
static int (*fixture_append)(struct framefile *file, const void *frames, size_t bytes);
static bool fixture_insecure, fixture_no_token, fixture_old_agents;
static const char *fixture_calibration[SERVER_CALIBRATIONS];
static bool fixture_ring = true; /* the journal is written with io_uring, if available */

FIXTURE void site_start(struct site *site)
{
	struct journal_config journal = {.dir = site->dir,
					 .segment_bytes = fixture_segment_bytes,
					 .sync_ms = 20,
					 .append = fixture_append};
	struct server_config server = {.name = "here",
				       .handshake_ms = fixture_patience_ms,
				       .frame_ms = fixture_patience_ms,
				       .linger_ms = 1500,
				       .log_ms = 1,
				       .retry_ms = 10,
				       .sweep_ms = 10};
	int err;

	site->loop = loop_new();
	assert_non_null(site->loop);
	journal.loop = fixture_ring ? site->loop : NULL;
	site->journal = journal_open(&journal, &err);
	assert_non_null(site->journal);
	server.loop = site->loop;
	server.journal = site->journal;
	server.live = fixture_live;
	server.token = fixture_no_token ? NULL : &site->token;
	server.insecure = fixture_insecure;
	server.old_agents = fixture_old_agents;
	memcpy(server.calibration, fixture_calibration, sizeof(server.calibration));
	site->server = server_new(&server);
	assert_non_null(site->server);
	assert_int_equal(server_restore(site->server, site->dir), 0);
}

FIXTURE void site_stop(struct site *site)
{
	server_free(site->server);
	journal_close(site->journal);
	loop_free(site->loop);
}

FIXTURE void site_init(struct site *site)
{
	memset(site, 0, sizeof(*site));
	strcpy(site->dir, "/tmp/crema-unit-XXXXXX");
	assert_non_null(mkdtemp(site->dir));
	strcpy(site->token.text, "a token of more than sixteen bytes");
	site->token.len = strlen(site->token.text);
	log_to(open("/dev/null", O_WRONLY | O_CLOEXEC));
	site_start(site);
}

FIXTURE void site_release(struct site *site)
{
	char **names, path[512];
	int i, n;

	site_stop(site);
	n = framefile_list(site->dir, &names);
	for (i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", site->dir, names[i]);
		unlink(path);
	}
	free(names);
	assert_int_equal(rmdir(site->dir), 0);
}

FIXTURE void site_turns(struct site *site, int n)
{
	while (n--)
		assert_int_equal(loop_turn(site->loop, 5), 0);
}

/* Waits for one frame; returns its type, 0 if the collector closed, or -1 if nothing arrived. */
FIXTURE int agent_receive(struct agent *agent)
{
	ssize_t n;
	int i;

	buf_consume(&agent->in, agent->used);
	agent->used = 0;
	for (i = 0; i < 200; i++) {
		n = session_frame(&agent->session, &agent->frame, agent->in.data, agent->in.len);
		if (n > 0) {
			agent->used = (size_t)n;
			return agent->frame.head.type;
		}
		assert_int_equal(n, -EAGAIN);
		if (agent->ended)
			return 0;
		site_turns(agent->site, 1);
		buf_reserve(&agent->in, 65536);
		n = recv(agent->fd, agent->in.data + agent->in.len, 65536, MSG_DONTWAIT);
		if (n > 0)
			agent->in.len += (size_t)n;
		else if (n == 0 || errno != EAGAIN)
			agent->ended = true;
	}
	return -1;
}

FIXTURE void agent_write(struct agent *agent, const void *p, size_t n)
{
	const char *at = p;
	ssize_t put;
	int i;

	for (i = 0; n && i < 1000; i++) {
		put = send(agent->fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (put > 0) {
			at += put;
			n -= (size_t)put;
		}
		site_turns(agent->site, n ? 1 : 0);
	}
}

FIXTURE void agent_send(struct agent *agent, uint8_t type, uint64_t seq, uint32_t count,
			struct buf *body)
{
	struct crema_frame_header head = frame_head(type, agent->worker, agent->stream);
	struct buf frame = BUF_INIT, out = BUF_INIT;

	head.first_seq = seq;
	head.count = count;
	assert_int_equal(frame_encode(&frame, &head, body->data, body->len), 0);
	assert_int_equal(session_send(&agent->session, &out, frame.data, frame.len), 0);
	agent_write(agent, out.data, out.len);
	buf_release(&frame);
	buf_release(&out);
	buf_release(body);
}

FIXTURE void agent_connect(struct site *site, struct agent *agent, uint8_t id)
{
	struct unpack map;
	int fd[2];

	memset(agent, 0, sizeof(*agent));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	agent->site = site;
	agent->fd = fd[1];
	agent->stream = 1000;
	memset(agent->worker, id, sizeof(agent->worker));
	server_accept(site->server, fd[0]);
	assert_int_equal(agent_receive(agent), CREMA_FRAME_CHALLENGE);
	assert_int_equal(unpack_open(&map, agent->frame.stored, agent->frame.head.raw_bytes), 0);
	assert_int_equal(get_bin(&map.root, "nonce").len, AUTH_NONCE_BYTES);
	memcpy(agent->challenge, get_bin(&map.root, "nonce").ptr, AUTH_NONCE_BYTES);
	unpack_release(&map);
	assert_int_equal(buf_add(&agent->offer, agent->frame.stored, agent->frame.head.raw_bytes),
			 0);
}

/* Sends AUTH of that version; for protocol 1 with its kind of proof. */
FIXTURE void agent_auth_as(struct agent *agent, const struct auth_token *token, uint64_t version)
{
	static const uint8_t nonce[AUTH_NONCE_BYTES] = {7};
	uint8_t mac[AUTH_MAC_BYTES];
	struct buf body = BUF_INIT;
	msgpack_packer pk;

	assert_int_equal(auth_mac(token, agent->challenge, nonce, agent->worker, mac), 0);
	pack_init(&pk, &body);
	pack_map(&pk, 3);
	pack_kv_u64(&pk, "version", version);
	pack_kv_bin(&pk, "nonce", nonce, sizeof(nonce));
	pack_kv_bin(&pk, "mac", mac, sizeof(mac));
	agent_send(agent, CREMA_FRAME_AUTH, 0, 0, &body);
}

/* Sends AUTH as agents do; token NULL: without one. */
FIXTURE void agent_auth(struct agent *agent, const struct auth_token *token)
{
	struct buf out = BUF_INIT;
	struct unpack map;

	assert_int_equal(unpack_open(&map, agent->offer.data, agent->offer.len), 0);
	assert_int_equal(session_answer(&agent->session, token, &map.root, agent->worker, &out), 0);
	unpack_release(&map);
	agent_write(agent, out.data, out.len);
	buf_release(&out);
}

/* Checks the collector's proof and responds: 0 or -EACCES. */
FIXTURE int agent_proof(struct agent *agent)
{
	struct buf out = BUF_INIT;
	struct unpack map;
	int rc;

	assert_int_equal(agent_receive(agent), CREMA_FRAME_PROOF);
	assert_int_equal(unpack_open(&map, agent->frame.stored, agent->frame.head.raw_bytes), 0);
	rc = session_proof(&agent->session, &map.root, &out);
	unpack_release(&map);
	agent_write(agent, out.data, out.len);
	buf_release(&out);
	return rc;
}

/* Sends what an agent sends after a wrong proof. */
FIXTURE void agent_refuse(struct agent *agent)
{
	struct buf body = BUF_INIT;
	msgpack_packer pk;

	pack_init(&pk, &body);
	pack_map(&pk, 1);
	pack_kv_text(&pk, "reason", "wrong token");
	agent_send(agent, CREMA_FRAME_REFUSE, 0, 0, &body);
}

FIXTURE void agent_hello(struct agent *agent)
{
	struct buf body = BUF_INIT;
	msgpack_packer pk;

	pack_init(&pk, &body);
	pack_map(&pk, 2);
	msgpack_pack_str(&pk, 5);
	msgpack_pack_str_body(&pk, "facts", 5);
	pack_map(&pk, 2);
	pack_kv_text(&pk, "host", "node");
	pack_kv_u64(&pk, "pid", 42);
	msgpack_pack_str(&pk, 11);
	msgpack_pack_str_body(&pk, "task_fields", 11);
	pack_array(&pk, 0);
	agent_send(agent, CREMA_FRAME_HELLO, 0, 0, &body);
}

/* The complete handshake; returns the next sequence that the collector expects. */
FIXTURE uint64_t agent_open(struct site *site, struct agent *agent, uint8_t id)
{
	agent_connect(site, agent, id);
	agent_auth(agent, &site->token);
	assert_int_equal(agent_proof(agent), 0);
	agent_hello(agent);
	assert_int_equal(agent_receive(agent), CREMA_FRAME_WELCOME);
	return agent->frame.head.first_seq;
}

FIXTURE void data_body(struct buf *body, uint32_t count, size_t filler)
{
	static const char text[65536];
	msgpack_packer pk;
	uint32_t i;

	pack_init(&pk, body);
	pack_array(&pk, count);
	for (i = 0; i < count; i++) {
		pack_array(&pk, 3);
		pack_u64(&pk, CREMA_MSG_SAMPLE);
		pack_u64(&pk, i);
		pack_bin(&pk, text, filler);
	}
}

FIXTURE void agent_data(struct agent *agent, uint64_t seq, uint32_t count)
{
	struct buf body = BUF_INIT;

	data_body(&body, count, 10);
	agent_send(agent, CREMA_FRAME_DATA, seq, count, &body);
}

/* The next response must be an acknowledgement; returns the sequence below which all is
 * acknowledged. */
FIXTURE uint64_t agent_ack(struct agent *agent)
{
	assert_int_equal(agent_receive(agent), CREMA_FRAME_ACK);
	return agent->frame.head.first_seq;
}

FIXTURE void agent_close(struct agent *agent)
{
	close(agent->fd);
	session_release(&agent->session);
	buf_release(&agent->offer);
	buf_release(&agent->in);
	site_turns(agent->site, 2);
}

FIXTURE uint64_t refused(struct site *site, enum server_reason reason)
{
	struct server_stats stats;

	server_get_stats(site->server, &stats);
	return stats.refused[reason];
}

FIXTURE uint64_t connected(struct site *site)
{
	struct server_stats stats;

	server_get_stats(site->server, &stats);
	return stats.connected;
}

/* Runs the tests with a journal that is written with io_uring, and without; returns the
 * failures. */
#define fixture_run(name, tests) fixture_on_each(name, tests, sizeof(tests) / sizeof((tests)[0]))

FIXTURE void no_answer(void *arg, int result)
{
	(void)arg, (void)result;
}

FIXTURE bool has_io_uring(void)
{
	struct loop *loop = loop_new();
	struct loop_file *file = loop_file_new(loop, no_answer, NULL);
	bool has = file != NULL;

	loop_file_free(file);
	loop_free(loop);
	return has;
}

FIXTURE int fixture_on_each(const char *name, const struct CMUnitTest *tests, size_t n)
{
	char title[128];
	int failed = 0;

	for (int ring = 0; ring < 2; ring++) {
		if (ring && !has_io_uring()) {
			printf("%s: no io_uring here\n", name);
			continue;
		}
		fixture_ring = ring;
		snprintf(title, sizeof(title), "%s, journal by %s", name,
			 ring ? "io_uring" : "pwrite");
		failed += _cmocka_run_group_tests(title, tests, n, NULL, NULL);
	}
	return failed;
}

struct counted {
	unsigned int hello, data;
	uint64_t records;
};

FIXTURE void count_frame(void *arg, const struct frame *frame)
{
	struct counted *counted = arg;

	counted->hello += frame->head.type == CREMA_FRAME_HELLO;
	counted->data += frame->head.type == CREMA_FRAME_DATA;
	if (frame->head.type == CREMA_FRAME_DATA)
		counted->records += frame->head.count;
	assert_int_not_equal(frame->head.type, CREMA_FRAME_AUTH);
}

/* The contents of the journal on disk. */
FIXTURE struct counted journaled(struct site *site)
{
	struct counted counted = {0, 0, 0};

	assert_int_equal(journal_scan_from(site->dir, 0, count_frame, &counted, NULL), 0);
	return counted;
}

#endif
