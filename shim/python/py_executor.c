/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_executor.c - coffea without Dask: its own functions are the start and end of tasks.
 *
 * Every executor of coffea (iterative, futures of threads and processes, Parsl, TaskVine) calls
 * Runner._work_function for a chunk and Runner.metadata_fetcher_* for a file. The first call arms
 * the process, unless a Dask worker has. Inside a task that already has this chunk (from Dask)
 * nothing is opened: only the result is read.
 *
 * Each replacement is a builtin whose __self__ is Runner: it pickles as getattr(Runner, name), so
 * functions travel as before, also into processes without the shim.
 *
 * The task's key is dataset:file:tree:range. Its span is the processor: "coffea-HASH.N", with a
 * hash of the text that coffea sends around (the same for all chunks of a run), and how often this
 * process has started again with it: whenever a chunk comes again that had ended well. For
 * metadata: "coffea-metadata.N".
 */
#include <errno.h>
#include <string.h>

#include "shim/count/digits.h"
#include "shim/count/task.h"
#include "shim/libc/sys.h"
#include "shim/python/patch.h"
#include "shim/python/py_processor.h"
#include "stack_py.h"

#define USUAL_COLLECTOR "127.0.0.1:8990"
#define KNOWN 8192 /* chunks of this process that ended well: as many as can be distinguished */

enum { WORK, METADATA_ROOT, METADATA_PARQUET, FUNCTIONS };

static PyObject *originals[FUNCTIONS];

static struct {
	uint64_t processor, done[KNOWN];
	uint32_t run, n;
	uint32_t fetches, chunks; /* coffea fetches the metadata before any chunk of a run */
} history;

static PyObject *put(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
	Py_ssize_t n = 0;
	const char *text = nargs > 0 ? PyUnicode_AsUTF8AndSize(args[0], &n) : NULL;
	PY_TURN;

	(void)self;
	(void)kw;
	if (text && shim_armed())
		probe_put(&crema_shm->facts, text, (size_t)n);
	PyErr_Clear();
	Py_IncRef(PY_NONE);
	return PY_NONE;
}

static PyMethodDef put_def = {"_put", (void *)put, METH_FASTCALL | METH_KEYWORDS, NULL};

static void tell_stack(void)
{
	PyObject *code = Py_CompileString(stack_source, "<crema stack>", PY_FILE_INPUT), *r = NULL;
	PyObject *globals = PyDict_New(), *f = py_builtin(&put_def, NULL, "crema");

	if (code && globals && f) {
		PyDict_SetItemString(globals, "__builtins__", PyEval_GetBuiltins());
		PyDict_SetItemString(globals, "_put", f);
		r = PyEval_EvalCode(code, globals, globals);
	}
	if (!r)
		shim_note("the versions of the process's modules could not be read");
	PyErr_Clear();
	Py_DecRef(r);
	Py_DecRef(f);
	Py_DecRef(globals);
	Py_DecRef(code);
}

/* 1 if this process is measured, from now on or before. */
static int ready(void)
{
	if (!shim_armed() && !shim_off && !py_arm(USUAL_COLLECTOR, 1)) {
		memset(&history, 0, sizeof(history));
		tell_stack();
	}
	return shim_armed();
}

struct call {
	PyObject *item;	      /* WorkItem or FileMeta, or the tuple that holds it; borrowed */
	Py_ssize_t processor; /* index of its argument, -1 */
	uint64_t hash;
	const char *prefix;
};

static void append(char *text, size_t *n, size_t size, const char *s)
{
	size_t more = strlen(s);

	if (more > size - 1 - *n)
		more = size - 1 - *n;
	memcpy(text + *n, s, more);
	*n += more;
	text[*n] = 0;
}

static void append_number(char *text, size_t *n, size_t size, uint64_t v, unsigned int base)
{
	char digits[24];

	*put_number(digits, v, base) = 0;
	append(text, n, size, digits);
}

/* Of the item: the table of texts may be full, and a key without its file would be another's. */
static void append_filename(char *text, size_t *n, size_t size, PyObject *item)
{
	PyObject *name = py_attr_string(item, "filename");
	const char *s =
		name && py_is(name, &PyUnicode_Type) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;

	append(text, n, size, s ? s : "");
	PyErr_Clear();
	Py_DecRef(name);
}

