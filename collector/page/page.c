/* SPDX-License-Identifier: BSD-3-Clause */
/* page.c - fills in page.html, and writes the policy that allows exactly its parts. */
#include "collector/page/page.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "collector/page/page_assets.h"

#define HASH_BYTES 48 /* base64 of SHA-256, terminated */

static int hash(const struct page_asset *a, char out[HASH_BYTES])
{
	unsigned char md[EVP_MAX_MD_SIZE];
	unsigned int n = 0;

	if (!EVP_Digest(a->text, (size_t)(a->end - a->text), md, &n, EVP_sha256(), NULL))
		return -ENOMEM;
	EVP_EncodeBlock((unsigned char *)out, md, (int)n);
	return 0;
}

static void put_policy(struct sink *s, bool live)
{
	char style[HASH_BYTES], library[HASH_BYTES], script[HASH_BYTES];

	if (hash(&page_assets[PAGE_STYLE], style) || hash(&page_assets[PAGE_LIBRARY], library) ||
	    hash(&page_assets[PAGE_SCRIPT], script)) {
		s->error = -ENOMEM;
		return;
	}
	sink_printf(s,
		    "default-src 'none'; script-src 'sha256-%s' 'sha256-%s'; "
		    "style-src 'sha256-%s'; connect-src %s; base-uri 'none'; form-action 'none'",
		    library, script, style, live ? "'self'" : "'none'");
}

void page_policy(struct buf *out, bool live)
{
	struct sink s = {.out = out};

	put_policy(&s, live);
}

static void put_escaped(struct sink *s, const struct page_asset *a)
{
	const char *p;

	for (p = a->text; p < a->end; p++) {
		if (*p == '<')
			sink_puts(s, "&lt;");
		else if (*p == '&')
			sink_puts(s, "&amp;");
		else
			sink_put(s, p, 1);
	}
}

/* In JSON, "<" only occurs in strings; as an escape it can neither end nor open an element. */
static void put_json(struct sink *s, const struct buf *text)
{
	size_t i, start = 0;

	for (i = 0; i < text->len; i++) {
		if (text->data[i] != '<')
			continue;
		sink_put(s, (const char *)text->data + start, i - start);
		sink_puts(s, "\\u003c");
		start = i + 1;
	}
	sink_put(s, (const char *)text->data + start, text->len - start);
}

static void put_part(struct sink *s, const char *name, size_t n, const struct buf *data)
{
	const struct page_asset *a;
	size_t i;

	if (n == 6 && !memcmp(name, "policy", 6)) {
		put_policy(s, !data);
	} else if (n == 4 && !memcmp(name, "data", 4)) {
		if (data)
			put_json(s, data);
		else
			sink_puts(s, "{\"live\": true}");
	} else {
		for (i = 0; i < PAGE_ASSETS; i++) {
			a = &page_assets[i];
			if (strlen(a->name) != n || memcmp(a->name, name, n) != 0)
				continue;
			if (i == PAGE_LICENCES)
				put_escaped(s, a);
			else
				sink_put(s, a->text, (size_t)(a->end - a->text));
		}
	}
}

/* %name% stands for a part; nothing else in page.html has a percent sign. data NULL: live. */
void page_put(struct sink *s, const struct buf *data)
{
	const char *at = page_assets[PAGE_HTML].text, *end = page_assets[PAGE_HTML].end;
	const char *from, *to;

	while (at < end) {
		from = memchr(at, '%', (size_t)(end - at));
		to = from ? memchr(from + 1, '%', (size_t)(end - from - 1)) : NULL;
		if (!to)
			break;
		sink_put(s, at, (size_t)(from - at));
		put_part(s, from + 1, (size_t)(to - from - 1), data);
		at = to + 1;
	}
	sink_put(s, at, (size_t)(end - at));
}

void page_write(const struct report *r, struct sink *s)
{
	struct buf data = BUF_INIT;
	struct sink inner = {.out = &data};
	struct json j;

	emit_init(&j, &inner);
	page_data(r, &j);
	if (sink_end(&inner))
		s->error = inner.error;
	else
		page_put(s, &data);
	buf_release(&data);
}

void page_live(struct sink *s)
{
	page_put(s, NULL);
}
