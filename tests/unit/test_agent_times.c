/* SPDX-License-Identifier: BSD-3-Clause */
/* test_agent_times.c - when the agent connects, requests the time, gives up and takes over, with
 * clocks that the test sets. */
#include <poll.h>
#include <sys/socket.h>

#include "tests/unit/fake_collector.h"

#define SECOND UINT64_C(1000000000)

/* Each failed attempt doubles the pause, from a quarter of a second to five seconds. */
static void test_pauses(void **state)
{
	static const unsigned int pause_ms[] = {250, 500, 1000, 2000, 4000, 5000, 5000};
	struct uplink_source source = {NULL, worker, 1, NULL, src_next, src_rewind, src_acked};
	uint64_t now = SECOND;
	struct collector c;
	struct uplink u;

	(void)state;
	collector_start(&c);
	close(c.listener);
	uplink_init(&u, &c.address, &source, NULL);
	for (size_t k = 0; k < sizeof(pause_ms) / sizeof(pause_ms[0]); k++) {
		uplink_run(&u, now);
		for (int i = 0; i < 1000 && u.state == UPLINK_CONNECTING; i++) {
			usleep(1000);
			uplink_run(&u, now);
		}
		assert_int_equal(u.state, UPLINK_OFF);
		assert_non_null(strstr(u.trouble, "cannot connect"));
		u.trouble[0] = '\0';
		uplink_run(&u, now + pause_ms[k] * (SECOND / 1000) - 1);
		assert_int_equal(u.state, UPLINK_OFF);
		assert_string_equal(u.trouble, "");
		now += pause_ms[k] * (SECOND / 1000);
	}
	uplink_release(&u);
	hang_up(&c);
}

/* Serves at a fixed time of the agent's clock until the condition holds. */
#define SERVE_UNTIL(condition)                                                                     \
	for (int i_ = 0; i_ < 3000 && !(condition); i_++) {                                        \
		uplink_run(&s.u, now);                                                             \
		serve(&s.c);                                                                       \
		usleep(200);                                                                       \
	}                                                                                          \
	assert_true(condition)

/* An interrupted round starts again; the offset's error is within the reported limit. */
static void test_clock_rounds(void **state)
{
	uint64_t now = SECOND, real = clock_real_ns(), boot = clock_boot_ns();
	struct site s;

	(void)state;
	site_start(&s, NULL);
	uplink_init(&s.u, &s.c.address, &s.source, NULL);
	s.c.timeless = true;
	SERVE_UNTIL(s.c.clocks == 1);
	hang_up(&s.c);
	SERVE_UNTIL(s.u.state == UPLINK_OFF);
	s.c.timeless = false;
	now += SECOND;
	SERVE_UNTIL(s.u.has_result);
	assert_int_equal(s.c.clocks, 1 + 8);
	assert_in_range(s.u.result.real_ns, real, clock_real_ns());
	assert_in_range(s.u.result.boot_ns, boot, clock_boot_ns());
	assert_in_range(s.u.result.error_ns, 1, (clock_boot_ns() - boot) / 2);
	assert_in_range(s.u.result.offset_ns, 5 * SECOND - s.u.result.error_ns - 1,
			5 * SECOND + s.u.result.error_ns + 1);
	assert_false(uplink_clock_due(&s.u, now + 30 * SECOND - 1));
	assert_true(uplink_clock_due(&s.u, now + 30 * SECOND));
	uplink_release(&s.u);
	site_stop(&s);
}

/* A collector that receives records and acknowledges none for 20 s is dropped. */
static void test_silence(void **state)
{
	uint64_t now = SECOND;
	struct site s;

	(void)state;
	site_start(&s, NULL);
	uplink_init(&s.u, &s.c.address, &s.source, NULL);
	SERVE_UNTIL(s.u.has_result);
	s.c.mute = true;
	now += 25 * SECOND; /* silent, but nothing was sent */
	uplink_run(&s.u, now);
	assert_int_equal(s.u.state, UPLINK_READY);
	add(&s.o, OUTBOX_RECORD, 1);
	outbox_flush(&s.o);
	SERVE_UNTIL(s.c.next == 1);
	uplink_run(&s.u, now + 20 * SECOND);
	assert_int_equal(s.u.state, UPLINK_READY);
	uplink_run(&s.u, now + 20 * SECOND + 1);
	assert_int_equal(s.u.state, UPLINK_OFF);
	assert_non_null(strstr(s.u.trouble, "broke"));
	assert_int_equal(s.u.retry_ns, now + 20 * SECOND + 1 + SECOND / 4);
	uplink_release(&s.u);
	site_stop(&s);
}

