/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pack.h - writes msgpack into a struct buf, and reads it from hostile bytes.
 *
 * Writing: pack_init() binds a msgpack_packer to a buffer; errors stick to the buffer. A map is
 * written between pack_map_begin() and pack_map_end(), which counts its pairs and writes the count;
 * pack_map(n), followed by n pairs, is for a count that a program computes anyway.
 *
 * Reading: unpack_open() first lets walk.h check the bytes (every container's count against the
 * remaining bytes, depth, trailing garbage), so msgpack-c never allocates more than a fixed factor
 * of the input; then it builds an object tree that points into the bytes. The bytes must live as
 * long as the tree. get_*() look up a key in a map and never fail: wrong types, missing keys and
 * nil give the default. Nothing here is shared between threads.
 */
#ifndef CREMA_COMMON_PACK_H
#define CREMA_COMMON_PACK_H

#include <msgpack.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

/* A view of text that the caller owns; no NUL at its end. ptr NULL = unknown. */
struct text {
	const char *ptr;
	size_t len;
};

struct unpack {
	msgpack_zone *zone;
	msgpack_object root;
};

void pack_init(msgpack_packer *pk, struct buf *out);
/* Begins a map, also inside another one; the result is for the pack_map_end() that ends it. A key
 * without a value, or more than 65,535 pairs, is an error of the buffer. */
size_t pack_map_begin(msgpack_packer *pk);
void pack_map_end(msgpack_packer *pk, size_t begin);
void pack_map(msgpack_packer *pk, size_t n);
void pack_array(msgpack_packer *pk, size_t n);
void pack_nil(msgpack_packer *pk);
void pack_bool(msgpack_packer *pk, bool v);
void pack_u64(msgpack_packer *pk, uint64_t v);
void pack_i64(msgpack_packer *pk, int64_t v);
void pack_f64(msgpack_packer *pk, double v);		    /* not finite: nil */
void pack_str(msgpack_packer *pk, const char *s, size_t n); /* s NULL: nil */
void pack_text(msgpack_packer *pk, const char *s);	    /* NUL-terminated; NULL: nil */
void pack_bin(msgpack_packer *pk, const void *p, size_t n); /* p NULL: nil */

/* A map in a separate buffer: most frames hold one. */
struct packed_map {
	struct buf buf;
	msgpack_packer pk;
	size_t begin;
};

/* The packer for its pairs ... */
msgpack_packer *packed_map_begin(struct packed_map *m);
/* ... and the map, which the caller must release. */
struct buf *packed_map_end(struct packed_map *m);

void pack_kv_nil(msgpack_packer *pk, const char *key);
void pack_kv_u64(msgpack_packer *pk, const char *key, uint64_t v);
void pack_kv_i64(msgpack_packer *pk, const char *key, int64_t v);
void pack_kv_f64(msgpack_packer *pk, const char *key, double v);
void pack_kv_text(msgpack_packer *pk, const char *key, const char *s);
void pack_kv_str(msgpack_packer *pk, const char *key, const char *s, size_t n);
void pack_kv_bin(msgpack_packer *pk, const char *key, const void *p, size_t n);
/* Writes nothing if it is not set. */
void pack_kv_true(msgpack_packer *pk, const char *key, bool set);
/* The value, or nil when it is unknown. */
void pack_kv_maybe(msgpack_packer *pk, const char *key, bool known, uint64_t v);

/* Counts the sane consecutive msgpack values in [p, p+n): 0 or -EBADMSG. */
int unpack_count(const void *p, size_t n, size_t *values);
/* Checks that [p, p+n) is exactly one sane msgpack value: 0 or -EBADMSG. */
int unpack_check(const void *p, size_t n);
/* unpack_check(), then the tree: 0, -EBADMSG or -ENOMEM. Release it after success only. */
int unpack_open(struct unpack *u, const void *p, size_t n);
struct frame;
/* The same of a frame's payload (frame_payload()): the tree is valid as long as f's bytes and
 * scratch. */
int unpack_frame(struct unpack *u, const struct frame *f, struct buf *scratch);
/*
 * Consecutive values of bytes that unpack_check() has accepted: 0, -EBADMSG or -ENOMEM. u is zeroed
 * at first, and must be released at the end in any case. `used`: the bytes of the value.
 */
int unpack_next(struct unpack *u, const void *p, size_t n, size_t *used);
/* The head of an array, and the bytes that it takes: 0 or -EBADMSG. */
int unpack_array(const void *p, size_t n, uint32_t *items, size_t *used);
void unpack_release(struct unpack *u);

bool is_nil(const msgpack_object *o); /* nil or a NULL pointer */
/* Typed reads of one object; false (and *out untouched) if it is nil or of another type. */
bool object_u64(const msgpack_object *o, uint64_t *out); /* also from a float without fraction */
bool object_i64(const msgpack_object *o, int64_t *out);
bool object_f64(const msgpack_object *o, double *out);	     /* also from integers */
bool object_text(const msgpack_object *o, struct text *out); /* str only */
bool object_bin(const msgpack_object *o, struct text *out);  /* bin or str */

/* The value under key; NULL if map is NULL, not a map, or has no such key. */
const msgpack_object *get(const msgpack_object *map, const char *key);
uint64_t get_u64(const msgpack_object *map, const char *key, uint64_t missing);
int64_t get_i64(const msgpack_object *map, const char *key, int64_t missing);
double get_f64(const msgpack_object *map, const char *key, double missing);
bool get_true(const msgpack_object *map, const char *key); /* false: anything else, or missing */
struct text get_text(const msgpack_object *map, const char *key); /* missing: {NULL, 0} */
struct text get_bin(const msgpack_object *map, const char *key);

bool text_is(struct text t, const char *s);
/* Copies at most size - 1 bytes and a NUL; returns dst. Unknown text becomes "". */
char *text_copy(char *dst, size_t size, struct text t);

#endif
