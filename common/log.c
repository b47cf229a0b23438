/* SPDX-License-Identifier: BSD-3-Clause */
/* log.c - one-line messages for people. */
#include "common/log.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *program = "crema";
static int descriptor = 2;

void log_name(const char *name)
{
	program = name;
}

void log_to(int fd)
{
	descriptor = fd;
}

void log_line(const char *format, ...)
{
	char line[2048];
	size_t n;
	va_list ap;
	ssize_t done;

	n = (size_t)snprintf(line, sizeof(line), "%s: ", program);
	if (n > sizeof(line) / 2)
		n = sizeof(line) / 2;
	va_start(ap, format);
	vsnprintf(line + n, sizeof(line) - n - 1, format, ap);
	va_end(ap);
	for (n = 0; line[n]; n++)
		if ((unsigned char)line[n] < ' ' || line[n] == 127)
			line[n] = '?';
	line[n++] = '\n';
	done = write(descriptor, line, n);
	(void)done;
}

const char *log_error(int error)
{
	static _Thread_local char text[128];
	const char *s = strerrordesc_np(error < 0 ? -error : error);

	snprintf(text, sizeof(text), "%s", s ? s : "unknown error");
	/* "No such file" reads better as "no such file"; "RPC ..." stays. */
	if (isupper((unsigned char)text[0]) && islower((unsigned char)text[1]))
		text[0] = (char)tolower((unsigned char)text[0]);
	return text;
}
