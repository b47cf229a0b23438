/* SPDX-License-Identifier: BSD-3-Clause */
/* py_lock.c - CPython's locks, read from outside. */
#include "agent/py_lock.h"

#include "agent/py_memory.h"
#include "common/code_name.h"

/* Offsets in objects, the same in CPython 3.10 to 3.15; plus the layout's `more`. */
#define LOCK_WORD 16u /* to 3.13 the address of a semaphore, then a PyMutex */
#define RLOCK_OWNER 24u
#define TYPE_NAME 24u
/* Of a bound builtin method; its PyMethodDef begins with the name. */
#define METHOD_DEF 16u
#define METHOD_SELF 24u
#define DESCRIPTOR_TYPE 16u
#define DESCRIPTOR_DEF 40u
#define CODE_EXCEPTIONS 40u /* from 3.11 on */
#define OBJECT_BYTES 48u    /* covers all of these */
/* A thread that waits for a PyMutex does so on a semaphore on its stack; the mutex's address is in
 * the word before. */
#define MUTEXES_FROM 14u
#define PARKED_ADDRESS 8u
/* 3.10: members of a frame, and of its blocks. */
#define FRAME_STACK 64u
#define FRAME_BLOCK_COUNT 104u
#define FRAME_BLOCKS 112u
#define FRAME_BLOCKS_MOST 20u
#define BLOCK_SETUP_FINALLY 122u

#define SLOTS 32u /* values of a frame that are read at most */
#define LOCALS_MOST 4096u

/* Of an object, without the `more`; false: it cannot be read. Values on a frame's stack have
 * tags. */
static bool read_object(const struct py_process *p, uint64_t value, uint8_t to[OBJECT_BYTES])
{
	memset(to, 0, OBJECT_BYTES);
	value = PY_CODE_OF(value);
	return value >= 4096 && p->read(p->arg, value + p->layout.more, to, OBJECT_BYTES) >= 32;
}

static bool is_text(const struct py_process *p, uint64_t address, const char *text)
{
	char name[16];
	size_t n = strlen(text) + 1;

	return py_copy(p, address, name, n) && !memcmp(name, text, n);
}

/* Whether there is a lock at this address, and of which type. */
static bool read_lock(const struct py_process *p, uint64_t object, struct py_lock *lock)
{
	uint64_t type, name;

	if (!py_copy(p, object + PY_OBJECT_TYPE + p->layout.more, &type, sizeof(type)) ||
	    !py_copy(p, type + TYPE_NAME + p->layout.more, &name, sizeof(name)))
		return false;
	*lock = (struct py_lock){
		.object = object, .type = type, .stores_owner = is_text(p, name, "_thread.RLock")};
	return lock->stores_owner || is_text(p, name, "_thread.lock");
}

/* How many variables a frame has before its stack of values; LOCALS_MOST: unknown. */
static uint64_t variables(const struct py_process *p, const struct py_frame *f)
{
	const struct py_layout *l = &p->layout;
	uint64_t v, stack;

	if (l->member[PY_CODE_SLOTS] == PY_ABSENT) {
		stack = f->frame + l->member[PY_FRAME_SLOTS];
		if (!py_copy(p, f->frame + FRAME_STACK, &v, sizeof(v)) || v < stack)
			return LOCALS_MOST;
		v = (v - stack) / 8;
	} else if (!py_copy(p, f->code + l->member[PY_CODE_SLOTS], &v, sizeof(v)) ||
		   !py_copy(p, v + PY_SIZE + l->more, &v, sizeof(v))) {
		return LOCALS_MOST;
	}
	return v < LOCALS_MOST ? v : LOCALS_MOST;
}

/* The first `n` values on a frame's stack; returns how many could be read. */
static size_t read_values(const struct py_process *p, const struct py_frame *f, size_t n,
			  uint64_t value[SLOTS])
{
	uint64_t before = variables(p, f);

	n = n < SLOTS ? n : SLOTS;
	if (before == LOCALS_MOST)
		return 0;
	return p->read(p->arg, f->frame + p->layout.member[PY_FRAME_SLOTS] + 8 * before, value,
		       8 * n) /
	       8;
}

/* True if the frame runs a function or method of threading.py with that name. */
static bool is_of_threading(const struct py_process *p, const struct py_frame *f, const char *name)
{
	char function[PY_NAME_BYTES], file[PY_FILE_BYTES];
	int line;

	return py_stack_name(p, f, function, file, &line) &&
	       code_ends_with(file, "/threading.py") && !strcmp(code_last_name(function), name);
}

/* The call has the lock, or a method bound to it, among its frame's values, which may have others
 * left above those in use. */
static bool find_lock(const struct py_process *p, uint64_t semaphore, const struct py_frame *frame,
		      struct py_lock *lock)
{
	uint64_t value[SLOTS], self;
	uint8_t b[OBJECT_BYTES];
	size_t n;

	if (p->layout.minor >= MUTEXES_FROM)
		return py_copy(p, semaphore - PARKED_ADDRESS, &self, sizeof(self)) &&
		       read_lock(p, self - LOCK_WORD - p->layout.more, lock);
	n = read_values(p, frame, SLOTS, value);
	for (size_t i = 0; i < n; i++) {
		if (!read_object(p, value[i], b))
			continue;
		self = py_word(b, LOCK_WORD) == semaphore ? value[i] : py_word(b, METHOD_SELF);
		if (self != value[i] &&
		    (!read_object(p, self, b) || py_word(b, LOCK_WORD) != semaphore))
			continue;
		if (read_lock(p, self, lock))
			return true;
	}
	return false;
}

