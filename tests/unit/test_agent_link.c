/* SPDX-License-Identifier: BSD-3-Clause */
/* test_agent_link.c - the agent's connection and dead agents' spools, with a synthetic
 * collector. */
#include "tests/unit/fake_collector.h"

#include "common/calibration.h"

static void test_connection(void **state)
{
	struct site s;

	(void)state;
	site_start(&s, dir);
	assert_int_equal(outbox_hello(&s.o, s.hello.data, s.hello.len), 0);
	s.source.hello = &s.o.hello;
	uplink_init(&s.u, &s.c.address, &s.source, NULL);
	for (uint64_t i = 0; i < 500; i++) {
		add(&s.o, OUTBOX_RECORD, i);
		outbox_flush(&s.o);
		if (i == 200)
			outbox_spill(&s.o);
		if (i % 100 == 50) { /* it disconnects after receiving more than it acknowledged */
			s.c.mute = i % 200 == 50;
			hang_up(&s.c);
			for (int k = 0; k < 4; k++)
				uplink_run(&s.u, clock_mono_ns());
			s.u.retry_ns = 0;
		}
		if (i % 50 == 49)
			uplink_new_hello(&s.u);
		uplink_run(&s.u, clock_mono_ns());
		serve(&s.c);
	}
	s.c.mute = false;
	for (int i = 0; i < 3000 && !outbox_is_empty(&s.o); i++) {
		/* Records that were received but not acknowledged are only sent again after a
		 * reconnect. */
		if (i == 1000)
			hang_up(&s.c);
		s.u.retry_ns = 0;
		uplink_run(&s.u, clock_mono_ns());
		serve(&s.c);
		if (i % 10 == 0)
			usleep(1000);
	}
	assert_true(outbox_is_empty(&s.o));
	assert_int_equal(s.c.next, 500);
	assert_true(s.c.hellos > 5);
	assert_true(s.u.has_result);
	assert_in_range(s.u.result.offset_ns, 4990000000u, 5010000000u);
	uplink_release(&s.u);
	site_stop(&s);
	assert_int_equal(files(), 0);
}

static void test_refused(void **state)
{
	struct site s;

	(void)state;
	site_start(&s, NULL);
	s.c.refuse = true;
	uplink_init(&s.u, &s.c.address, &s.source, NULL);
	for (int i = 0; i < 200 && !s.u.trouble[0]; i++) {
		uplink_run(&s.u, clock_mono_ns());
		serve(&s.c);
		usleep(1000);
	}
	assert_non_null(strstr(s.u.trouble, "refuses: made up"));
	assert_int_equal(s.u.state, UPLINK_OFF);
	assert_true(s.u.retry_ns > clock_mono_ns());
	uplink_release(&s.u);
	/* Another program listens there. */
	uplink_init(&s.u, &s.c.address, &s.source, NULL);
	uplink_run(&s.u, clock_mono_ns());
	hang_up(&s.c);
	for (int i = 0; i < 100 && (s.c.fd = net_accept(s.c.listener, NULL, 0)) < 0; i++)
		usleep(1000);
	assert_int_equal(write(s.c.fd, "HTTP/1.1 400 what\r\n\r\n", 21), 21);
	for (int i = 0; i < 100 && !s.u.trouble[0]; i++) {
		uplink_run(&s.u, clock_mono_ns());
		usleep(1000);
	}
	assert_non_null(strstr(s.u.trouble, "not a crema collector"));
	uplink_release(&s.u);
	site_stop(&s);
}

/* Lets an agent with a record try once; the caller checks the result. */
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

/* A stranger gets a nonce of ours: no HELLO, no DATA, and the records stay. */
static void test_strangers(void **state)
{
	static const char *const why[] = {"does not know the token", "does not know the token",
					  "speaks versions 1 to 1 of the protocol",
					  "changed on its way"};
	struct site s;

	(void)state;
	site_start(&s, NULL);
	add(&s.o, OUTBOX_RECORD, 1);
	outbox_flush(&s.o);
	for (int i = 0; i < 4; i++) {
		s.c.ignorant = i == 0;
		s.c.proofless = i == 1;
		s.c.max = i == 2 ? CREMA_PROTOCOL_OLDEST : CREMA_PROTOCOL;
		s.c.flip = i == 3;
		try_once(&s.c, &s.u, &s.source);
		assert_non_null(strstr(s.u.trouble, why[i]));
		assert_int_equal(s.u.state, UPLINK_OFF);
		assert_true(s.u.retry_ns > s.u.since_ns);
		serve(&s.c);
		assert_int_equal(s.c.auths, i != 2);
		assert_int_equal(s.c.hellos, i == 3);
		assert_true(s.c.frames <= (i == 2 ? 0 : i == 3 ? 3 : 2));
		assert_false(outbox_is_empty(&s.o));
		uplink_release(&s.u);
	}
	s.c.flip = false;
	try_once(&s.c, &s.u, &s.source);
	assert_true(outbox_is_empty(&s.o));
	assert_int_equal(s.c.next, 1);
	uplink_release(&s.u);
	site_stop(&s);
}

