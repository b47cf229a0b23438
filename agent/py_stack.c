/* SPDX-License-Identifier: BSD-3-Clause */
/* py_stack.c - frames of CPython, read from outside. */
#include "agent/py_stack.h"

#include <limits.h>
#include <string.h>

#include "agent/py_memory.h"
#include "fnv.h"

#define CODE_BYTES_LEAST 152u
#define COPIES_MOST 256u /* threads whose instructions are found */
#define TEXT_LENGTH 16u
#define TEXT_STATE 32u
#define WALKS 4
#define MORE_WALKS 10 /* while fewer than SHORT frames are known to be right */
#define SHORT 4	      /* frames: each thread of Dask's has more */
#define PAGE 4096u

/* The layout of this interpreter; leaves minor 0 if there is none. */
static bool find_layout(struct py_process *p)
{
	uint8_t told[PY_OFFSETS_BYTES];
	size_t n = p->read(p->arg, p->runtime, told, sizeof(told));

	return py_layout_find(p->version, n == sizeof(told) ? told : NULL, &p->layout) == 0;
}

bool py_stack_knows(struct py_process *p)
{
	return p->layout.minor || find_layout(p);
}

static uint64_t first_frame(const struct py_process *p, const struct py_layout *l, uint64_t state,
			    uint32_t tid)
{
	uint64_t v, of = tid;

	if (tid && l->member[PY_THREAD_TID] != PY_ABSENT &&
	    (!py_copy(p, state + l->member[PY_THREAD_TID], &of, 8) || of != tid))
		return 0;
	if (!py_copy(p, state + l->member[PY_THREAD_FRAME], &v, sizeof(v)))
		return 0;
	if (l->member[PY_CFRAME_FRAME] != PY_ABSENT &&
	    !py_copy(p, v + l->member[PY_CFRAME_FRAME], &v, sizeof(v)))
		return 0;
	return v;
}

/* Frames are close together in memory: whole pages are read, and the latest are kept for one
 * walk. */
struct pages {
	struct page {
		uint64_t at; /* 0: none */
		size_t bytes;
		uint8_t byte[PAGE];
	} page[4];
	unsigned int next;
};

static const struct page *page_of(const struct py_process *p, struct pages *pages, uint64_t at)
{
	struct page *page;

	for (size_t i = 0; i < sizeof(pages->page) / sizeof(*pages->page); i++)
		if (pages->page[i].at == at)
			return &pages->page[i];
	page = &pages->page[pages->next++ % (sizeof(pages->page) / sizeof(*pages->page))];
	page->at = at;
	page->bytes = p->read(p->arg, at, page->byte, PAGE);
	return page;
}

/* Returns how many bytes from the start could be read. */
static size_t read_paged(const struct py_process *p, struct pages *pages, uint64_t at, void *to,
			 size_t bytes)
{
	const struct page *page;
	size_t done = 0, from, n;

	while (at >= PAGE && done < bytes) {
		from = (at + done) % PAGE;
		page = page_of(p, pages, at + done - from);
		n = page->bytes > from ? page->bytes - from : 0;
		n = n < bytes - done ? n : bytes - done;
		memcpy((uint8_t *)to + done, page->byte + from, n);
		done += n;
		if (from + n < PAGE)
			break;
	}
	return done;
}

/* One frame of the chain; false: it is not a frame. *skip: it runs no Python code. */
static bool read_frame(const struct py_process *p, const struct py_layout *l, struct pages *pages,
		       uint64_t at, struct py_frame *f, uint64_t *back, bool *skip)
{
	uint8_t bytes[PY_FRAME_BYTES];
	uint32_t last;

	/* Frames are in chunks: the last frame may be closer to the chunk's end than that. */
	memset(bytes, 0, sizeof(bytes));
	if (read_paged(p, pages, at, bytes, sizeof(bytes)) < 80)
		return false;
	f->frame = at;
	f->code = PY_CODE_OF(py_word(bytes, l->member[PY_FRAME_CODE]));
	f->instruction = py_word(bytes, l->member[PY_FRAME_AT]);
	*back = py_word(bytes, l->member[PY_FRAME_BACK]);
	*skip = l->member[PY_FRAME_OWNER] != PY_ABSENT &&
		bytes[l->member[PY_FRAME_OWNER]] >= PY_OWNED_BY_C;
	if (l->member[PY_CODE_START] == PY_ABSENT) {
		memcpy(&last, bytes + l->member[PY_FRAME_AT], sizeof(last));
		f->instruction = last;
	}
	return true;
}