static void put_key(struct crema_task *t, PyObject *item)
{
	char text[4096];
	size_t n = 0;

	append(text, &n, sizeof(text), arena_text(t->dataset));
	append(text, &n, sizeof(text), ":");
	append_filename(text, &n, sizeof(text), item);
	append(text, &n, sizeof(text), ":");
	append(text, &n, sizeof(text), arena_text(t->treename));
	if (t->flags & CREMA_TASK_CHUNK) {
		append(text, &n, sizeof(text), ":");
		append_number(text, &n, sizeof(text), (uint64_t)t->entrystart, 10);
		append(text, &n, sizeof(text), "-");
		append_number(text, &n, sizeof(text), (uint64_t)t->entrystop, 10);
	} else {
		append(text, &n, sizeof(text), ":metadata");
	}
	task_key(t, text, n);
}

static void remember(uint64_t key)
{
	if (history.n < KNOWN)
		history.done[history.n++] = key;
}

/* A chunk that ended well comes again: the analysis was started another time. */
static void look_back(uint64_t processor, uint64_t key)
{
	uint32_t i = 0;

	if (history.processor == processor) {
		while (i < history.n && history.done[i] != key)
			i++;
		if (i == history.n)
			return;
	}
	history.run++;
	history.processor = processor;
	history.n = 0;
}

static void put_span(struct crema_task *t, uint64_t hash)
{
	char text[64];
	size_t n = 0;

	look_back(hash, t->key_hash);
	append(text, &n, sizeof(text), "coffea-");
	append_number(text, &n, sizeof(text), hash, 16);
	append(text, &n, sizeof(text), ".");
	append_number(text, &n, sizeof(text), history.run, 10);
	t->span = arena_id(text, (uint32_t)n);
	history.chunks = 1;
}

static void put_fetch_span(struct crema_task *t)
{
	char text[64];
	size_t n = 0;

	history.fetches += history.chunks;
	history.chunks = 0;
	append(text, &n, sizeof(text), "coffea-metadata.");
	append_number(text, &n, sizeof(text), history.fetches, 10);
	t->span = arena_id(text, (uint32_t)n);
}

static uint32_t text_id(const char *text)
{
	return arena_id(text, (uint32_t)strlen(text));
}

static void describe(struct crema_task *t, int which, struct call *c)
{
	coffea_describe_item(t, c->item);
	put_key(t, c->item);
	t->function = text_id(which == WORK ? "_work_function" : "metadata_fetcher");
	if (which == WORK) {
		put_span(t, c->hash);
		t->prefix = c->prefix ? text_id(c->prefix) : 0;
	} else {
		put_fetch_span(t);
		t->prefix = text_id("metadata");
	}
	if (!t->span)
		t->flags |= CREMA_TASK_TEXT_REFUSED;
}

static int is_item(PyObject *o)
{
	struct crema_task unused;

	memset(&unused, 0, sizeof(unused));
	return coffea_describe_item(&unused, o);
}

static void look_at(struct call *c, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
	Py_ssize_t named = kw ? PyTuple_Size(kw) : 0;

	memset(c, 0, sizeof(*c));
	c->processor = -1;
	for (Py_ssize_t i = 0; i < nargs + named && !c->item; i++)
		if (is_item(args[i]))
			c->item = args[i];
	for (Py_ssize_t i = 0; i < named; i++) {
		const char *name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(kw, i), NULL);

		if (name && !strcmp(name, "processor_instance"))
			c->processor = nargs + i;
	}
	PyErr_Clear();
	if (c->processor >= 0) {
		c->hash = processor_hash(args[c->processor]);
		c->prefix = processor_name(c->hash);
	}
}

/* The first chunk of a processor: it is loaded here instead of in the work function, which accepts
 * either form; so its class is known without loading it twice. */
