/* SPDX-License-Identifier: BSD-3-Clause */
/* attempt.c - packs and unpacks the numbers of an attempt (attempt.h). */
#include "collector/model/attempt.h"

#include <endian.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "collector/model/model.h"

/* Where each field is stored. */
/* clang-format off */
#define MEMBERS(X) \
	X(attempt) X(key_hash) X(flags) X(wall_ns) \
	X(key) X(prefix) X(span) X(dataset) X(filename) X(columns)
#define SHARED(X) \
	X(status) X(function) X(worker_address) X(worker_name) X(fs_unknown) X(treename) \
	X(error_type) X(error_text) X(error_cause) X(sections)
#define PACKED(X) \
	X(thread) X(thread_sequence) X(start_boot_ns) X(stop_boot_ns) X(rss_start_bytes) \
	X(rss_stop_bytes) X(rss_peak_bytes) X(tree_reads) X(entrystart) X(entrystop) X(events) \
	X(coffea_bytesread) X(coffea_processtime) X(consumes)
/* clang-format on */

#define ONE(name) +1
_Static_assert(0 MEMBERS(ONE) SHARED(ONE) PACKED(ONE) == TASK_FIELDS, "each field has its place");
#undef ONE

/* Order of the packed numbers: these fields, then own times, pool times and counts. */
enum slot {
#define SLOT(name) SLOT_##name,
	PACKED(SLOT)
#undef SLOT
		SLOT_OWN,
	SLOT_POOL = SLOT_OWN + CREMA_TIMES,
	SLOT_COUNT = SLOT_POOL + CREMA_TIMES,
	SLOTS = SLOT_COUNT + CREMA_COUNTS
};

#define BITMAP_WORDS ((SLOTS + 63u) / 64u)
#define BITMAP_BYTES ((SLOTS + 7u) / 8u)
#define NUMBER_BYTES 10u /* the longest: 64 bits by 7 */

