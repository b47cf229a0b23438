/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_collector.h - a synthetic collector for the tests of the agent's connection, with related
 * fixtures. */
#ifndef TESTS_UNIT_FAKE_COLLECTOR_H
#define TESTS_UNIT_FAKE_COLLECTOR_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#include <cmocka.h>

#include "agent/outbox.h"
#include "agent/takeover.h"
#include "agent/uplink.h"
#include "common/clock.h"
#include "tests/unit/spool_dir.h"

struct collector {
	int listener, fd;
	struct net_address address;
	struct buf in;
	struct auth_token token;
	struct session session; /* the collector's end: what the agent sends, it receives */
	struct auth_start start;
	uint64_t min, max;   /* the versions it offers */
	uint64_t want, next; /* sequence number in WELCOME; end of the received records */
	bool refuse, mute, hello;
	bool ignorant, proofless; /* replies with another token's proof, or with none */
	bool flip;		  /* one bit in the last byte of each reply */
	bool timeless;		  /* does not reply to CLOCK */
	struct buf *calibration;  /* map sent before WELCOME; NULL: an older collector */
	bool hasty;		  /* and before its proof */
	unsigned int hellos, frames, auths, clocks, data;
};

static void reply(struct collector *c, uint8_t type, uint64_t seq, struct buf *body)
{
	struct crema_frame_header h = frame_head(type, worker, 1);
	struct buf frame = BUF_INIT, out = BUF_INIT;

	h.first_seq = seq;
	assert_int_equal(frame_encode(&frame, &h, body ? body->data : NULL, body ? body->len : 0),
			 0);
	assert_int_equal(session_send(&c->session, &out, frame.data, frame.len), 0);
	out.data[out.len - 1] ^= c->flip && c->session.sealed;
	assert_int_equal(write(c->fd, out.data, out.len), out.len);
	buf_release(&frame);
	buf_release(&out);
}

static void challenge(struct collector *c)
{
	struct buf body = BUF_INIT;
	msgpack_packer pk;

	assert_int_equal(auth_random(c->start.collector_nonce, AUTH_NONCE_BYTES), 0);
	pack_init(&pk, &body);
	pack_map(&pk, 3);
	pack_kv_u64(&pk, "min", c->min);
	pack_kv_u64(&pk, "max", c->max);
	pack_kv_bin(&pk, "nonce", c->start.collector_nonce, AUTH_NONCE_BYTES);
	reply(c, CREMA_FRAME_CHALLENGE, 0, &body);
	buf_release(&body);
}

static void on_auth(struct collector *c, const struct frame *f)
{
	struct evp_cipher_ctx_st *cipher = seal_cipher_new();
	struct auth_token other = {"another token than the agent's", 30};
	struct buf body = BUF_INIT;
	struct auth_keys keys;
	msgpack_packer pk;
	struct unpack u;

	c->auths++;
	assert_int_equal(unpack_open(&u, f->stored, f->head.raw_bytes), 0);
	assert_int_equal(u.root.via.map.size, 2); /* a version and a nonce, nothing else */
	assert_int_equal(get_u64(&u.root, "version", 0), CREMA_PROTOCOL);
	if (!get_bin(&u.root, "nonce").ptr) {
		c->proofless = true;
	} else {
		assert_int_equal(get_bin(&u.root, "nonce").len, AUTH_NONCE_BYTES);
		memcpy(c->start.agent_nonce, get_bin(&u.root, "nonce").ptr, AUTH_NONCE_BYTES);
	}
	unpack_release(&u);
	c->start.min = (uint8_t)c->min;
	c->start.max = (uint8_t)c->max;
	c->start.version = CREMA_PROTOCOL;
	memcpy(c->start.worker, f->head.worker, sizeof(c->start.worker));
	assert_int_equal(auth_keys(c->ignorant ? &other : &c->token, &c->start, &keys), 0);
	seal_init(&c->session.in, cipher, keys.to_collector);
	seal_init(&c->session.out, cipher, keys.to_agent);
	pack_init(&pk, &body);
	pack_map(&pk, 1);
	if (c->proofless)
		pack_kv_nil(&pk, "mac");
	else
		pack_kv_bin(&pk, "mac", keys.proof, sizeof(keys.proof));
	if (c->hasty)
		reply(c, CREMA_FRAME_CALIBRATION, 0, c->calibration);
	reply(c, CREMA_FRAME_PROOF, 0, &body);
	c->session.sealed = !c->proofless && !c->ignorant;
	buf_release(&body);
}

