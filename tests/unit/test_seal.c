/* SPDX-License-Identifier: BSD-3-Clause */
/* test_seal.c - sealed records, and the agent's end of the handshake. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/session.h"

static const uint8_t key[SEAL_KEY_BYTES] = {1, 2, 3};

struct pair {
	struct evp_cipher_ctx_st *cipher;
	struct seal out, in;
	struct buf wire, plain;
};

static void pair_init(struct pair *p)
{
	memset(p, 0, sizeof(*p));
	p->cipher = seal_cipher_new();
	assert_non_null(p->cipher);
	seal_init(&p->out, p->cipher, key);
	seal_init(&p->in, p->cipher, key);
}

static void pair_release(struct pair *p)
{
	seal_cipher_free(p->cipher);
	buf_release(&p->wire);
	buf_release(&p->plain);
}

static ssize_t open_at(struct pair *p, size_t at, size_t n)
{
	return seal_open(&p->in, &p->plain, p->wire.data + at, n, 100);
}

static void test_records_come_back_in_order(void **state)
{
	struct pair p;
	size_t at = 0;

	(void)state;
	pair_init(&p);
	for (unsigned char i = 0; i < 100; i++)
		assert_int_equal(seal_put(&p.out, &p.wire, (unsigned char[]){i, 7}, 2), 0);
	assert_int_equal(p.wire.len, 100 * (2 + SEAL_EXTRA_BYTES));
	for (unsigned char i = 0; i < 100; i++) {
		for (int again = 0; again < 2; again++) { /* until it is accepted */
			assert_int_equal(open_at(&p, at, p.wire.len - at), 2 + SEAL_EXTRA_BYTES);
			assert_int_equal(p.plain.len, 2);
			assert_int_equal(p.plain.data[0], i);
		}
		seal_next(&p.in);
		at += 2 + SEAL_EXTRA_BYTES;
	}
	assert_int_equal(open_at(&p, at, 0), -EAGAIN);
	pair_release(&p);
}

/* Computed by another implementation (docs/wire.md): the nonce is the record's number. */
static void test_known_records(void **state)
{
	static const struct {
		uint64_t number;
		unsigned char bytes[1 + SEAL_EXTRA_BYTES];
	} known[] = {{0, {0x11, 0,    0,    0,	  0x46, 0xd5, 0x46, 0x06, 0xdc, 0x4f, 0xda,
			  0x77, 0xca, 0x60, 0x58, 0x9e, 0x65, 0x48, 0x62, 0xd4, 0xaf}},
		     {258, {0x11, 0,	0,    0,    0x61, 0xa7, 0x4f, 0x4c, 0x64, 0x39, 0x77,
			    0x7b, 0xe4, 0x36, 0xa1, 0x59, 0xd2, 0x9e, 0xf8, 0xd9, 0xc3}}};
	struct pair p;

	(void)state;
	pair_init(&p);
	for (int i = 0; i < 2; i++) {
		while (p.out.count < known[i].number)
			seal_next(&p.out);
		buf_clear(&p.wire);
		assert_int_equal(seal_put(&p.out, &p.wire, "x", 1), 0);
		assert_int_equal(p.wire.len, sizeof(known[i].bytes));
		assert_memory_equal(p.wire.data, known[i].bytes, sizeof(known[i].bytes));
	}
	pair_release(&p);
}

/* Each bit of a record matters, and so does its position. */
static void test_nothing_else_opens(void **state)
{
	static const unsigned char text[] = "what nobody else may read";
	const size_t bytes = sizeof(text) + SEAL_EXTRA_BYTES;
	struct pair p;
	ssize_t got;

	(void)state;
	pair_init(&p);
	for (int i = 0; i < 3; i++)
		assert_int_equal(seal_put(&p.out, &p.wire, text, sizeof(text)), 0);
	for (size_t i = 0; i + 8 <= p.wire.len; i++)
		assert_memory_not_equal(p.wire.data + i, text, 8);
	assert_memory_not_equal(p.wire.data + 4, p.wire.data + bytes + 4, sizeof(text));
	for (size_t bit = 0; bit < 8 * bytes; bit++) {
		p.wire.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
		got = open_at(&p, 0, bytes);
		/* A larger length waits, or is refused; nothing else opens. */
		if (got != -EBADMSG)
			assert_true(bit < 8 * SEAL_HEAD_BYTES &&
				    (got == -EAGAIN || got == -EMSGSIZE));
		p.wire.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
	}
	assert_int_equal(open_at(&p, bytes, bytes), -EBADMSG); /* one left out */
	assert_int_equal(open_at(&p, 0, bytes), bytes);
	seal_next(&p.in);
	assert_int_equal(open_at(&p, 0, bytes), -EBADMSG);	   /* one repeated */
	assert_int_equal(open_at(&p, 2 * bytes, bytes), -EBADMSG); /* in another order */
	assert_int_equal(open_at(&p, bytes, bytes), bytes);
	for (size_t n = 0; n < bytes; n++)
		assert_int_equal(open_at(&p, bytes, n), -EAGAIN);
	p.in.key[31] ^= 1;
	assert_int_equal(open_at(&p, bytes, bytes), -EBADMSG);
	pair_release(&p);
}