static size_t walk(const struct py_process *p, uint64_t state, uint32_t tid, struct py_frame *frame)
{
	const struct py_layout *l = &p->layout;
	uint64_t at = first_frame(p, l, state, tid);
	struct pages pages = {.next = 0};
	size_t n = 0;
	bool skip;

	for (int steps = 0; at && n < PY_FRAMES && steps < 2 * PY_FRAMES; steps++) {
		if (!read_frame(p, l, &pages, at, &frame[n], &at, &skip))
			return 0;
		n += !skip;
	}
	return n;
}

/* How many frames from the outermost one on are the same in both. */
static size_t common(const struct py_frame *a, size_t na, const struct py_frame *b, size_t nb)
{
	size_t n = 0;

	while (n < na && n < nb && a[na - 1 - n].frame == b[nb - 1 - n].frame &&
	       a[na - 1 - n].code == b[nb - 1 - n].code)
		n++;
	return n;
}

/* The beginnings of all frames' code objects; false: one of them is not a code object. */
static bool read_codes(const struct py_process *p, const struct py_frame *frame, size_t n,
		       uint8_t code[][PY_CODE_BYTES])
{
	uint64_t at[PY_FRAMES] = {0};

	for (size_t i = 0; i < n; i++)
		at[i] = frame[i].code;
	memset(code, 0, n * PY_CODE_BYTES);
	if (!p->read_all || !p->read_all(p->arg, at, n, code, PY_CODE_BYTES))
		for (size_t i = 0; i < n; i++)
			if (at[i] < PAGE ||
			    p->read(p->arg, at[i], code[i], PY_CODE_BYTES) < CODE_BYTES_LEAST)
				return false;
	for (size_t i = 0; i < n; i++)
		if (!p->code_type ||
		    py_word(code[i], PY_OBJECT_TYPE + p->layout.more) != p->code_type)
			return false;
	return true;
}

static uint32_t check_of(const struct py_layout *l, const uint8_t *code)
{
	uint32_t first;

	memcpy(&first, code + l->member[PY_CODE_FIRST], sizeof(first));
	return py_code_check(py_word(code, l->member[PY_CODE_NAME]),
			     py_word(code, l->member[PY_CODE_FILE]),
			     py_word(code, l->member[PY_CODE_LINES]), first);
}

/* Free threaded: each thread runs a copy of the instructions of its own. Returns the address in the
 * code object of the instruction that `bits` low bits of an address in any of them name; 0: it is
 * in none. */
static uint64_t instruction_in(const struct py_process *p, uint64_t at, const uint8_t *code,
			       uint64_t instruction, uint64_t bits)
{
	const struct py_layout *l = &p->layout;
	uint64_t table[1 + COPIES_MOST], words = py_word(code, PY_SIZE + l->more), offset;
	size_t n = p->read(p->arg, py_word(code, l->member[PY_CODE_COPIES]), table, sizeof(table));

	/* how many, and the address of each */
	for (size_t i = 1; i < n / sizeof(*table) && i <= table[0]; i++) {
		offset = (instruction - table[i]) & bits;
		if (table[i] && offset < 2 * words)
			return at + l->member[PY_CODE_START] + offset;
	}
	return 0;
}

static uint64_t key_of(const struct py_frame *f)
{
	uint64_t key = crema_hash_more(CREMA_HASH_BEGIN, &f->code, sizeof(f->code));

	key = crema_hash_more(key, &f->instruction, sizeof(f->instruction));
	return crema_hash_more(key, &f->check, sizeof(f->check));
}

struct py_frame py_stack_frame(const struct py_process *p, const struct crema_py_frame *recorded)
{
	struct py_frame f = {.code = recorded->code, .check = recorded->check};
	uint8_t code[PY_CODE_BYTES] = {0};

	if (p->layout.more) {
		p->read(p->arg, f.code, code, sizeof(code));
		f.instruction = instruction_in(p, f.code, code, recorded->at, UINT32_MAX);
	} else {
		f.instruction =
			recorded->at + (p->layout.member[PY_CODE_START] == PY_ABSENT ? 0 : f.code);
	}
	f.key = key_of(&f);
	return f;
}

/* A generator that is suspended meanwhile ends the chain, and a loop over one suspends it all the
 * time. So what is the same in any two walks counts, and a short chain is not trusted yet. */
