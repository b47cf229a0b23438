/* SPDX-License-Identifier: BSD-3-Clause */
/* test_agent_link.c - the agent's connection and dead agents' spools, with a made-up collector. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utime.h>

#include <cmocka.h>

#include "agent/outbox.h"
#include "agent/takeover.h"
#include "agent/uplink.h"
#include "common/clock.h"

static const uint8_t worker[16] = { 0xcd };
static char dir[] = "/tmp/crema-test-XXXXXX";

static uint64_t add(struct outbox *o, enum outbox_class class, uint64_t v)
{
	msgpack_packer *pk = outbox_begin(o, class);

	pack_array(pk, 2);
	pack_u64(pk, CREMA_MSG_SAMPLE);
	pack_u64(pk, v);
	return outbox_end(o, class);
}

static int files(void)
{
	char **names;
	int n = framefile_list(dir, &names);

	free(names);
	return n;
}

struct collector {
	int listener, fd;
	struct net_address address;
	struct buf in;
	struct auth_token token;
	uint8_t nonce[AUTH_NONCE_BYTES];
	uint64_t want, next; /* WELCOME says want; next = records seen up to */
	bool refuse, mute, hello;
	unsigned int hellos;
};

static void reply(struct collector *c, uint8_t type, uint64_t seq, struct buf *body)
{
	struct crema_frame_header h = frame_head(type, worker, 1);
	struct buf out = BUF_INIT;

	h.first_seq = seq;
	assert_int_equal(frame_encode(&out, &h, body ? body->data : NULL, body ? body->len : 0), 0);
	assert_int_equal(write(c->fd, out.data, out.len), out.len);
	buf_release(&out);
}

static void challenge(struct collector *c)
{
	struct buf body = BUF_INIT;
	msgpack_packer pk;

	assert_int_equal(auth_random(c->nonce, sizeof(c->nonce)), 0);
	pack_init(&pk, &body);
	pack_map(&pk, 3);
	pack_kv_u64(&pk, "min", 1);
	pack_kv_u64(&pk, "max", 1);
	pack_kv_bin(&pk, "nonce", c->nonce, sizeof(c->nonce));
	reply(c, CREMA_FRAME_CHALLENGE, 0, &body);
	buf_release(&body);
}