static PyObject *call_work(struct call *c, struct crema_task *t, PyObject *const *args,
			   Py_ssize_t nargs, PyObject *kw)
{
	PyObject *changed[32], *processor, *r;
	Py_ssize_t all = nargs + (kw ? PyTuple_Size(kw) : 0);
	PyObject *given = c->processor >= 0 ? args[c->processor] : NULL;

	if (!given || c->prefix || all > 32)
		return py_original(originals[WORK], args, nargs, kw);
	processor = processor_load(given, c->hash);
	c->prefix = processor_name(c->hash);
	if (t && c->prefix)
		t->prefix = text_id(c->prefix);
	memcpy(changed, args, (size_t)all * sizeof(*args));
	if (processor)
		changed[c->processor] = processor;
	r = py_original(originals[WORK], changed, nargs, kw);
	Py_DecRef(processor);
	return r;
}

static PyObject *run(int which, struct call *c, PyObject *const *args, Py_ssize_t nargs,
		     PyObject *kw)
{
	struct execution x;
	struct py_error error;
	struct crema_task *t;
	PyObject *result;
	uint64_t key;

	patch_pending();
	x.owner = task_open();
	t = task_slot(x.owner);
	if (t)
		describe(t, which, c);
	key = t ? t->key_hash : 0;
	execution_begin(&x, x.owner);
	result = which == WORK ? call_work(c, t, args, nargs, kw)
			       : py_original(originals[which], args, nargs, kw);
	if (x.epoch != shim_epoch || !shim_armed())
		return result;
	if (result && which == WORK) {
		if (t)
			report_of_runner(t, result);
		remember(key);
	}
	if (!result) {
		py_error_save(&error);
		raised_describe(t, error.value);
		py_error_restore(&error);
	}
	execution_end(&x, result ? CREMA_STATUS_OK : CREMA_STATUS_ERRED);
	/* Nothing else in this process would do this: it has no Dask event loop, and may be
	 * killed. */
	shim_snapshot();
	agent_watch();
	return result;
}

static PyObject *edge(int which, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
	struct crema_task *outer;
	PyObject *result;
	struct call c;
	PY_TURN;

	if (!ready())
		return py_original(originals[which], args, nargs, kw);
	outer = task_slot(segment_owner());
	if (segment_owner() == OWNER_REFUSED ||
	    (outer && outer->flags & (CREMA_TASK_CHUNK | CREMA_TASK_PREPROCESSING))) {
		result = py_original(originals[which], args, nargs, kw);
		if (result && outer && shim_armed() && outer == task_slot(segment_owner()))
			report_of_runner(outer, result);
		return result;
	}
	look_at(&c, args, nargs, kw);
	if (!c.item)
		return py_original(originals[which], args, nargs, kw);
	return run(which, &c, args, nargs, kw);
}

#define EDGE(id)                                                                                   \
	static PyObject *edge_##id(PyObject *self, PyObject *const *args, Py_ssize_t nargs,        \
				   PyObject *kw)                                                   \
	{                                                                                          \
		(void)self;                                                                        \
		return edge(id, args, nargs, kw);                                                  \
	}
EDGE(WORK)
EDGE(METADATA_ROOT)
EDGE(METADATA_PARQUET)

static PyMethodDef defs[FUNCTIONS] = {
	[WORK] = {"_work_function", (void *)edge_WORK, METH_FASTCALL | METH_KEYWORDS, NULL},
	[METADATA_ROOT] = {"metadata_fetcher_root", (void *)edge_METADATA_ROOT,
			   METH_FASTCALL | METH_KEYWORDS, NULL},
	[METADATA_PARQUET] = {"metadata_fetcher_parquet", (void *)edge_METADATA_PARQUET,
			      METH_FASTCALL | METH_KEYWORDS, NULL},
};

int patch_executor(PyObject *module)
{
	PyObject *runner = py_attr_string(module, "Runner");
	int found = 0;

	processor_module(module);
	for (int i = 0; i < FUNCTIONS && runner; i++) {
		PyObject *f, *s;

		originals[i] = py_attr_string(runner, defs[i].ml_name);
		f = originals[i] ? py_builtin(&defs[i], runner, "coffea.processor.executor") : NULL;
		s = f ? PyStaticMethod_New(f) : NULL;
		if (s && !PyObject_SetAttrString(runner, defs[i].ml_name, s))
			found |= 1 << i;
		PyErr_Clear();
		Py_DecRef(s);
		Py_DecRef(f);
	}
	Py_DecRef(runner);
	return found & 1 << WORK ? 0 : -ENOENT;
}
