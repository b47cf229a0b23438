/* SPDX-License-Identifier: BSD-3-Clause */
/* test_agent_drain.c - slots of synthetic shared memory through the agent's drain. */
#include "tests/unit/fake_shm.h"

static void test_life(void **state)
{
	struct fake *f = *state;
	struct crema_task *t = start(f, 3, 1);

	t->prefix = text(f, "process");
	t->time_unknown = 1u << CREMA_T_sleep;
	t->count_unknown = CREMA_COUNT_BIT(network_read_bytes);
	f->shm->slot_word[4] = CREMA_SLOT_CLAIMED + CREMA_SLOT_REF;
	poll_and_look(f, 0);
	assert_int_equal(f->n, 1);
	assert_int_equal(f->r[0].type, CREMA_MSG_TASK_START);
	assert_true(text_is(f->r[0].status, "running"));
	assert_true(text_is(f->r[0].key, "the-key"));
	assert_true(text_is(f->r[0].prefix, "process"));
	assert_false(TASK_KNOWN(&f->r[0], stop_boot_ns));
	assert_false(TASK_OWN_KNOWN(&f->r[0], sleep) || TASK_POOL_KNOWN(&f->r[0], sleep));
	assert_false(TASK_COUNT_KNOWN(&f->r[0], network_read_bytes));
	assert_int_equal(f->drain.running, 1);
	ack_all(f);
	poll_and_look(f, SECOND / 4);
	assert_int_equal(f->n, 0);
	poll_and_look(f, SECOND / 4);
	assert_int_equal(f->n, 1);
	assert_int_equal(f->r[0].type, CREMA_MSG_TASK_PROGRESS);
	assert_int_equal(f->r[0].wall_ns, SECOND / 2);
	done(f, 3, 0);
	ack_all(f);
	poll_and_look(f, SECOND / 4);
	assert_int_equal(f->n, 1);
	assert_int_equal(f->r[0].type, CREMA_MSG_TASK_END);
	assert_true(text_is(f->r[0].status, "ok"));
	assert_int_equal(f->r[0].wall_ns, 5);
	assert_int_equal(f->r[0].count[CREMA_C_read_bytes], 100);
	assert_int_equal(f->r[0].rss_peak_bytes, 5000);
	/* Not sent again, not freed before it is safe. */
	poll_and_look(f, SECOND);
	assert_int_equal(f->types[CREMA_MSG_TASK_END], 1);
	assert_int_equal(f->shm->slot_word[3], CREMA_SLOT_DONE);
	ack_all(f);
	poll_and_look(f, SECOND / 4);
	assert_int_equal(f->n, 0);
	assert_int_equal(f->shm->slot_word[3], CREMA_SLOT_FREE);
	assert_int_equal(f->shm->slot_word[4], CREMA_SLOT_CLAIMED + CREMA_SLOT_REF);
}

static void test_reused_slot(void **state)
{
	struct fake *f = *state;

	for (uint64_t i = 1; i <= 5; i++) {
		start(f, 0, i);
		if (i % 2) /* some are never seen while running */
			poll_and_look(f, SECOND / 4);
		done(f, 0, 0);
		poll_and_look(f, SECOND / 4);
		assert_int_equal(f->r[f->n - 1].type, CREMA_MSG_TASK_END);
		assert_int_equal(f->r[f->n - 1].attempt, i);
		ack_all(f);
		drain_free(&f->drain);
		assert_int_equal(f->shm->slot_word[0], CREMA_SLOT_FREE);
	}
}

/* Ended tasks that read on a file system are sent again when it is decided again, and are kept
 * until the collector's verdicts are there. */
static void test_decided_again(void **state)
{
	struct fake *f = *state;
	struct fskind_entry *e = &f->kinds.entry[3];

	*e = (struct fskind_entry){.kind = FSKIND_UNKNOWN, .apart = true, .name = "nfs"};
	f->drain.hold = true;
	start(f, 0, 1)->fs_mask = 1u << 3;
	start(f, 1, 2)->fs_mask = 1u << 4;
	start(f, 2, 3);
	f->kinds.entry[4].kind = FSKIND_EXACT;
	for (uint32_t i = 0; i < 3; i++)
		done(f, i, 0);
	poll_and_look(f, SECOND / 4);
	assert_int_equal(f->types[CREMA_MSG_TASK_END], 3);
	assert_true(text_is(f->r[0].fs_unknown, "nfs"));
	ack_all(f);
	poll_and_look(f, SECOND / 4);
	assert_int_equal(f->n, 0);
	assert_int_equal(f->shm->slot_word[0], CREMA_SLOT_DONE);
	assert_int_equal(f->shm->slot_word[2], CREMA_SLOT_FREE); /* it read no file */
	e->kind = FSKIND_CALIBRATED;
	f->drain.hold = false;
	f->drain.again = 1u << 3;
	poll_and_look(f, SECOND / 4);
	assert_int_equal(f->n, 1);
	assert_int_equal(f->r[0].type, CREMA_MSG_TASK_AMEND);
	assert_int_equal(f->r[0].attempt, 1);
	assert_false(TASK_KNOWN(&f->r[0], fs_unknown));
	assert_int_equal(f->shm->slot_word[0], CREMA_SLOT_DONE); /* until that is safe, too */
	assert_int_equal(f->shm->slot_word[1], CREMA_SLOT_FREE);
	ack_all(f);
	poll_and_look(f, SECOND / 4);
	assert_int_equal(f->n, 0);
	assert_int_equal(f->shm->slot_word[0], CREMA_SLOT_FREE);
}

