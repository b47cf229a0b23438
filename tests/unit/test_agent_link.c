/* SPDX-License-Identifier: BSD-3-Clause */
/* test_agent_link.c - the agent's connection and dead agents' spools, with a made-up collector. */
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

static const uint8_t worker[16] = {0xcd};
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
	struct session session; /* the other end's: what it sends, we receive */
	struct auth_start start;
	uint64_t min, max;   /* the versions that it offers */
	uint64_t want, next; /* WELCOME says want; next = records seen up to */
	bool refuse, mute, hello;
	bool ignorant, proofless; /* answers with another token's proof, with none */
	bool flip;		  /* one bit of each answer's last byte */
	unsigned int hellos, frames, auths;
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
	assert_int_equal(u.root.via.map.size, 2); /* a version and a nonce, and nothing else */
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

static void make_hello(struct buf *hello)
{
	struct crema_frame_header h = frame_head(CREMA_FRAME_HELLO, worker, 1);

	assert_int_equal(frame_encode(hello, &h, "\x80", 1), 0);
}

static void test_connection(void **state)
{
	struct uplink_source source = {NULL, worker, 1, NULL, src_next, src_rewind, src_acked};
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
			hang_up(&c);
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
		if (i == 1000)
			hang_up(&c);
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
	struct uplink_source source = {NULL, worker, 1, NULL, src_next, src_rewind, src_acked};
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
	hang_up(&c);
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

/* Lets an agent with a record try once; the rest is looked at by the caller. */
static void try_once(struct collector *c, struct uplink *u, struct uplink_source *source)
{
	hang_up(c);
	c->frames = c->hellos = c->auths = 0;
	uplink_init(u, &c->address, source, NULL);
	for (int i = 0; i < 300 && !(u->state == UPLINK_OFF && u->trouble[0]); i++) {
		uplink_run(u, clock_mono_ns());
		serve(c);
		usleep(1000);
	}
}

/* Who is not the collector gets a nonce of ours: no HELLO, no DATA, and the records stay. */
static void test_strangers(void **state)
{
	static const char *const why[] = {"does not know the token", "does not know the token",
					  "speaks versions 1 to 1 of the protocol",
					  "changed on its way"};
	struct uplink_source source = {NULL, worker, 1, NULL, src_next, src_rewind, src_acked};
	struct buf hello = BUF_INIT;
	struct collector c;
	struct outbox o;
	struct uplink u;

	(void)state;
	collector_start(&c);
	outbox_init(&o, worker, 1, NULL, false);
	make_hello(&hello);
	add(&o, OUTBOX_RECORD, 1);
	outbox_flush(&o);
	source.arg = &o;
	source.hello = &hello;
	for (int i = 0; i < 4; i++) {
		c.ignorant = i == 0;
		c.proofless = i == 1;
		c.max = i == 2 ? CREMA_PROTOCOL_OLDEST : CREMA_PROTOCOL;
		c.flip = i == 3;
		try_once(&c, &u, &source);
		assert_non_null(strstr(u.trouble, why[i]));
		assert_int_equal(u.state, UPLINK_OFF);
		assert_true(u.retry_ns > u.since_ns);
		serve(&c);
		assert_int_equal(c.auths, i != 2);
		assert_int_equal(c.hellos, i == 3);
		assert_true(c.frames <= (i == 2 ? 0 : i == 3 ? 3 : 2));
		assert_false(outbox_is_empty(&o));
		uplink_release(&u);
	}
	c.flip = false;
	try_once(&c, &u, &source);
	assert_true(outbox_is_empty(&o));
	assert_int_equal(c.next, 1);
	uplink_release(&u);
	outbox_release(&o);
	buf_release(&hello);
	collector_stop(&c);
}

/* With no token at all it sends to whoever answers; but not where one should be. */
static void test_without_a_token(void **state)
{
	struct uplink_source source = {NULL, worker, 1, NULL, src_next, src_rewind, src_acked};
	struct buf hello = BUF_INIT;
	char path[PATH_MAX];
	struct collector c;
	struct outbox o;
	struct uplink u;

	(void)state;
	collector_start(&c);
	outbox_init(&o, worker, 1, NULL, false);
	make_hello(&hello);
	source.arg = &o;
	source.hello = &hello;
	snprintf(path, sizeof(path), "%s/token", dir);
	setenv("CREMA_INSECURE", "on", 1);
	try_once(&c, &u, &source);
	assert_int_equal(u.state, UPLINK_READY);
	assert_false(u.session.sealed);
	unsetenv("CREMA_INSECURE");
	uplink_release(&u);
	assert_int_equal(chmod(path, 0644), 0); /* there, but of no use */
	try_once(&c, &u, &source);
	assert_non_null(strstr(u.trouble, "chmod 600"));
	assert_int_equal(c.auths, 0);
	uplink_release(&u);
	unlink(path); /* named, but not there */
	try_once(&c, &u, &source);
	assert_non_null(strstr(u.trouble, "no token file"));
	assert_int_equal(c.auths, 0);
	uplink_release(&u);
	setenv("XDG_CONFIG_HOME", dir, 1);
	unsetenv("CREMA_TOKEN_FILE");
	try_once(&c, &u, &source);
	assert_int_equal(u.state, UPLINK_READY);
	assert_int_equal(c.hellos, 1);
	u.had_token = true; /* as if it had been there at the first connection */
	hang_up(&c);
	for (int i = 0; i < 300 && !u.trouble[0]; i++) {
		u.retry_ns = 0;
		uplink_run(&u, clock_mono_ns());
		usleep(1000);
	}
	u.trouble[0] = '\0';
	c.auths = 0;
	for (int i = 0; i < 300 && !u.trouble[0]; i++) {
		u.retry_ns = 0;
		uplink_run(&u, clock_mono_ns());
		serve(&c);
		usleep(1000);
	}
	assert_non_null(strstr(u.trouble, "no token file"));
	assert_int_equal(c.auths, 0);
	uplink_release(&u);
	outbox_release(&o);
	buf_release(&hello);
	collector_stop(&c);
}

static void test_takeover(void **state)
{
	struct utimbuf old = {1000, 1000};
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
		cmocka_unit_test(test_connection),	cmocka_unit_test(test_refused),
		cmocka_unit_test(test_takeover),	cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_without_a_token),
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
