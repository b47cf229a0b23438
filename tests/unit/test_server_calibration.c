/* SPDX-License-Identifier: BSD-3-Clause */
/* test_server_calibration.c - verdicts on file systems from the collector's files to its agents. */
#include "fixture_server.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include "collector/ingest/server_conn.h"
#include "common/calibration.h"

static char own[80], named[80];

/* A site whose server reads these files, which other tests do not have. */
static void begin(struct site *site)
{
	site_init(site);
	snprintf(own, sizeof(own), "%s/calibration", site->dir);
	snprintf(named, sizeof(named), "%s/named", site->dir);
	fixture_calibration[0] = own;
	fixture_calibration[1] = named;
}

static void end(struct site *site)
{
	fixture_calibration[0] = fixture_calibration[1] = NULL;
	unlink(own);
	unlink(named);
	site_release(site);
}

static void restart(struct site *site)
{
	site_stop(site);
	site_start(site);
}

static void write_text(const char *path, const void *text, size_t bytes)
{
	char other[96];
	int fd;

	snprintf(other, sizeof(other), "%s.new", path);
	fd = open(other, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(write(fd, text, bytes), bytes);
	close(fd);
	assert_int_equal(rename(other, path), 0);
}

static struct verdict verdict(const char *type, bool right)
{
	struct verdict v = {.right = right, .way = "all", .kernel = "6.1", .options = "rw"};

	snprintf(v.type, sizeof(v.type), "%s", type);
	return v;
}

static void write_verdict(const char *path, const char *type, bool right)
{
	struct verdict v = verdict(type, right);
	struct buf text = BUF_INIT;

	assert_int_equal(calibration_put(&text, &v), 0);
	write_text(path, text.data, text.len);
	buf_release(&text);
}

/* The frame that was received, as an agent reads it. */
static void take(struct agent *agent, struct buf *text)
{
	struct buf scratch = BUF_INIT;
	struct unpack map;

	assert_int_equal(unpack_frame(&map, &agent->frame, &scratch), 0);
	assert_int_equal(calibration_unpack(text, &map.root), 0);
	unpack_release(&map);
	buf_release(&scratch);
}

/* 1: right, 0: wrong, -1: none. */
static int found(const struct buf *text, const char *type)
{
	struct verdict v = verdict(type, false);

	return calibration_find(text, &v) ? v.right : -1;
}

static void greet(struct site *site, struct agent *agent, uint8_t id)
{
	agent_connect(site, agent, id);
	agent_auth(agent, &site->token);
	assert_int_equal(agent_proof(agent), 0);
	agent_hello(agent);
}

static void verdicts_precede_the_welcome(void **state)
{
	struct buf text = BUF_INIT;
	struct agent agent;
	struct site site;

	(void)state;
	begin(&site);
	restart(&site);
	greet(&site, &agent, 1);
	assert_int_equal(agent_receive(&agent), CREMA_FRAME_WELCOME); /* there are none */
	agent_close(&agent);
	write_verdict(own, "nfs4", true);
	restart(&site);
	greet(&site, &agent, 1);
	assert_int_equal(agent_receive(&agent), CREMA_FRAME_CALIBRATION);
	assert_true(agent.session.sealed);
	take(&agent, &text);
	assert_int_equal(found(&text, "nfs4"), 1);
	assert_int_equal(agent_receive(&agent), CREMA_FRAME_WELCOME);
	agent_hello(&agent); /* newer facts: not sent again */
	assert_int_equal(agent_receive(&agent), CREMA_FRAME_WELCOME);
	agent_data(&agent, 0, 2);
	assert_int_equal(agent_ack(&agent), 2);
	agent_close(&agent);
	buf_release(&text);
	end(&site);
}

/* Both of its agents get what changes: new verdicts, those of the second file, and their removal.
 */
static void changes_are_sent(void **state)
{
	struct buf text = BUF_INIT;
	struct agent agent[2];
	struct site site;

	(void)state;
	begin(&site);
	restart(&site);
	for (int i = 0; i < 2; i++) {
		greet(&site, &agent[i], (uint8_t)(i + 1));
		assert_int_equal(agent_receive(&agent[i]), CREMA_FRAME_WELCOME);
	}
	for (int step = 0; step < 4; step++) {
		if (step < 2)
			write_verdict(own, step ? "lustre" : "nfs4", true);
		else if (step == 2)
			write_verdict(named, "lustre", false);
		else
			assert_int_equal(unlink(own) | unlink(named), 0);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(agent_receive(&agent[i]), CREMA_FRAME_CALIBRATION);
			take(&agent[i], &text);
			assert_int_equal(found(&text, "nfs4"), step ? -1 : 1);
			assert_int_equal(found(&text, "lustre"), step == 1   ? 1
								 : step == 2 ? 0
									     : -1);
			assert_int_equal(text.len == 0, step == 3);
		}
	}
	for (int i = 0; i < 2; i++)
		agent_close(&agent[i]);
	buf_release(&text);
	end(&site);
}