size_t py_stack_sample(struct py_process *p, uint64_t thread_state, uint32_t tid,
		       struct py_frame frame[PY_FRAMES], size_t *whole)
{
	/* one thread at a time */
	static struct py_frame walked[MORE_WALKS][PY_FRAMES];
	static uint8_t code[PY_FRAMES][PY_CODE_BYTES];
	size_t n[MORE_WALKS], same = 0, alike, best = 0;
	bool still = false;

	*whole = 0;
	if (!thread_state || !py_stack_knows(p))
		return 0;
	for (size_t i = 0; i < (same < SHORT ? MORE_WALKS : WALKS) && !still; i++) {
		n[i] = walk(p, thread_state, tid, walked[i]);
		for (size_t k = 0; k < i; k++) {
			alike = common(walked[i], n[i], walked[k], n[k]);
			if (alike <= same)
				continue;
			same = alike;
			best = i;
			still = same == n[i] && same == n[k] && same >= SHORT;
		}
	}
	*whole = n[best];
	memcpy(frame, walked[best] + n[best] - same, same * sizeof(*frame));
	if (!same || !read_codes(p, frame, same, code))
		return 0;
	for (size_t i = 0; i < same; i++) {
		frame[i].check = check_of(&p->layout, code[i]);
		if (p->layout.more)
			frame[i].instruction = instruction_in(p, frame[i].code, code[i],
							      frame[i].instruction, UINT64_MAX);
		frame[i].key = key_of(&frame[i]);
	}
	return same;
}

size_t py_stack_walk(struct py_process *p, uint64_t thread_state, uint32_t tid,
		     struct py_frame frame[PY_FRAMES])
{
	size_t whole, n;

	p->layout.minor = 0;
	n = py_stack_sample(p, thread_state, tid, frame, &whole);
	return n == whole ? n : 0;
}

uint64_t py_stack_entry(struct py_process *p, uint64_t thread_state, uint32_t tid)
{
	const struct py_layout *l = &p->layout;
	struct pages pages = {.next = 0};
	struct py_frame frame;
	bool skip = false;
	uint64_t at, back;

	if (!thread_state || !py_stack_knows(p))
		return 0;
	if (l->member[PY_CFRAME_FRAME] != PY_ABSENT)
		return py_copy(p, thread_state + l->member[PY_THREAD_FRAME], &at, sizeof(at)) ? at
											      : 0;
	at = first_frame(p, l, thread_state, tid);
	for (int steps = 0; at && steps < PY_FRAMES; steps++, at = back) {
		if (!read_frame(p, l, &pages, at, &frame, &back, &skip))
			return 0;
		if (skip)
			return at;
	}
	return 0;
}

/* The interpreter lock */

/* CPython 3.10 to 3.15: unsigned long interval; void *last_holder; int locked; unsigned long
 * switch_number; condition variable, mutex, condition variable for forced switches, mutex. */
#define GIL_HOLDER 8u
#define GIL_LOCKED 16u
#define GIL_SWITCHES 24u
#define GIL_COND 32u
#define GIL_FORCED (GIL_COND + 48u + 40u)
#define INTERVAL_MOST_US 1000000000u

bool py_gil_read(const struct py_process *p, uint64_t cond, struct py_gil *gil)
{
	static const unsigned int at[] = {GIL_COND, GIL_FORCED};
	uint8_t b[GIL_COND];
	uint32_t locked;

	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
		if (!py_copy(p, cond - at[i], b, sizeof(b)) || !py_word(b, 0) ||
		    py_word(b, 0) > INTERVAL_MOST_US)
			continue;
		memcpy(&locked, b + GIL_LOCKED, sizeof(locked));
		gil->holder = py_word(b, GIL_HOLDER);
		gil->switches = py_word(b, GIL_SWITCHES);
		return locked == 1 && gil->holder;
	}
	return false;
}

/* Names */