static void on_frame(struct collector *c, const struct frame *f)
{
	struct buf body = BUF_INIT;
	msgpack_packer pk;
	struct unpack u;

	pack_init(&pk, &body);
	c->frames++;
	if (f->head.type == CREMA_FRAME_AUTH) {
		on_auth(c, f);
	} else if (f->head.type == CREMA_FRAME_PROOF) {
		assert_true(c->session.sealed);
	} else if (f->head.type == CREMA_FRAME_REFUSE) {
		assert_true(c->ignorant || c->proofless);
	} else if (f->head.type == CREMA_FRAME_HELLO) {
		c->hellos++;
		pack_map(&pk, 1);
		pack_kv_text(&pk, c->refuse ? "reason" : "name", "made up");
		if (c->calibration)
			reply(c, CREMA_FRAME_CALIBRATION, 0, c->calibration);
		reply(c, c->refuse ? CREMA_FRAME_REFUSE : CREMA_FRAME_WELCOME, c->want, &body);
		if (!c->hello)
			c->next = c->want;
		c->hello = true;
	} else if (f->head.type == CREMA_FRAME_CLOCK && c->timeless) {
		c->clocks++;
	} else if (f->head.type == CREMA_FRAME_CLOCK) {
		c->clocks++;
		assert_int_equal(unpack_open(&u, f->stored, f->head.raw_bytes), 0);
		pack_map(&pk, 2);
		pack_kv_u64(&pk, "t0", get_u64(&u.root, "t0", 0));
		pack_kv_u64(&pk, "t1", clock_real_ns() + 5000000000u);
		unpack_release(&u);
		reply(c, CREMA_FRAME_CLOCK, 0, &body);
	} else {
		assert_int_equal(f->head.type, CREMA_FRAME_DATA);
		assert_true(f->head.first_seq <= c->next);
		c->data++;
		c->next = f->head.first_seq + f->head.count;
		if (!c->mute) {
			c->want = c->next;
			reply(c, CREMA_FRAME_ACK, c->next, NULL);
		}
	}
	buf_release(&body);
}

static void hang_up(struct collector *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	buf_clear(&c->in);
	session_release(&c->session);
}

static void serve(struct collector *c)
{
	struct frame f;
	ssize_t n;

	if (c->fd < 0) {
		c->fd = net_accept(c->listener, NULL, 0);
		c->hello = false;
		if (c->fd >= 0)
			challenge(c);
		return;
	}
	assert_int_equal(buf_reserve(&c->in, 4096), 0);
	n = read(c->fd, c->in.data + c->in.len, 4096);
	if (n == 0) {
		hang_up(c);
	}
	if (n <= 0)
		return;
	c->in.len += (size_t)n;
	while ((n = session_frame(&c->session, &f, c->in.data, c->in.len)) > 0) {
		on_frame(c, &f);
		buf_consume(&c->in, (size_t)n);
	}
	assert_int_equal(n, -EAGAIN);
}

static void collector_start(struct collector *c)
{
	char path[PATH_MAX];

	memset(c, 0, sizeof(*c));
	c->fd = -1;
	c->min = CREMA_PROTOCOL_OLDEST;
	c->max = CREMA_PROTOCOL;
	snprintf(path, sizeof(path), "%s/token", dir);
	setenv("CREMA_TOKEN_FILE", path, 1);
	assert_int_equal(auth_token_make(&c->token, path), 0);
	assert_int_equal(net_parse(&c->address, "127.0.0.1:0", 0), 0);
	c->listener = net_listen(&c->address, 4);
	assert_int_equal(net_local(c->listener, &c->address), 0);
}

static void collector_stop(struct collector *c)
{
	close(c->listener);
	hang_up(c);
	buf_release(&c->in);
}

static int src_next(void *arg, const unsigned char **p, size_t *n)
{
	return outbox_next(arg, p, n);
}

static void src_rewind(void *arg, uint64_t seq)
{
	outbox_rewind(arg, seq);
}

static void src_acked(void *arg, uint64_t seq)
{
	outbox_acked(arg, seq);
}

/* A collector, and an agent's outbox with its HELLO for the uplink; spool may be NULL. */
struct site {
	struct collector c;
	struct outbox o;
	struct buf hello;
	struct uplink_source source;
	struct uplink u; /* the test starts and releases it */
};

static void site_start(struct site *s, const char *spool)
{
	memset(s, 0, sizeof(*s));
	collector_start(&s->c);
	outbox_init(&s->o, worker, 1, spool, false);
	make_hello(&s->hello);
	s->source = (struct uplink_source){&s->o,    worker,	 1,	   &s->hello,
					   src_next, src_rewind, src_acked};
}

static void site_stop(struct site *s)
{
	outbox_release(&s->o);
	buf_release(&s->hello);
	collector_stop(&s->c);
}

#endif
