/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_json.c - coffea's report and TaskVine's log, as files that a user names. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector/runs/taskvine_log.h"
#include "collector/report/coffea_report.h"
#include "tests/fuzz/fuzz.h"

static void read_log(const uint8_t *data, size_t n)
{
	struct taskvine_log log;
	int fd = memfd_create("log", MFD_CLOEXEC);
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd < 0 || write(fd, data, n) != (ssize_t)n)
		abort();
	taskvine_log_read(&log, path);
	taskvine_log_release(&log);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct coffea_report c;

	coffea_report_parse(&c, (const char *)data, n, "report");
	if (n && data[0] != '{')
		read_log(data, n);
	return 0;
}