static void read_log(int fd, char *out, size_t size)
{
	ssize_t n = pread(fd, out, size - 1, 0);

	out[n > 0 ? n : 0] = '\0';
}

static unsigned int lines_with(const char *text, const char *words)
{
	unsigned int n = 0;

	while ((text = strstr(text, words)) != NULL) {
		n++;
		text++;
	}
	return n;
}

static void put_many(struct buf *text, int n, const char *name)
{
	char type[64];
	struct verdict v;

	for (int i = 0; i < n; i++) {
		snprintf(type, sizeof(type), "%s-file-system-with-a-long-name-%d", name, i);
		v = verdict(type, true);
		assert_int_equal(calibration_put(text, &v), 0);
	}
}

/* Each of the files could be sent, but not both of them. */
static void both_files_can_be_too_large(void **state)
{
	struct buf first = BUF_INIT, second = BUF_INIT, text = BUF_INIT;
	char log[256];
	struct agent agent;
	struct site site;
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	(void)state;
	begin(&site);
	put_many(&first, 300, "one");
	write_text(own, first.data, first.len);
	restart(&site);
	log_to(fd);
	greet(&site, &agent, 1);
	assert_int_equal(agent_receive(&agent), CREMA_FRAME_CALIBRATION);
	assert_int_equal(agent_receive(&agent), CREMA_FRAME_WELCOME);
	put_many(&second, 300, "other");
	write_text(named, second.data, second.len);
	site_turns(&site, 40);
	agent_data(&agent, 0, 1);
	assert_int_equal(agent_ack(&agent), 1);
	read_log(fd, log, sizeof(log));
	assert_int_equal(lines_with(log, "\n"), 1);
	assert_non_null(strstr(log, "is not sent to the workers: file too large"));
	assert_int_equal(unlink(own), 0);
	assert_int_equal(agent_receive(&agent), CREMA_FRAME_CALIBRATION);
	take(&agent, &text);
	assert_int_equal(text.len, second.len);
	agent_close(&agent);
	log_to(open("/dev/null", O_WRONLY | O_CLOEXEC));
	close(fd);
	buf_release(&first);
	buf_release(&second);
	buf_release(&text);
	end(&site);
}

/* One line each; agents keep what they have, and get it from later connections, too. */
static void unusable_files_change_nothing(void **state)
{
	char large[CREMA_CALIBRATION_BYTES + 4096], log[4096];
	struct buf text = BUF_INIT, many = BUF_INIT;
	struct agent agent, later;
	struct site site;
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	(void)state;
	begin(&site);
	write_verdict(own, "nfs4", true);
	restart(&site);
	log_to(fd);
	greet(&site, &agent, 1);
	assert_int_equal(agent_receive(&agent), CREMA_FRAME_CALIBRATION);
	assert_int_equal(agent_receive(&agent), CREMA_FRAME_WELCOME);
	write_text(own, "crema calibration 1\nend 0 00000000\n", 35);
	site_turns(&site, 40);
	memset(large, 'x', sizeof(large));
	write_text(own, large, sizeof(large));
	site_turns(&site, 40);
	put_many(&many, 600, "a");
	assert_true(many.len > CREMA_CALIBRATION_BYTES);
	write_text(own, many.data, many.len);
	site_turns(&site, 40);
	write_verdict(own, "lustre", true);
	assert_int_equal(chmod(own, 0666), 0);
	site_turns(&site, 40);
	read_log(fd, log, sizeof(log));
	assert_int_equal(lines_with(log, "\n"), 4);
	assert_int_equal(lines_with(log, "it is damaged"), 2);
	assert_int_equal(lines_with(log, "is ignored: file too large"), 1);
	assert_int_equal(lines_with(log, "can write to it"), 1);
	greet(&site, &later, 2);
	assert_int_equal(agent_receive(&later), CREMA_FRAME_CALIBRATION);
	take(&later, &text);
	assert_int_equal(found(&text, "nfs4"), 1);
	assert_int_equal(found(&text, "lustre"), -1);
	assert_int_equal(agent_receive(&later), CREMA_FRAME_WELCOME);
	agent_data(&agent, 0, 1); /* and that is all it got */
	assert_int_equal(agent_ack(&agent), 1);
	assert_int_equal(chmod(own, 0600), 0);
	assert_int_equal(agent_receive(&agent), CREMA_FRAME_CALIBRATION);
	agent_close(&agent);
	agent_close(&later);
	log_to(open("/dev/null", O_WRONLY | O_CLOEXEC));
	close(fd);
	buf_release(&text);
	buf_release(&many);
	end(&site);
}