/* Offset of each packed number in struct attempt_detail; all have 64 bits. */
static const uint16_t places[SLOTS] = {
#define PLACE(name) [SLOT_##name] = offsetof(struct attempt_detail, name),
	PACKED(PLACE)
#undef PLACE
#define TIME(id, ...)                                                                              \
	[SLOT_OWN + CREMA_T_##id] = offsetof(struct attempt_detail, c.own[CREMA_T_##id]),          \
		    [SLOT_POOL + CREMA_T_##id] =                                                   \
			    offsetof(struct attempt_detail, c.pool[CREMA_T_##id]),
#define COUNT(id, unit, ...)                                                                       \
	[SLOT_COUNT + CREMA_C_##id] = offsetof(struct attempt_detail, c.count[CREMA_C_##id]),
#include "counters.def"
#undef TIME
#undef COUNT
};

static size_t pack(const struct attempt_detail *d, unsigned char *out)
{
	unsigned char *at = out + BITMAP_BYTES;
	unsigned int i;
	uint64_t v;

	memset(out, 0, BITMAP_BYTES);
	for (i = 0; i < SLOTS; i++) {
		memcpy(&v, (const char *)d + places[i], sizeof(v));
		if (!v)
			continue;
		out[i / 8] |= (unsigned char)(1u << i % 8);
		for (; v > 0x7f; v >>= 7)
			*at++ = (unsigned char)(v | 0x80);
		*at++ = (unsigned char)v;
	}
	return (size_t)(at - out);
}

static const unsigned char *unpack_one(const unsigned char *at, uint64_t *v)
{
	unsigned int shift = 0;

	for (*v = 0; *at & 0x80; shift += 7)
		*v |= (uint64_t)(*at++ & 0x7f) << shift;
	*v |= (uint64_t)*at++ << shift;
	return at;
}

static bool is_set(const unsigned char *bytes, unsigned int i)
{
	return bytes[i / 8] >> i % 8 & 1;
}

/* Leaves absent numbers unchanged. */
static void unpack(const unsigned char *bytes, struct attempt_detail *d)
{
	const unsigned char *at = bytes + BITMAP_BYTES;
	unsigned int i, bits;
	uint64_t v;

	for (i = 0; i < BITMAP_BYTES; i++) {
		for (bits = bytes[i]; bits; bits &= bits - 1) {
			at = unpack_one(at, &v);
			memcpy((char *)d + places[i * 8 + (unsigned int)__builtin_ctz(bits)], &v,
			       sizeof(v));
		}
	}
}

/* The compiler calls a function if old processors without the instruction must be supported. */
static unsigned int ones(uint64_t v)
{
	v -= v >> 1 & 0x5555555555555555;
	v = (v & 0x3333333333333333) + (v >> 2 & 0x3333333333333333);
	v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0f;
	return (unsigned int)(v * 0x0101010101010101 >> 56);
}

/* How many numbers precede one. */
static unsigned int count_before(const unsigned char *bytes, unsigned int wanted)
{
	uint64_t word[BITMAP_WORDS] = {0};
	unsigned int i, n = 0;

	memcpy(word, bytes, BITMAP_BYTES);
	for (i = 0; i < wanted / 64; i++)
		n += ones(le64toh(word[i]));
	return n + ones(le64toh(word[i]) & ((UINT64_C(1) << wanted % 64) - 1));
}

/* One number without unpacking the others; 0 if absent. */
static uint64_t number(const struct packed *p, unsigned int wanted)
{
	const unsigned char *at;
	unsigned int before;
	uint64_t v;

	if (!p->bytes || !is_set(p->bytes, wanted))
		return 0;
	before = count_before(p->bytes, wanted);
	at = p->bytes + BITMAP_BYTES;
	for (; before >= sizeof(v); at += sizeof(v)) { /* each takes at least one byte */
		memcpy(&v, at, sizeof(v));
		before -= ones(~v & 0x8080808080808080);
	}
	for (; before; at++)
		before -= !(*at & 0x80);
	unpack_one(at, &v);
	return v;
}

void attempt_detail(const struct attempt *a, struct attempt_detail *d)
{
	const struct attempt_shared *s = a->c.shared;

	memset(d, 0, sizeof(*d));
	d->known = a->known;
#define COPY(name) d->name = a->name;
	MEMBERS(COPY)
#undef COPY
	if (!s)
		return;
#define COPY(name) d->name = s->name;
	SHARED(COPY)
#undef COPY
	d->c.count_known = s->count_known;
	d->c.own_known = s->own_known;
	d->c.pool_known = s->pool_known;
	unpack(a->c.bytes, d);
}

static bool same_shared(const void *item, const void *key)
{
	return !memcmp(item, key, sizeof(struct attempt_shared));
}

/* Eight bytes at a time; the hash appears in no output. */
static uint64_t shared_hash(const struct attempt_shared *s)
{
	uint64_t word[sizeof(*s) / sizeof(uint64_t)], h = 0;
	size_t i;

	memcpy(word, s, sizeof(word));
	for (i = 0; i < sizeof(word) / sizeof(*word); i++)
		h = (h ^ word[i]) * UINT64_C(0x9e3779b97f4a7c15) ^ h >> 32;
	return hash_pair(h, 0);
}

static const struct attempt_shared *share(struct model *m, const struct attempt_detail *d)
{
	struct attempt_shared key, *s;
	uint64_t hash;

	memset(&key, 0, sizeof(key)); /* padding is compared, too */
	key.count_known = d->c.count_known;
	key.own_known = d->c.own_known;
	key.pool_known = d->c.pool_known;
#define COPY(name) key.name = d->name;
	SHARED(COPY)
#undef COPY
	if (m->recent_shared && same_shared(m->recent_shared, &key))
		return m->recent_shared;
	hash = shared_hash(&key);
	s = table_find(&m->shared_table, hash, same_shared, &key);
	if (s)
		return m->recent_shared = s;
	s = arena_get(&m->arena, sizeof(*s));
	if (!s || table_add(&m->shared_table, hash, s))
		return NULL;
	memcpy(s, &key, sizeof(key));
	return m->recent_shared = s;
}

int attempt_keep(struct model *m, struct attempt *a, const struct attempt_detail *d)
{
	unsigned char bytes[BITMAP_BYTES + SLOTS * NUMBER_BYTES];
	size_t n, room;

	_Static_assert(2 * sizeof(bytes) < UINT16_MAX, "rooms are counted in 16 bits");
	a->known = d->known;
#define COPY(name) a->name = d->name;
	MEMBERS(COPY)
#undef COPY
	a->c.shared = share(m, d);
	n = pack(d, bytes);
	if (n > a->room) {
		/* An unfinished attempt will grow: it gets the room that the last one needed
		 * at its end. */
		room = a->ended ? n : n < m->packed_room ? m->packed_room : n + n / 2;
		a->room = (uint16_t)room;
		a->c.bytes = arena_bytes(&m->bytes, room);
	}
	if (a->ended)
		m->packed_room = n + 8;
	if (!a->c.shared || !a->c.bytes)
		return m->error = -ENOMEM;
	memcpy(a->c.bytes, bytes, n);
	return 0;
}

static bool knows(const struct attempt *a, enum task_field field)
{
	return a->known >> field & 1;
}

/* The bits of a packed field, and of fields that are members. */
static uint64_t field_bits(const struct attempt *a, enum task_field field)
{
	switch (field) {
#define CASE(name)                                                                                 \
	case TASK_F_##name:                                                                        \
		return number(&a->c, SLOT_##name);
		PACKED(CASE)
#undef CASE
	case TASK_F_attempt:
		return a->attempt;
	case TASK_F_key_hash:
		return a->key_hash;
	case TASK_F_flags:
		return a->flags;
	case TASK_F_wall_ns:
		return a->wall_ns;
	default:
		return 0;
	}
}

struct value attempt_u64(const struct attempt *a, enum task_field field)
{
	return knows(a, field) ? value_uint(field_bits(a, field)) : value_null();
}

bool attempt_is_unmeasured(const struct attempt *a)
{
	return a->flags & (CREMA_TASK_ASYNC | CREMA_TASK_ELSEWHERE);
}

bool attempt_holds_thread(const struct attempt *a)
{
	return !(a->flags & CREMA_TASK_ASYNC && a->flags & CREMA_TASK_ACTOR);
}

struct value attempt_i64(const struct attempt *a, enum task_field field)
{
	return knows(a, field) ? value_int((int64_t)field_bits(a, field)) : value_null();
}

struct value attempt_f64(const struct attempt *a, enum task_field field)
{
	uint64_t bits = field_bits(a, field);
	double d;

	memcpy(&d, &bits, sizeof(d));
	return knows(a, field) ? value_real(d) : value_null();
}

struct value packed_own_ns(const struct packed *p, enum crema_time_id id)
{
	return p->shared && p->shared->own_known >> id & 1 ? value_uint(number(p, SLOT_OWN + id))
							   : value_null();
}

struct value packed_pool_ns(const struct packed *p, enum crema_time_id id)
{
	return p->shared && p->shared->pool_known >> id & 1 ? value_uint(number(p, SLOT_POOL + id))
							    : value_null();
}

struct value packed_count_of(const struct packed *p, enum crema_count_id id)
{
	return p->shared && p->shared->count_known >> id & 1
		       ? value_uint(number(p, SLOT_COUNT + id))
		       : value_null();
}

struct value counters_own_ns(const struct counters *c, enum crema_time_id id)
{
	return (c->own_known >> id) & 1 ? value_uint(c->own[id]) : value_null();
}

struct value counters_pool_ns(const struct counters *c, enum crema_time_id id)
{
	return (c->pool_known >> id) & 1 ? value_uint(c->pool[id]) : value_null();
}

struct value counters_count_of(const struct counters *c, enum crema_count_id id)
{
	return (c->count_known >> id) & 1 ? value_uint(c->count[id]) : value_null();
}