/* A collector that never answers costs DRAIN_HELD slots, not all of them. */
static void test_held_slots_are_few(void **state)
{
	struct fake *f = *state;
	uint32_t held = 0;

	f->drain.hold = true;
	for (uint32_t i = 0; i < DRAIN_HELD + 100; i++) {
		start(f, i, i + 1)->fs_mask = 1;
		done(f, i, 0);
	}
	drain_poll(&f->drain, 0, f->now, f->now);
	outbox_flush(&f->out);
	ack_all(f);
	drain_poll(&f->drain, 0, f->now, f->now);
	for (uint32_t i = 0; i < DRAIN_HELD + 100; i++)
		held += f->shm->slot_word[i] == CREMA_SLOT_DONE;
	assert_int_equal(held, DRAIN_HELD);
}

static void test_amend(void **state)
{
	struct fake *f = *state;
	struct crema_thread *th = &f->shm->thread[5];
	struct crema_task *t = start(f, 1, 9);
	uint64_t rev;

	th->state = 1;
	th->owner = 2;
	th->is_pool = 1;
	th->seg.count[CREMA_C_read_bytes] = 7;
	th->seg.time[CREMA_T_storage_wait] = 11;
	done(f, 1, 1);
	poll_and_look(f, 1);
	assert_int_equal(f->n, 1);
	assert_int_equal(f->r[0].count[CREMA_C_read_bytes], 107);
	assert_int_equal(f->r[0].pool[CREMA_T_storage_wait], 11);
	rev = f->r[0].rev;
	ack_all(f);
	poll_and_look(f, 1);
	assert_int_equal(f->n, 0);
	assert_int_equal(f->shm->slot_word[1], CREMA_SLOT_DONE + CREMA_SLOT_REF);
	/* The pool thread continues to read, folds, and detaches. */
	t->own.count[CREMA_C_read_bytes] += 30;
	t->pool_time[CREMA_T_storage_wait] += 20;
	memset(th, 0, sizeof(*th));
	t->version++;
	f->shm->slot_word[1] = CREMA_SLOT_DONE;
	poll_and_look(f, 1);
	assert_int_equal(f->n, 1);
	assert_int_equal(f->r[0].type, CREMA_MSG_TASK_AMEND);
	assert_int_equal(f->r[0].count[CREMA_C_read_bytes], 130);
	assert_int_equal(f->r[0].pool[CREMA_T_storage_wait], 20);
	assert_true(f->r[0].rev > rev);
	ack_all(f);
	poll_and_look(f, 1);
	assert_int_equal(f->n, 0);
	assert_int_equal(f->shm->slot_word[1], CREMA_SLOT_FREE);
}

/* A fold that began before the task was done leaves the version unchanged, but changes the
 * numbers. */
static void test_amend_without_version(void **state)
{
	struct fake *f = *state;

	start(f, 1, 9);
	done(f, 1, 1);
	poll_and_look(f, 1);
	f->shm->task[1].own.count[CREMA_C_read_bytes] += 1;
	f->shm->slot_word[1] = CREMA_SLOT_DONE;
	ack_all(f);
	poll_and_look(f, 1);
	assert_int_equal(f->types[CREMA_MSG_TASK_AMEND], 1);
	ack_all(f);
	poll_and_look(f, 1);
	assert_int_equal(f->shm->slot_word[1], CREMA_SLOT_FREE);
}

static void test_late_version(void **state)
{
	struct fake *f = *state;

	start(f, 0, 1);
	done(f, 0, 0);
	poll_and_look(f, 1);
	ack_all(f);
	f->shm->task[0].version = 1; /* counted between sending and freeing */
	drain_free(&f->drain);
	assert_int_equal(f->shm->slot_word[0], CREMA_SLOT_DONE);
	f->shm->slot_word[7] = CREMA_SLOT_CLAIMED; /* as left by an agent that died here */
	view_repair(&f->view);
	assert_int_equal(f->shm->slot_word[7], CREMA_SLOT_DONE);
}

static void test_killed(void **state)
{
	struct fake *f = *state;
	struct crema_thread *th = f->shm->thread;

	start(f, 10, 1)->own.count[CREMA_C_read_calls] = 3;
	start(f, 11, 2);
	done(f, 11, 0);
	th[0] = (struct crema_thread){.state = 1, .owner = 11, .tid = 5};
	th[0].seg.count[CREMA_C_read_calls] = 4;
	th[1] = th[0];
	th[1].is_pool = 1;
	th[1].folding = 1; /* killed during a fold */
	th[2] = th[0];
	th[2].owner = 0;
	poll_and_look(f, SECOND);
	ack_all(f);
	f->drain.slot[10].live.cpu[0] = 123456;
	assert_int_equal(drain_end(&f->drain), 1);
	forget(f);
	f->shm->slot_word[10] = 0; /* so that this poll only finds what the end has sent */
	poll_and_look(f, 0);
	assert_int_equal(f->n, 1);
	assert_int_equal(f->r[0].type, CREMA_MSG_TASK_END);
	assert_true(text_is(f->r[0].status, "killed"));
	assert_int_equal(f->r[0].count[CREMA_C_read_calls], 11);
	assert_int_equal(f->r[0].own[CREMA_T_cpu], 123456);
	assert_int_equal(f->r[0].wall_ns, SECOND);
	assert_true(TASK_KNOWN(&f->r[0], stop_boot_ns));
	assert_false(TASK_KNOWN(&f->r[0], rss_stop_bytes));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_life),	       T(test_reused_slot),
		T(test_amend),	       T(test_amend_without_version),
		T(test_late_version),  T(test_killed),
		T(test_decided_again), T(test_held_slots_are_few),
	};

	return cmocka_run_group_tests_name("agent drain", tests, NULL, NULL);
}
