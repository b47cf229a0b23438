/* SPDX-License-Identifier: BSD-3-Clause */
/* program.c - reads ELF headers and the first lines of scripts (program.h). */
#include "collector/preload/program.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLANK " \t\r\n"
#define SCRIPTS 4 /* an interpreter may be a script, too: as many as the kernel follows */

struct program program_of(int fd)
{
	struct program p = {false, false};
	char loader[256] = "";
	Elf64_Ehdr head;
	Elf64_Phdr ph;

	if (pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_ident[EI_CLASS] != ELFCLASS64)
		return p;
	for (int i = 0; i < head.e_phnum; i++) {
		off_t at = (off_t)(head.e_phoff + (uint64_t)i * head.e_phentsize);

		if (pread(fd, &ph, sizeof(ph), at) == sizeof(ph) && ph.p_type == PT_INTERP &&
		    pread(fd, loader, sizeof(loader) - 1, (off_t)ph.p_offset) < 0)
			loader[0] = '\0';
	}
	p.is_static = !loader[0];
	p.is_musl = strstr(loader, "ld-musl") != NULL;
	return p;
}

static bool executable(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* The file that execvp() would execute. */
static bool find(const char *command, char *path, size_t size)
{
	const char *at = getenv("PATH"), *end;

	if (strchr(command, '/'))
		return snprintf(path, size, "%s", command) < (int)size;
	for (at = at ? at : "/bin:/usr/bin";; at = end + 1) {
		int n;

		end = at + strcspn(at, ":");
		n = snprintf(path, size, "%.*s%s%s", (int)(end - at), at, end > at ? "/" : "",
			     command);
		if (n > 0 && (size_t)n < size && executable(path))
			return true;
		if (!*end)
			return false;
	}
}

/* The program that env would start: NAME, -S NAME ..., or -S VARIABLE=VALUE ... NAME ... */
static bool found_by_env(const char *word, char *path, size_t size)
{
	char name[PATH_MAX];
	size_t n;

	word += strspn(word, BLANK);
	if (!strncmp(word, "-S", 2))
		word += 2;
	do {
		word += strspn(word, BLANK);
		n = strcspn(word, BLANK);
	} while (memchr(word, '=', n) && (word += n));
	return n && *word != '-' &&
	       snprintf(name, sizeof(name), "%.*s", (int)n, word) < (int)sizeof(name) &&
	       find(name, path, size);
}

/* The interpreter in the first line of a script, also if env finds it. */
static bool interpreter(int fd, char *path, size_t size)
{
	char line[PATH_MAX];
	ssize_t n = pread(fd, line, sizeof(line) - 1, 0);
	const char *word, *name;

	if (n < 2 || memcmp(line, "#!", 2))
		return false;
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	word = line + 2 + strspn(line + 2, BLANK);
	if (snprintf(path, size, "%.*s", (int)strcspn(word, BLANK), word) >= (int)size)
		return false;
	name = strrchr(path, '/');
	return strcmp(name ? name + 1 : path, "env") ||
	       found_by_env(word + strlen(path), path, size);
}

bool program_uses_musl(const char *command, char *path, size_t size)
{
	bool more = find(command, path, size), musl = false;

	for (int i = 0; more && i <= SCRIPTS; i++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

		if (fd < 0)
			return false;
		musl = program_of(fd).is_musl;
		more = !musl && interpreter(fd, path, size);
		close(fd);
	}
	return musl;
}
