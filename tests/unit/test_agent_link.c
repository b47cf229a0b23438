/* SPDX-License-Identifier: BSD-3-Clause */
/* test_agent_link.c - the agent's connection and dead agents' spools, with a made-up collector. */
#include "tests/unit/fake_collector.h"

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