static void on_frame(struct collector *c, const struct frame *f)
{
	uint8_t mac[AUTH_MAC_BYTES];
	struct buf body = BUF_INIT;
	msgpack_packer pk;
	struct unpack u;

	pack_init(&pk, &body);
	if (f->head.type == CREMA_FRAME_AUTH) {
		assert_int_equal(unpack_open(&u, f->stored, f->head.raw_bytes), 0);
		assert_int_equal(auth_mac(&c->token, c->nonce,
					  (const uint8_t *)get_bin(&u.root, "nonce").ptr,
					  f->head.worker, mac), 0);
		assert_memory_equal(mac, get_bin(&u.root, "mac").ptr, sizeof(mac));
		unpack_release(&u);
	} else if (f->head.type == CREMA_FRAME_HELLO) {
		c->hellos++;
		pack_map(&pk, 1);
		pack_kv_text(&pk, c->refuse ? "reason" : "name", "made up");
		reply(c, c->refuse ? CREMA_FRAME_REFUSE : CREMA_FRAME_WELCOME, c->want, &body);
		if (!c->hello)
			c->next = c->want;
		c->hello = true;
	} else if (f->head.type == CREMA_FRAME_CLOCK) {
		assert_int_equal(unpack_open(&u, f->stored, f->head.raw_bytes), 0);
		pack_map(&pk, 2);
		pack_kv_u64(&pk, "t0", get_u64(&u.root, "t0", 0));
		pack_kv_u64(&pk, "t1", clock_real_ns() + 5000000000u);
		unpack_release(&u);
		reply(c, CREMA_FRAME_CLOCK, 0, &body);
	} else {
		assert_int_equal(f->head.type, CREMA_FRAME_DATA);
		assert_true(f->head.first_seq <= c->next);
		c->next = f->head.first_seq + f->head.count;
		if (!c->mute) {
			c->want = c->next;
			reply(c, CREMA_FRAME_ACK, c->next, NULL);
		}
	}
	buf_release(&body);
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
		close(c->fd);
		c->fd = -1;
		buf_clear(&c->in);
	}
	if (n <= 0)
		return;
	c->in.len += (size_t)n;
	while ((n = frame_decode(&f, c->in.data, c->in.len)) > 0) {
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
	if (c->fd >= 0)
		close(c->fd);
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

static void make_hello(struct buf *hello)
{
	struct crema_frame_header h = frame_head(CREMA_FRAME_HELLO, worker, 1);

	assert_int_equal(frame_encode(hello, &h, "\x80", 1), 0);
}

static void test_connection(void **state)
{
	struct uplink_source source = { NULL, worker, 1, NULL, src_next, src_rewind, src_acked };
	struct buf hello = BUF_INIT;
	struct collector c;
	struct outbox o;
	struct uplink u;

	(void)state;
	collector_start(&c);
	outbox_init(&o, worker, 1, dir, false);
	make_hello(&hello);
	assert_int_equal(outbox_hello(&o, hello.data, hello.len), 0);
	source.arg = &o;
	source.hello = &o.hello;
	uplink_init(&u, &c.address, &source, NULL);
	for (uint64_t i = 0; i < 500; i++) {
		add(&o, OUTBOX_RECORD, i);
		outbox_flush(&o);
		if (i == 200)
			outbox_spill(&o);
		if (i % 100 == 50) { /* it goes away, and has seen more than it acknowledged */
			c.mute = i % 200 == 50;
			if (c.fd >= 0)
				close(c.fd);
			c.fd = -1;
			buf_clear(&c.in);
			for (int k = 0; k < 4; k++)
				uplink_run(&u, clock_mono_ns());
			u.retry_ns = 0;
		}
		if (i % 50 == 49)
			uplink_new_hello(&u);
		uplink_run(&u, clock_mono_ns());
		serve(&c);
	}
	c.mute = false;
	for (int i = 0; i < 3000 && !outbox_is_empty(&o); i++) {
		/* What was taken but not acknowledged comes again only after a new start. */
		if (i == 1000 && c.fd >= 0) {
			close(c.fd);
			c.fd = -1;
			buf_clear(&c.in);
		}
		u.retry_ns = 0;
		uplink_run(&u, clock_mono_ns());
		serve(&c);
		if (i % 10 == 0)
			usleep(1000);
	}
	assert_true(outbox_is_empty(&o));
	assert_int_equal(c.next, 500);
	assert_true(c.hellos > 5);
	assert_true(u.has_result);
	assert_in_range(u.result.offset_ns, 4990000000u, 5010000000u);
	uplink_release(&u);
	outbox_release(&o);
	buf_release(&hello);
	collector_stop(&c);
	assert_int_equal(files(), 0);
}

static void test_refused(void **state)
{
	struct uplink_source source = { NULL, worker, 1, NULL, src_next, src_rewind, src_acked };
	struct buf hello = BUF_INIT;
	struct collector c;
	struct outbox o;
	struct uplink u;

	(void)state;
	collector_start(&c);
	c.refuse = true;
	outbox_init(&o, worker, 1, NULL, false);
	make_hello(&hello);
	source.arg = &o;
	source.hello = &hello;
	uplink_init(&u, &c.address, &source, NULL);
	for (int i = 0; i < 200 && !u.trouble[0]; i++) {
		uplink_run(&u, clock_mono_ns());
		serve(&c);
		usleep(1000);
	}
	assert_non_null(strstr(u.trouble, "refuses: made up"));
	assert_int_equal(u.state, UPLINK_OFF);
	assert_true(u.retry_ns > clock_mono_ns());
	uplink_release(&u);
	/* Something else listens there. */
	uplink_init(&u, &c.address, &source, NULL);
	uplink_run(&u, clock_mono_ns());
	close(c.fd);
	for (int i = 0; i < 100 && (c.fd = net_accept(c.listener, NULL, 0)) < 0; i++)
		usleep(1000);
	assert_int_equal(write(c.fd, "HTTP/1.1 400 what\r\n\r\n", 21), 21);
	for (int i = 0; i < 100 && !u.trouble[0]; i++) {
		uplink_run(&u, clock_mono_ns());
		usleep(1000);
	}
	assert_non_null(strstr(u.trouble, "no crema collector"));
	uplink_release(&u);
	outbox_release(&o);
	buf_release(&hello);
	collector_stop(&c);
}

static void test_takeover(void **state)
{
	struct utimbuf old = { 1000, 1000 };
	struct buf hello = BUF_INIT;
	struct takeover t;
	struct collector c;
	struct outbox o;

	(void)state;
	collector_start(&c);
	outbox_init(&o, worker, 1, dir, false);
	make_hello(&hello);
	outbox_hello(&o, hello.data, hello.len);
	for (uint64_t i = 0; i < 20; i++) {
		add(&o, OUTBOX_RECORD, i);
		outbox_flush(&o);
	}
	assert_int_equal(outbox_spill(&o), 0);
	assert_int_equal(utime(o.file.path, &old), 0);
	takeover_init(&t, dir, &c.address, NULL);
	takeover_run(&t, true, clock_mono_ns());
	assert_false(t.linked); /* its writer lives */
	outbox_release(&o);
	t.look_ns = 0;
	takeover_run(&t, false, clock_mono_ns());
	assert_false(t.linked);
	takeover_run(&t, true, clock_mono_ns());
	assert_true(t.linked);
	for (int i = 0; i < 500 && t.linked; i++) {
		takeover_run(&t, true, clock_mono_ns());
		serve(&c);
		usleep(500);
	}
	assert_int_equal(c.next, 20);
	assert_int_equal(files(), 0);
	takeover_release(&t);
	buf_release(&hello);
	collector_stop(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_connection), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_takeover),
	};
	char path[64];
	int rc;

	if (!mkdtemp(dir))
		return 1;
	rc = cmocka_run_group_tests_name("agent link", tests, NULL, NULL);
	snprintf(path, sizeof(path), "%s/token", dir);
	unlink(path);
	rmdir(dir);
	return rc;
}
