/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * print.c - printf's variants with variable arguments, or for stdout: each calls the variant with a
 * va_list and a stream, whose wrapper counts.
 */
#include <stdarg.h>
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))

#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

int __vfprintf_chk(FILE *f, int checks, const char *format, va_list list);
int __vdprintf_chk(int fd, int checks, const char *format, va_list list);

#define LISTED(name, params, call)                                                                 \
	EXPORT int name params                                                                     \
	{                                                                                          \
		va_list list;                                                                      \
		int n;                                                                             \
		va_start(list, format);                                                            \
		n = call;                                                                          \
		va_end(list);                                                                      \
		return n;                                                                          \
	}

LISTED(fprintf, (FILE * f, const char *format, ...), vfprintf(f, format, list))
LISTED(printf, (const char *format, ...), vfprintf(stdout, format, list))
LISTED(dprintf, (int fd, const char *format, ...), vdprintf(fd, format, list))
LISTED(__fprintf_chk, (FILE * f, int checks, const char *format, ...),
       __vfprintf_chk(f, checks, format, list))
LISTED(__printf_chk, (int checks, const char *format, ...),
       __vfprintf_chk(stdout, checks, format, list))
LISTED(__dprintf_chk, (int fd, int checks, const char *format, ...),
       __vdprintf_chk(fd, checks, format, list))

EXPORT int vprintf(const char *format, va_list list)
{
	return vfprintf(stdout, format, list);
}

EXPORT int __vprintf_chk(int checks, const char *format, va_list list)
{
	return __vfprintf_chk(stdout, checks, format, list);
}