/* A file that is being copied is read when it has not changed since the check before. */
static void a_file_that_grows_is_left_alone(void **state)
{
	struct buf text = BUF_INIT;
	struct verdict v = verdict("nfs4", true);
	struct site site;
	char log[256];
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), out;

	(void)state;
	begin(&site);
	restart(&site);
	log_to(fd);
	assert_int_equal(calibration_put(&text, &v), 0);
	out = open(own, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_int_equal(write(out, text.data, 30), 30);
	server_calibration_check(site.server, false);
	assert_int_equal(write(out, text.data + 30, text.len - 30), text.len - 30);
	close(out);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(site.server->calibration.frame.len, 0);
		server_calibration_check(site.server, false);
	}
	assert_true(site.server->calibration.frame.len);
	read_log(fd, log, sizeof(log));
	assert_string_equal(log, "");
	log_to(open("/dev/null", O_WRONLY | O_CLOEXEC));
	close(fd);
	buf_release(&text);
	end(&site);
}

/* Without a free descriptor the file is tried again, with one line for all tries. */
static void a_reason_that_passes_is_tried_again(void **state)
{
	struct rlimit all, none;
	struct site site;
	char log[512];
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	(void)state;
	begin(&site);
	restart(&site);
	log_to(fd);
	write_verdict(own, "nfs4", true);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
	none = all;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	for (int i = 0; i < 4; i++)
		server_calibration_check(site.server, false);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
	assert_int_equal(site.server->calibration.frame.len, 0);
	server_calibration_check(site.server, false);
	assert_true(site.server->calibration.frame.len);
	read_log(fd, log, sizeof(log));
	assert_int_equal(lines_with(log, "\n"), 1);
	assert_int_equal(lines_with(log, "many open files"), 1);
	log_to(open("/dev/null", O_WRONLY | O_CLOEXEC));
	close(fd);
	end(&site);
}

/* Agents of protocol 1 do not get it, and one that skips unknown frames is acknowledged as before.
 */
static void older_agents_are_not_disturbed(void **state)
{
	struct agent agent;
	struct site site;

	(void)state;
	fixture_old_agents = true;
	begin(&site);
	write_verdict(own, "nfs4", true);
	restart(&site);
	agent_connect(&site, &agent, 1);
	agent_auth_as(&agent, &site.token, 1);
	agent_hello(&agent);
	assert_int_equal(agent_receive(&agent), CREMA_FRAME_WELCOME);
	write_verdict(own, "nfs4", false);
	site_turns(&site, 40);
	agent_data(&agent, 0, 3);
	assert_int_equal(agent_ack(&agent), 3);
	agent_close(&agent);
	fixture_old_agents = false;
	end(&site);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verdicts_precede_the_welcome),
		cmocka_unit_test(changes_are_sent),
		cmocka_unit_test(unusable_files_change_nothing),
		cmocka_unit_test(both_files_can_be_too_large),
		cmocka_unit_test(a_file_that_grows_is_left_alone),
		cmocka_unit_test(a_reason_that_passes_is_tried_again),
		cmocka_unit_test(older_agents_are_not_disturbed),
	};

	return cmocka_run_group_tests_name("server, calibration", tests, NULL, NULL);
}