/* Without any token it sends to whatever answers, but not if there should be a token. */
static void test_without_a_token(void **state)
{
	char path[PATH_MAX];
	struct site s;

	(void)state;
	site_start(&s, NULL);
	snprintf(path, sizeof(path), "%s/token", dir);
	setenv("CREMA_INSECURE", "on", 1);
	try_once(&s.c, &s.u, &s.source);
	assert_int_equal(s.u.state, UPLINK_READY);
	assert_false(s.u.session.sealed);
	unsetenv("CREMA_INSECURE");
	uplink_release(&s.u);
	assert_int_equal(chmod(path, 0644), 0); /* exists, but is unusable */
	try_once(&s.c, &s.u, &s.source);
	assert_non_null(strstr(s.u.trouble, "chmod 600"));
	assert_int_equal(s.c.auths, 0);
	uplink_release(&s.u);
	unlink(path); /* named, but does not exist */
	try_once(&s.c, &s.u, &s.source);
	assert_non_null(strstr(s.u.trouble, "no token file"));
	assert_int_equal(s.c.auths, 0);
	uplink_release(&s.u);
	setenv("XDG_CONFIG_HOME", dir, 1);
	unsetenv("CREMA_TOKEN_FILE");
	try_once(&s.c, &s.u, &s.source);
	assert_int_equal(s.u.state, UPLINK_READY);
	assert_int_equal(s.c.hellos, 1);
	s.u.had_token = true; /* as if it had existed at the first connection */
	hang_up(&s.c);
	for (int i = 0; i < 300 && !s.u.trouble[0]; i++) {
		s.u.retry_ns = 0;
		uplink_run(&s.u, clock_mono_ns());
		usleep(1000);
	}
	s.u.trouble[0] = '\0';
	s.c.auths = 0;
	for (int i = 0; i < 300 && !s.u.trouble[0]; i++) {
		s.u.retry_ns = 0;
		uplink_run(&s.u, clock_mono_ns());
		serve(&s.c);
		usleep(1000);
	}
	assert_non_null(strstr(s.u.trouble, "no token file"));
	assert_int_equal(s.c.auths, 0);
	uplink_release(&s.u);
	site_stop(&s);
}

/* Connects once more; true: what the collector sent, or that it sent nothing, is there to take. */
static bool verdicts_of(struct site *s, struct buf *map, struct buf *text)
{
	s->c.calibration = map;
	hang_up(&s->c);
	for (int i = 0; i < 4; i++)
		uplink_run(&s->u, clock_mono_ns());
	s->u.has_calibration = false;
	for (int i = 0; i < 300 && !s->u.has_calibration; i++) {
		s->u.retry_ns = 0;
		uplink_run(&s->u, clock_mono_ns());
		serve(&s->c);
		usleep(1000);
	}
	buf_clear(text);
	buf_add(text, s->u.calibration.data, s->u.calibration.len);
	return s->u.has_calibration && uplink_is_ready(&s->u);
}

static void test_verdicts(void **state)
{
	struct verdict v = {
		.right = true, .type = "nfs4", .kernel = "6.1", .options = "rw", .way = "all"};
	struct buf text = BUF_INIT, got = BUF_INIT;
	struct packed_map map, other;
	struct site s;

	(void)state;
	assert_int_equal(calibration_put(&text, &v), 0);
	pack_kv_str(packed_map_begin(&map), "text", (char *)text.data, text.len);
	packed_map_end(&map);
	pack_kv_str(packed_map_begin(&other), "text", (char *)text.data, text.len - 1);
	packed_map_end(&other);
	site_start(&s, NULL);
	uplink_init(&s.u, &s.c.address, &s.source, NULL);
	assert_true(verdicts_of(&s, &map.buf, &got));
	assert_int_equal(s.u.calibration_error, 0);
	assert_true(calibration_find(&got, &v));
	/* A damaged one is reported, and the connection is used. */
	assert_true(verdicts_of(&s, &other.buf, &got));
	assert_int_equal(s.u.calibration_error, -EBADMSG);
	assert_int_equal(got.len, 0);
	assert_true(verdicts_of(&s, &map.buf, &got));
	assert_true(got.len);
	/* A collector that sends none has none. */
	assert_true(verdicts_of(&s, NULL, &got));
	assert_int_equal(s.u.calibration_error, 0);
	assert_int_equal(got.len, 0);
	/* Before the proof it could be anyone's. */
	s.c.hasty = true;
	assert_false(verdicts_of(&s, &map.buf, &got));
	assert_int_equal(s.c.hellos, 4);
	uplink_release(&s.u);
	site_stop(&s);
	buf_release(&text);
	buf_release(&got);
	buf_release(&map.buf);
	buf_release(&other.buf);
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
	assert_false(t.linked); /* its writer is alive */
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
		cmocka_unit_test(test_without_a_token), cmocka_unit_test(test_verdicts),
	};

	return cmocka_run_group_tests_name("agent link", tests, make_dir, remove_dir);
}
