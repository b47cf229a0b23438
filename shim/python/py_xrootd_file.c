/* SPDX-License-Identifier: BSD-3-Clause */
/* py_xrootd_file.c - caches a File's server and URL. */
#include "shim/python/py_xrootd_file.h"

#include <string.h>

#include "shim/count/url.h"
#include "shim/shim.h"

static PyObject *n_get_property, *n_url, *n_protocol, *t_server, *t_url;

/* The server of a File, found at its first read. An entry is dropped when its File opens or closes;
 * another File at its address must have been opened first. */
#define CACHE 256
static struct {
	PyObject *file;
	uint32_t scheme, address, url, local;
} cache[CACHE];

static unsigned cache_slot(PyObject *file)
{
	return (unsigned)((uintptr_t)file >> 4) % CACHE;
}

static const char *property(PyObject *file, PyObject *name, PyObject **value)
{
	PyObject *get = py_attr(file, n_get_property);
	const char *text = NULL;

	*value = get ? py_vectorcall(get, &name, 1, NULL) : NULL;
	if (*value && py_is(*value, &PyUnicode_Type))
		text = PyUnicode_AsUTF8AndSize(*value, NULL);
	PyErr_Clear();
	Py_DecRef(get);
	return text;
}

uint32_t xrootd_scheme(const char *url)
{
	const char *colon = strchr(url, ':');

	return colon ? arena_id(url, (uint32_t)(colon - url)) : 0;
}

int xrootd_file_get(PyObject *file, struct xrootd_file *f)
{
	unsigned at = cache_slot(file);
	PyObject *url_object, *server_object;
	const char *url, *server, *colon;

	if (cache[at].file != file) {
		url = property(file, t_url, &url_object);
		server = property(file, t_server, &server_object);
		colon = url ? strchr(url, ':') : NULL;
		cache[at].file = colon && server ? file : NULL;
		cache[at].scheme = colon ? xrootd_scheme(url) : 0;
		cache[at].address = server ? arena_bulk_id(server, (uint32_t)strlen(server)) : 0;
		cache[at].url = url ? url_id(url, strlen(url)) : 0;
		cache[at].local = url && !strncmp(url, "file:", 5);
		Py_DecRef(url_object);
		Py_DecRef(server_object);
	}
	f->scheme = cache[at].scheme;
	f->address = cache[at].address;
	f->url = cache[at].url;
	return !cache[at].local;
}

void xrootd_filesystem_get(PyObject *filesystem, struct xrootd_file *f)
{
	PyObject *url = py_attr(filesystem, n_url);
	PyObject *protocol = url ? py_attr(url, n_protocol) : NULL;
	const char *text = NULL;

	if (protocol && py_is(protocol, &PyUnicode_Type))
		text = PyUnicode_AsUTF8AndSize(protocol, NULL);
	f->scheme = text ? arena_id(text, (uint32_t)strlen(text)) : 0;
	PyErr_Clear();
	Py_DecRef(protocol);
	Py_DecRef(url);
}

static int is_scheme(const struct xrootd_file *f, const char *name)
{
	return f->scheme && f->scheme == arena_id(name, (uint32_t)strlen(name));
}

int xrootd_file_speaks_root(const struct xrootd_file *f)
{
	return is_scheme(f, "root") || is_scheme(f, "roots") || is_scheme(f, "xroot") ||
	       is_scheme(f, "xroots");
}

int xrootd_file_has_plugin(const struct xrootd_file *f)
{
	return f->scheme && !is_scheme(f, "file") && !xrootd_file_speaks_root(f);
}

void xrootd_file_changes(PyObject *file)
{
	if (cache[cache_slot(file)].file == file)
		cache[cache_slot(file)].file = NULL;
}

void xrootd_files_forget(void)
{
	memset(cache, 0, sizeof(cache));
}

int xrootd_file_ready(void)
{
	n_get_property = PyUnicode_InternFromString("get_property");
	n_url = PyUnicode_InternFromString("url");
	n_protocol = PyUnicode_InternFromString("protocol");
	t_server = PyUnicode_InternFromString("DataServer");
	t_url = PyUnicode_InternFromString("LastURL");
	return n_get_property && n_url && n_protocol && t_server && t_url;
}
