/* SPDX-License-Identifier: BSD-3-Clause */
/* gen_wire.c - docs/wire.md: what agents send, from the tables in contract/. */
#include <stdio.h>

#include "ids.h"

struct line {
	const char *name, *about, *help;
};

#define COUNT_OF(a) (sizeof(a) / sizeof(*(a)))
#define PUT(title, text, columns, lines) put(title, text, columns, lines, COUNT_OF(lines))

/* A '|' would end the cell. */
static void put_cell(const char *text)
{
	for (; *text; text++)
		printf(*text == '|' ? "\\%c" : "%c", *text);
}

static void put(const char *title, const char *text, const char *columns, const struct line *line,
		size_t n)
{
	printf("\n## %s\n\n%s%s%s\n", title, text, *text ? "\n\n" : "", columns);
	for (size_t i = 0; i < n; i++) {
		printf("| `%s` | %s | ", line[i].name, line[i].about);
		put_cell(line[i].help);
		printf(" |\n");
	}
}

#define NUMBERED "| name | number | meaning |\n|---|---|---|"
#define TYPED "| name | type | meaning |\n|---|---|---|"

static const struct line frames[] = {
#define FRAME(id, number, help) {#id, #number, help},
#define MESSAGE(id, number, help)
#include "messages.def"
#undef FRAME
#undef MESSAGE
};
static const struct line messages[] = {
#define FRAME(id, number, help)
#define MESSAGE(id, number, help) {#id, #number, help},
#include "messages.def"
#undef FRAME
#undef MESSAGE
};
static const struct line fields[] = {
#define FIELD(name, type, help) {#name, #type, help},
#include "task_fields.def"
#undef FIELD
};
static const struct line times[] = {
#define TIME(id, name, column, short, head, words, label, part, mark, help)                        \
	{#id "_ns", #name, help},
#include "counters.def"
};
static const struct line counts[] = {
#define COUNT(id, unit, name, column, help) {#id, #name, help},
#include "counters.def"
};
static const struct line file[] = {
#define FILE_TEXT(name, group, title, help) {#name, "text", help},
#define FILE_NUMBER(name, cell, title, unit, group, merge, seen, help)                             \
	{#name, #unit ", " #merge, help},
#define FILE_EXTENT(name, help) {#name, "bytes", help},
#define FILE_LIST(name, help) {#name, "list", help},
#include "rows.def"
	{"ranges", "[gap, length, ...]", "extents that were read; nil: too many, or not yet"},
	{"basket_ranges", "[gap, length, ...]", "baskets that were used; nil likewise"},
};
static const struct line codec[] = {
#define CODEC_TEXT(name, help) {#name, "text", help},
#define CODEC_NUMBER(name, cell, title, unit, merge, timed, help) {#name, #unit ", " #merge, help},
#include "rows.def"
};
static const struct line server[] = {
#define SERVER_TEXT(name, help) {#name, "text", help},
#define SERVER_NUMBER(name, cell, title, unit, merge, help) {#name, #unit ", " #merge, help},
#define SERVER_LIST(name, help) {#name, "list", help},
#include "rows.def"
};
static const struct line section[] = {
#define SECTION_FIELD(name, help) {#name, "", help},
#define SECTION_NUMBER(name, cell, title, unit, merge, help) {#name, #unit ", " #merge, help},
#include "rows.def"
};
static const struct line column[] = {
#define COLUMN_FIELD(name, help) {#name, "", help},
#define COLUMN_NUMBER(name, cell, title, unit, merge, help) {#name, #unit ", " #merge, help},
#include "rows.def"
};
static const struct line gauge[] = {
#define GAUGE_FIELD(name, help) {#name, "", help},
#define GAUGE_PART(name, help) {"stats, part " #name, "list", help},
#define GAUGE_NUMBER(name, type, merge, help) {"stats, " #name, #type ", " #merge, help},
#include "rows.def"
};
static const struct line totals[] = {
#define TOTALS_FIELD(name, help) {#name, "", help},
#define TOTALS_NUMBER(name, shown, help) {#name, "SUM", help},
#define TOTALS_AMOUNT(part, name, help) {#part "." #name, "SUM", help},
#include "rows.def"
};
static const struct line sample[] = {
#define SAMPLE_FIELD(name, help) {#name, "", help},
#define SAMPLE_NUMBER(name, type, column, help) {#name, #type, help},
#include "rows.def"
};
static const struct line host[] = {
#define HOST_FIELD(name, help) {#name, "", help},
#define HOST_NUMBER(name, type, column, counts, help) {#name, #type, help},
#include "rows.def"
};
static const struct line doing[] = {
#define DOING_TEXT(name, help) {#name, "text", help},
#define DOING_NUMBER(name, help) {#name, "number", help},
#define DOING_FIELD(name, help) {#name, "", help},
#include "rows.def"
};
static const struct line lines[] = {
#define LINES_FIELD(name, help) {#name, "", help},
#include "rows.def"
};
static const struct line lines_rows[] = {
#define LINES_OF_ROW(name, help) {#name, "", help},
#include "rows.def"
};
static const struct line lines_large[] = {
#define LINES_LARGE(name, kind, cell, shown, help) {#name, #cell, #kind ": " help},
#include "rows.def"
};
static const struct line lines_bytes[] = {
#define LINES_BYTES(name, cell, shown, head, count, wait, help) {#name, #cell, help},
#include "rows.def"
};

int main(void)
{
	printf("# What agents send\n\nGenerated from `contract/messages.def`, `task_fields.def`, "
	       "`counters.def` and "
	       "`rows.def`; frames, identity and the handshake are in `contract/wire.h`. Values "
	       "are msgpack; nil means "
	       "unknown. SUM, MAX and LATEST define how rows of several workers and spans are "
	       "merged; within one row "
	       "numbers are cumulative, and a number is unknown if the row's newest record has nil "
	       "(newest: the highest record number of the latest stream).\n");
	PUT("Frames", "", NUMBERED, frames);
	PUT("Messages of a DATA frame", "", NUMBERED, messages);
	PUT("Fields of a task",
	    "In this order unless the HELLO names another; then times, pool threads' times "
	    "(`pool_` before "
	    "the name) and counts.",
	    TYPED, fields);
	PUT("Times", "", "| name | column | meaning |\n|---|---|---|", times);
	PUT("Counts", "Also in TOTALS (`tasks`, `unattributed`), SECTION (`counters`) and SAMPLE.",
	    "| name | column | meaning |\n|---|---|---|", counts);
	PUT("FILE",
	    "Extents are valid if `extent_bytes` = `read_bytes`, baskets if "
	    "`basket_extent_bytes` = `basket_bytes`; all are nil if the file changed after it was "
	    "read.",
	    TYPED, file);
	PUT("CODEC", "", TYPED, codec);
	PUT("SERVER", "", TYPED, server);
	PUT("SECTION",
	    "Inclusive; the highest `rev` is valid, of several records with it the newest.", TYPED,
	    section);
	PUT("COLUMN",
	    "Exclusive; the highest `rev` is valid, of several records with it the newest.", TYPED,
	    column);
	PUT("GAUGE", "The highest `rev` is valid, of several records with it the newest.", TYPED,
	    gauge);
	PUT("TOTALS",
	    "The latest is valid. Unattributed CPU is `seen` - `tasks`; CPU that the shim did "
	    "not see is `process` - `seen`.",
	    TYPED, totals);
	PUT("SAMPLE", "With the counts of tasks and unattributed work together.", TYPED, sample);
	PUT("HOST", "", TYPED, host);
	PUT("LINES",
	    "A stack's row follows in the next table; also in it are the maps of the two tables "
	    "after that, "
	    "and `waits` and `waited_ns` (number and time of long waits, by class, exact), which "
	    "are absent without long waits.",
	    TYPED, lines);
	PUT("Rows of LINES", "", TYPED, lines_rows);
	PUT("Bytes of LINES",
	    "Keys of a row's maps `byte_samples`, `bytes` and `byte_variance` (bytes squared), "
	    "which "
	    "are absent without samples.",
	    "| name | column | meaning |\n|---|---|---|", lines_bytes);
	PUT("LINES, large",
	    "Keys of a row's map `large`, which is absent if the stack made no large allocation: "
	    "exact "
	    "numbers of blocks of at least `large_bytes`, a number of the message (0: none are "
	    "recorded). The map also has `changes`, which grows with each change, and `epoch`. SUM "
	    "grows; NOW grows and shrinks, and adds up over the tables of a worker; PEAK is valid "
	    "in "
	    "rows with the newest `epoch` of a worker and span.",
	    "| name | column | meaning |\n|---|---|---|", lines_large);
	PUT("DOING",
	    "The map has `boot_ns`, `rows` with these, and `cut`, the number of rows left out. The "
	    "latest is valid; times are of CLOCK_BOOTTIME.",
	    TYPED, doing);
	return 0;
}