static void test_sizes(void **state)
{
	static const unsigned char most[100];
	unsigned char none[4 + 16] = {16};
	struct pair p;

	(void)state;
	pair_init(&p);
	assert_int_equal(seal_put(&p.out, &p.wire, most, 0), -EMSGSIZE);
	assert_int_equal(seal_put(&p.out, &p.wire, most, sizeof(most)), 0);
	assert_int_equal(open_at(&p, 0, p.wire.len), p.wire.len);
	assert_int_equal(seal_open(&p.in, &p.plain, p.wire.data, 4, 99), -EMSGSIZE);
	assert_int_equal(seal_open(&p.in, &p.plain, none, sizeof(none), 100), -EMSGSIZE);
	pair_release(&p);
}

/* Key and nonce of NIST's GCM test case 14: this shows that it is AES-256-GCM, with nonces from
 * 0. */
static void test_it_is_gcm(void **state)
{
	static const uint8_t zeros[SEAL_KEY_BYTES];
	static const uint8_t text[16] = {0xce, 0xa7, 0x40, 0x3d, 0x4d, 0x60, 0x6b, 0x6e,
					 0x07, 0x4e, 0xc5, 0xd3, 0xba, 0xf3, 0x9d, 0x18};
	struct pair p;

	(void)state;
	pair_init(&p);
	seal_init(&p.out, p.cipher, zeros);
	assert_int_equal(seal_put(&p.out, &p.wire, zeros, sizeof(text)), 0);
	assert_memory_equal(p.wire.data + SEAL_HEAD_BYTES, text, sizeof(text));
	pair_release(&p);
}

/* Proofs and keys: all differ, and each input byte matters. */
static void test_keys(void **state)
{
	struct auth_token t = {"0123456789abcdef", 16};
	struct auth_start start = {1, 2, 2, {1}, {2}, {3}};
	struct auth_keys keys, other;

	(void)state;
	assert_int_equal(auth_keys(&t, &start, &keys), 0);
	assert_memory_not_equal(keys.proof, keys.to_agent, AUTH_MAC_BYTES);
	assert_memory_not_equal(keys.proof, keys.to_collector, AUTH_MAC_BYTES);
	assert_memory_not_equal(keys.to_agent, keys.to_collector, AUTH_MAC_BYTES);
	for (size_t i = 0; i <= sizeof(start); i++) {
		if (i < sizeof(start))
			((uint8_t *)&start)[i] ^= 1;
		else
			t.text[0] = 'x';
		assert_int_equal(auth_keys(&t, &start, &other), 0);
		assert_memory_not_equal(keys.proof, other.proof, AUTH_MAC_BYTES);
		assert_memory_not_equal(keys.to_agent, other.to_agent, AUTH_MAC_BYTES);
		assert_memory_not_equal(keys.to_collector, other.to_collector, AUTH_MAC_BYTES);
		if (i < sizeof(start))
			((uint8_t *)&start)[i] ^= 1;
	}
	assert_int_equal(auth_derive(&t, "label", NULL, 251, other.proof), -EINVAL);
}

static int answer(struct session *s, uint64_t min, uint64_t max, size_t nonce_bytes)
{
	static const uint8_t nonce[AUTH_NONCE_BYTES + 1], worker[CREMA_WORKER_ID_BYTES];
	struct auth_token t = {"0123456789abcdef", 16};
	struct buf raw = BUF_INIT, out = BUF_INIT;
	msgpack_packer pk;
	struct unpack u;
	int rc;

	memset(s, 0, sizeof(*s));
	pack_init(&pk, &raw);
	pack_map(&pk, 3);
	pack_kv_u64(&pk, "min", min);
	pack_kv_u64(&pk, "max", max);
	pack_kv_bin(&pk, "nonce", nonce, nonce_bytes);
	assert_int_equal(unpack_open(&u, raw.data, raw.len), 0);
	rc = session_answer(s, &t, &u.root, worker, &out);
	assert_int_equal(out.len > 0, rc == 0);
	unpack_release(&u);
	buf_release(&raw);
	buf_release(&out);
	return rc;
}

static void test_challenges(void **state)
{
	struct session s;

	(void)state;
	assert_int_equal(answer(&s, 1, 2, AUTH_NONCE_BYTES), 0);
	assert_int_equal(answer(&s, 2, 9, AUTH_NONCE_BYTES), 0);
	assert_int_equal(answer(&s, 1, 1, AUTH_NONCE_BYTES), -EPROTONOSUPPORT);
	assert_int_equal(answer(&s, 3, 4, AUTH_NONCE_BYTES), -EPROTONOSUPPORT);
	assert_int_equal(answer(&s, 1, 258, AUTH_NONCE_BYTES), -EPROTO);
	assert_int_equal(answer(&s, 1, 2, AUTH_NONCE_BYTES - 1), -EPROTO);
	assert_int_equal(answer(&s, 1, 2, AUTH_NONCE_BYTES + 1), -EPROTO);
	session_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records_come_back_in_order),
		cmocka_unit_test(test_known_records),
		cmocka_unit_test(test_nothing_else_opens),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_it_is_gcm),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_challenges),
	};

	return cmocka_run_group_tests_name("seal", tests, NULL, NULL);
}
