/* SPDX-License-Identifier: BSD-3-Clause */
/* opener.c - lines that open files, by number, and their rows. */
#include "shim/count/opener.h"

#include <string.h>

enum { LOOKS = 32 };

/* Only the GIL's holder writes these; a number is handed out once its line is stored. */
static struct crema_line lines[OPENER_LINES];
static uint32_t lines_used;

static __thread struct {
	uint64_t path; /* hash */
	uint32_t number;
} expected;

static int is_line(const struct crema_line *a, const struct crema_line *b)
{
	return a->file == b->file && a->line == b->line && a->function == b->function;
}

static uint32_t number_of(const struct crema_line *line)
{
	for (uint32_t i = 0; i < lines_used; i++)
		if (is_line(&lines[i], line))
			return i + 1;
	if (lines_used == OPENER_LINES)
		return 0;
	lines[lines_used] = *line;
	return ++lines_used;
}

static uint64_t hash_of(const char *path)
{
	return crema_hash_more(CREMA_HASH_BEGIN, path, strlen(path));
}

void opener_expect(const char *path, const struct crema_line *line)
{
	expected.number = line->file ? number_of(line) : 0;
	if (expected.number)
		expected.path = hash_of(path);
}

int opener_expects(void)
{
	return expected.number != 0;
}

uint32_t opener_take(const char *path)
{
	uint32_t number = expected.number;

	expected.number = 0;
	return number && path && expected.path == hash_of(path) ? number : 0;
}

void opener_forget(void)
{
	expected.number = 0;
	lines_used = 0;
}

const struct crema_line *opener_line(uint32_t number)
{
	return &lines[number - 1];
}

uint32_t opener_row(uint32_t file_row, const struct crema_line *line)
{
	uint32_t at = file_row * 2654435761u + line->file * 40503u + line->line * 97u;

	for (uint32_t i = 0; i < LOOKS; i++, at++) {
		uint32_t row = at % CREMA_SHM_OPENED;
		struct crema_opened *o = &crema_shm->opened[row];

		if (row_claim(&o->state)) {
			o->file_row = file_row;
			o->line = *line;
			__atomic_store_n(&o->state, 2, __ATOMIC_RELEASE);
			return row + 1;
		}
		if (!row_ready(&o->state))
			break;
		if (o->file_row == file_row && is_line(&o->line, line))
			return row + 1;
	}
	return 0;
}