static size_t put_utf8(char *to, uint32_t c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | (c >> 18 & 7));
	to[1] = (char)(0x80 | (c >> 12 & 0x3f));
	to[2] = (char)(0x80 | (c >> 6 & 0x3f));
	to[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* A str, cut to `size`; with `tail` the end of a longer one is kept. */
static bool read_text(const struct py_process *p, const struct py_layout *l, uint64_t object,
		      char *out, size_t size, bool tail)
{
	uint8_t head[40], data[4 * PY_FILE_BYTES];
	uint64_t length, from = 0;
	size_t n, used = 0;
	uint32_t state, kind;

	if (!py_has_type(p, object, p->unicode_type) ||
	    !py_copy(p, object + l->more, head, sizeof(head)))
		return false;
	length = py_word(head, TEXT_LENGTH);
	memcpy(&state, head + TEXT_STATE, sizeof(state));
	state >>= l->more ? 8 : 2; /* interned */
	kind = state & 7;
	if (!(state >> 3 & 1) || (kind != 1 && kind != 2 && kind != 4) || length > 1u << 20)
		return false;
	n = length < size - 1 ? length : size - 1;
	if (tail)
		from = length - n;
	if (n && !py_copy(p, object + (state >> 4 & 1 ? l->ascii : l->compact) + from * kind, data,
			  n * kind))
		return false;
	for (size_t i = 0; i < n && used + 4 < size; i++) {
		uint32_t c = 0;

		memcpy(&c, data + i * kind, kind); /* little-endian, as both machines are */
		used += put_utf8(out + used, c);
	}
	out[used] = '\0';
	return true;
}

static unsigned int varint(const struct py_table *t, size_t *at)
{
	unsigned int v = 0, shift = 0, c = 0x40;

	while (c & 0x40 && *at < t->n && shift < 30) {
		c = t->byte[(*at)++];
		v |= (c & 0x3f) << shift;
		shift += 6;
	}
	return v;
}

/* One entry of co_linetable: the line, and how many bytes of code it covers. */
static int64_t line_entry(const struct py_table *t, size_t *at, int64_t *line, uint64_t *bytes)
{
	unsigned int head = t->byte[(*at)++], kind = head >> 3 & 15, v;

	*bytes = ((head & 7) + 1) * 2;
	if (kind == 15)
		return 0;
	if (kind == 14 || kind == 13) {
		v = varint(t, at);
		*line += v & 1 ? -(int64_t)(v >> 1) : (int64_t)(v >> 1);
		for (int i = 0; kind == 14 && i < 3; i++)
			varint(t, at);
	} else if (kind >= 10) {
		*line += (int)kind - 10;
		*at += 2;
	} else {
		*at += 1;
	}
	return *line;
}

static int64_t line_at(const struct py_table *t, int64_t line, uint64_t offset)
{
	uint64_t done = 0, bytes;

	for (size_t at = 0; at < t->n; done += bytes) {
		int64_t here = line_entry(t, &at, &line, &bytes);

		if (offset < done + bytes)
			return here;
	}
	return 0;
}

/* 3.10: pairs of bytes of code and a step of lines. */
static int64_t line_of_310(const struct py_table *t, int64_t line, uint64_t offset)
{
	uint64_t done = 0;

	for (size_t at = 0; at + 1 < t->n; at += 2) {
		int step = t->byte[at + 1] - (t->byte[at + 1] > 127 ? 256 : 0);

		if (step != -128)
			line += step;
		done += t->byte[at];
		if (offset < done)
			return step == -128 ? 0 : line;
	}
	return 0;
}

static int64_t line_of(const struct py_process *p, const struct py_layout *l, const uint8_t *code,
		       const struct py_frame *f)
{
	static struct py_table t; /* one thread */
	uint64_t start;
	int32_t first;

	memcpy(&first, code + l->member[PY_CODE_FIRST], sizeof(first));
	if (first < 0 || first > 1 << 28 ||
	    !py_read_bytes(p, py_word(code, l->member[PY_CODE_LINES]), &t))
		return 0;
	if (l->member[PY_CODE_START] == PY_ABSENT)
		return line_of_310(&t, first, f->instruction * 2);
	start = f->code + l->member[PY_CODE_START];
	return f->instruction < start ? first : line_at(&t, first, f->instruction - start);
}

bool py_stack_name(const struct py_process *p, const struct py_frame *frame,
		   char function[PY_NAME_BYTES], char file[PY_FILE_BYTES], int *line)
{
	uint8_t code[PY_CODE_BYTES] = {0};
	const struct py_layout *l = &p->layout;
	int64_t at;

	if (!l->minor || !py_has_type(p, frame->code, p->code_type) ||
	    p->read(p->arg, frame->code, code, sizeof(code)) < CODE_BYTES_LEAST ||
	    check_of(l, code) != frame->check ||
	    !read_text(p, l, py_word(code, l->member[PY_CODE_NAME]), function, PY_NAME_BYTES,
		       false) ||
	    !read_text(p, l, py_word(code, l->member[PY_CODE_FILE]), file, PY_FILE_BYTES, true))
		return false;
	at = line_of(p, l, code, frame);
	*line = at > 0 && at < INT_MAX ? (int)at : 0;
	return true;
}