/* Each step of the handshake may take 5 s; that is not a limit for all of them. */
static void test_slow_handshake(void **state)
{
	static const enum uplink_state steps[] = {UPLINK_CHALLENGED, UPLINK_PROVING,
						  UPLINK_GREETING};
	uint64_t now = SECOND;
	struct site s;

	(void)state;
	for (unsigned int last = 0; last < 3; last++) {
		site_start(&s, NULL);
		uplink_init(&s.u, &s.c.address, &s.source, NULL);
		for (unsigned int step = 0; step <= last; step++) {
			for (int i = 0; i < 3000 && s.u.state != steps[step]; i++) {
				serve(&s.c);
				usleep(200);
				uplink_run(&s.u, now);
			}
			now += 5 * SECOND;
			uplink_run(&s.u, now - (step == last));
			assert_int_equal(s.u.state, steps[step]);
		}
		uplink_run(&s.u, now + 1);
		assert_int_equal(s.u.state, UPLINK_OFF);
		assert_non_null(strstr(s.u.trouble, last ? "broke" : "no answer"));
		uplink_release(&s.u);
		site_stop(&s);
	}
}

/* A collector that is too busy to accept connections: has the same limit as a handshake's step. */
static void test_no_answer_to_connect(void **state)
{
	uint64_t now = SECOND;
	struct site s;
	int others[3];

	(void)state;
	site_start(&s, NULL);
	assert_int_equal(listen(s.c.listener, 0), 0);
	for (int i = 0; i < 3; i++)
		others[i] = net_connect(&s.c.address);
	uplink_init(&s.u, &s.c.address, &s.source, NULL);
	uplink_run(&s.u, now);
	uplink_run(&s.u, now + 5 * SECOND);
	assert_int_equal(s.u.state, UPLINK_CONNECTING);
	assert_int_equal(uplink_events(&s.u), POLLOUT);
	uplink_run(&s.u, now + 5 * SECOND + 1);
	assert_int_equal(s.u.state, UPLINK_OFF);
	for (int i = 0; i < 3; i++)
		close(others[i]);
	uplink_release(&s.u);
	site_stop(&s);
}

/* An empty folder is checked every 10 s; a file that cannot be sent within 60 s is left to
 * others. */
static void test_takeover_times(void **state)
{
	struct utimbuf old = {1000, 1000};
	uint64_t now = SECOND;
	struct buf hello = BUF_INIT;
	struct takeover t;
	struct collector c;
	struct outbox o;

	(void)state;
	collector_start(&c);
	takeover_init(&t, dir, &c.address, NULL);
	takeover_run(&t, true, now);
	outbox_init(&o, worker, 1, dir, false);
	make_hello(&hello);
	outbox_hello(&o, hello.data, hello.len);
	for (uint64_t i = 0; i < 3; i++) { /* one frame each */
		add(&o, OUTBOX_RECORD, i);
		outbox_flush(&o);
		assert_int_equal(outbox_spill(&o), 0);
	}
	assert_int_equal(utime(o.file.path, &old), 0);
	outbox_release(&o);
	takeover_run(&t, true, now + 10 * SECOND - 1);
	assert_false(t.linked);
	now += 10 * SECOND;
	assert_int_equal(takeover_events(&t), 0);
	assert_int_equal(takeover_fd(&t), -1);
	takeover_run(&t, true, now);
	assert_true(t.linked);
	takeover_run(&t, true, now + 60 * SECOND);
	assert_true(t.linked);
	takeover_run(&t, true, now + 60 * SECOND + 1);
	assert_false(t.linked);
	assert_int_equal(files(), 1);
	now += 61 * SECOND;
	takeover_run(&t, true, now); /* the last of this round; the next one is later */
	assert_false(t.linked);
	hang_up(&c);
	close(c.listener);
	takeover_release(&t);
	collector_start(&c);
	c.want = 1; /* it has the first record */
	takeover_init(&t, dir, &c.address, NULL);
	now += 10 * SECOND;
	for (int i = 0; i < 500 && (t.linked || !i); i++) {
		takeover_run(&t, true, now);
		if (t.linked)
			assert_int_equal(takeover_events(&t), POLLIN);
		serve(&c);
		usleep(500);
	}
	assert_int_equal(c.next, 3);
	assert_int_equal(c.hellos, 1);
	assert_int_equal(c.data, 2);
	assert_int_equal(files(), 0);
	takeover_release(&t);
	buf_release(&hello);
	collector_stop(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pauses),
		cmocka_unit_test(test_clock_rounds),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_slow_handshake),
		cmocka_unit_test(test_no_answer_to_connect),
		cmocka_unit_test(test_takeover_times),
	};

	return cmocka_run_group_tests_name("agent times", tests, make_dir, remove_dir);
}
