/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_doctor.c - `crema doctor`: obstacles to measuring on this machine. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/cmd/command.h"
#include "collector/doctor/calibrate.h"
#include "collector/emit/emit.h"
#include "common/log.h"

static int print(const struct doctor *d, bool json)
{
	struct buf out = BUF_INIT;
	int err = d->error;

	if (!err)
		err = json ? doctor_json(d, &out) : doctor_text(d, &out);
	if (!err)
		err = sink_write(STDOUT_FILENO, &out);
	buf_release(&out);
	if (err)
		log_line("doctor: cannot write to standard output: %s", log_error(err));
	return err || doctor_count(d, DOCTOR_BAD) ? STATUS_FAILED : STATUS_DONE;
}

static void look_at_all(struct doctor *d, const char *exe)
{
	doctor_machine(d);
	doctor_calibrations(d);
	doctor_installation(d, exe);
	doctor_workers(d);
	doctor_collector(d);
}

static int run(int argc, char **argv)
{
	struct options options;
	struct doctor d = {0};
	char exe[PATH_MAX];
	int status;
	ssize_t n;

	if (!command_options(&cmd_doctor, &options, false, argc, argv, &status))
		return status;
	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	exe[n < 0 ? 0 : n] = '\0';
	d.collector = options.value[OPT_doctor_collector] ? options.value[OPT_doctor_collector]
							  : getenv("CREMA_COLLECTOR");
	d.page = options_get(&options, OPT_http);
	if (options.value[OPT_doctor_worker]) {
		d.only = (int)strtol(options.value[OPT_doctor_worker], NULL, 10);
		if (d.only <= 0) {
			log_line("doctor: --worker: '%s' is not a process id",
				 options.value[OPT_doctor_worker]);
			return STATUS_USAGE;
		}
	}
	d.all_users = options_on(&options, OPT_all_users);
	d.token_file = options.value[OPT_token_file];
	d.dir = options.value[OPT_dir];
	if (options.value[OPT_calibrate])
		doctor_calibrate(&d, options.value[OPT_calibrate]);
	else
		look_at_all(&d, exe);
	status = print(&d, options_on(&options, OPT_doctor_json));
	doctor_release(&d);
	return status;
}

const struct command cmd_doctor = {
	.name = "doctor",
	.usage = "doctor [--worker PID] [--collector HOST:PORT] [--http ADDR:PORT] [--calibrate "
		 "PATH] [--json]",
	.summary = "check this machine's setup",
	.examples = "  crema doctor\n"
		    "  crema doctor --worker 4711\n"
		    "  crema doctor --calibrate /lustre/me\n",
	.scope = SCOPE_DOCTOR,
	.run = run,
};