/* Condition.wait() makes a Lock for each call: nobody holds it, and it is not worth a search. */
bool py_lock_of(const struct py_process *p, uint64_t semaphore, const struct py_frame *frame,
		struct py_lock *lock)
{
	return find_lock(p, semaphore, frame, lock) &&
	       (lock->stores_owner || !is_of_threading(p, frame, "wait"));
}

uint64_t py_lock_owner(const struct py_process *p, const struct py_lock *lock)
{
	uint64_t owner;

	if (!lock->stores_owner ||
	    !py_copy(p, lock->object + RLOCK_OWNER + p->layout.more, &owner, sizeof(owner)))
		return 0;
	return owner;
}

uint64_t py_thread_ident(const struct py_process *p, uint64_t thread_state)
{
	uint64_t ident;

	if (!py_copy(p, thread_state + p->layout.member[PY_THREAD_IDENT], &ident, sizeof(ident)))
		return 0;
	return ident;
}

/* Numbers of the table of exceptions: 6 bits per byte, the most significant first. */
static uint64_t number_at(const struct py_table *t, size_t *at)
{
	uint64_t v = 0;
	uint8_t c = 0x40;

	for (int i = 0; i < 6 && c & 0x40 && *at < t->n; i++) {
		c = t->byte[(*at)++];
		v = v << 6 | (c & 0x3f);
	}
	return v;
}

/* How many values are certainly on the frame's stack: those that the handler of the present
 * instruction keeps. */
static uint64_t depth_of(const struct py_process *p, const struct py_frame *f)
{
	static struct py_table t; /* one thread */
	uint64_t start = f->code + p->layout.member[PY_CODE_START], object, at;

	if (f->instruction < start ||
	    !py_copy(p, f->code + CODE_EXCEPTIONS + p->layout.more, &object, sizeof(object)) ||
	    !py_read_bytes(p, object, &t))
		return 0;
	at = (f->instruction - start) / 2;
	for (size_t i = 0; i < t.n;) {
		uint64_t from = number_at(&t, &i), length = number_at(&t, &i), depth;

		number_at(&t, &i); /* the handler */
		depth = number_at(&t, &i) >> 1;
		if (at >= from && at - from < length)
			return depth;
	}
	return 0;
}

/* 3.10: each block has a level of the stack. Returns that of the innermost. */
static uint64_t depth_of_310(const struct py_process *p, const struct py_frame *f)
{
	struct {
		uint32_t type, handler, level;
	} block;
	uint32_t n;

	if (!py_copy(p, f->frame + FRAME_BLOCK_COUNT, &n, sizeof(n)) || n > FRAME_BLOCKS_MOST)
		return 0;
	while (n--) {
		if (!py_copy(p, f->frame + FRAME_BLOCKS + n * sizeof(block), &block, sizeof(block)))
			return 0;
		if (block.type == BLOCK_SETUP_FINALLY)
			return block.level;
	}
	return 0;
}

/* Value i is the lock's __exit__: bound to the lock, or (from 3.14 on) with the lock above it. */
static bool is_exit(const struct py_process *p, const struct py_lock *lock, const uint64_t *value,
		    size_t i, size_t n)
{
	uint8_t b[OBJECT_BYTES];
	uint64_t def = 0, name;

	if (!read_object(p, value[i], b))
		return false;
	if (py_word(b, METHOD_SELF) == lock->object)
		def = py_word(b, METHOD_DEF);
	else if (i + 1 < n && PY_CODE_OF(value[i + 1]) == lock->object &&
		 py_word(b, DESCRIPTOR_TYPE) == lock->type)
		def = py_word(b, DESCRIPTOR_DEF);
	return def && py_copy(p, def, &name, sizeof(name)) && is_text(p, name, "__exit__");
}

static bool is_in_with(const struct py_process *p, const struct py_lock *lock,
		       const struct py_frame *f)
{
	uint64_t value[SLOTS];
	uint64_t depth =
		p->layout.member[PY_CODE_START] == PY_ABSENT ? depth_of_310(p, f) : depth_of(p, f);
	size_t n = depth ? read_values(p, f, depth, value) : 0;

	for (size_t i = 0; i < n; i++)
		if (is_exit(p, lock, value, i, n))
			return true;
	return false;
}

/* Events, queues and futures wait for conditions with locks of their own. */
static bool has_own_lock(const struct py_process *p, const struct py_frame *f)
{
	static const char *const files[] = {"/threading.py", "/queue.py", "/futures/_base.py"};
	char function[PY_NAME_BYTES], file[PY_FILE_BYTES];
	int line;

	if (!py_stack_name(p, f, function, file, &line))
		return false;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		if (code_ends_with(file, files[i]))
			return true;
	return false;
}

/* Whether the body, the frame after these, may have released the lock: Condition.wait() does. */
static bool may_be_released(const struct py_process *p, const struct py_frame *frame, size_t body)
{
	for (size_t i = 0; i < body; i++) {
		size_t by = i + 1;

		if (!is_of_threading(p, &frame[i], "wait"))
			continue;
		if (by < body && is_of_threading(p, &frame[by], "wait_for"))
			by++;
		if (by == body || !has_own_lock(p, &frame[by]))
			return true;
		i = by; /* Event.wait(), too, is called "wait" */
	}
	return false;
}

bool py_lock_is_within(const struct py_process *p, const struct py_lock *lock,
		       const struct py_frame *frame, size_t frames)
{
	for (size_t i = 0; i < frames; i++)
		if (is_in_with(p, lock, &frame[i]))
			return !may_be_released(p, frame, i);
	return false;
}
