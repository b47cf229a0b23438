/* SPDX-License-Identifier: BSD-3-Clause */
/* py_graph.c - which graph a task came in, and what it consumes; see
 * collector/model/span_part.h. */
#include <string.h>

#include "shim/count/digits.h"
#include "shim/count/task.h"
#include "shim/python/patch.h"

#define CONSUMED_MAX 256
#define GRAPH_USERS (1ull << 63) /* flag of a graph: a span that the user opened */

enum { N_ANNOTATIONS, N_PRIORITY, N_DEPENDENCIES, N_KEY, N_SPAN_ID, NAMES };
static PyObject *names[NAMES];

static int names_make(void)
{
	static const char *const texts[NAMES] = {"annotations", "priority", "dependencies", "key",
						 "span_id"};

	for (int i = 0; i < NAMES; i++)
		if (!names[i] && !(names[i] = PyUnicode_InternFromString(texts[i])))
			return 0;
	return 1;
}

static uint64_t key_hash(PyObject *key)
{
	PyObject *s = key ? PyObject_Str(key) : NULL;
	Py_ssize_t n = 0;
	const char *text = s ? PyUnicode_AsUTF8AndSize(s, &n) : NULL;
	uint64_t hash = text ? arena_hash(text, (uint32_t)n) : 0;

	PyErr_Clear();
	Py_DecRef(s);
	return hash;
}

/*
 * Graphs of tasks that ran here recently: a merge belongs to the graph of its inputs. A lost entry
 * only leaves the merge without a graph. Calls in a loop have equal keys, so an entry is found by
 * the key and the span that Dask had it in then; a TaskState has its span only if the task was sent
 * here. An input from another worker gets the graph of the last task of its group here. A torn
 * entry counts as none.
 */
#define GRAPHS 8192u
static struct {
	uint64_t check; /* what it is found by ^ graph */
	uint64_t graph;
} graphs[GRAPHS];

static void graph_keep(uint64_t by, uint64_t graph)
{
	graphs[by % GRAPHS].graph = graph;
	graphs[by % GRAPHS].check = by ^ graph;
}

static uint64_t graph_of(uint64_t by)
{
	uint64_t graph = graphs[by % GRAPHS].graph;

	return (graphs[by % GRAPHS].check ^ graph) == by ? graph : 0;
}

/* A group's keys are tuples of its name and numbers. Other keys are groups of one. */
static uint64_t group_hash(PyObject *key, uint64_t hash)
{
	return py_is(key, &PyTuple_Type) && PyTuple_Size(key) > 0
		       ? key_hash(PyTuple_GetItem(key, 0))
		       : hash;
}

static void graph_keep_task(const struct crema_task *t, PyObject *ts, PyObject *span,
			    uint64_t graph)
{
	PyObject *key = py_attr(ts, names[N_KEY]);

	graph_keep(t->key_hash ^ key_hash(span), graph);
	graph_keep(group_hash(key, t->key_hash), graph);
	Py_DecRef(key);
}

/* Graph of a task with that key; 0: unknown. *group: that of its group's last one. */
static uint64_t graph_of_task(PyObject *ts, PyObject *key, uint64_t hash, uint64_t *group)
{
	PyObject *span = py_attr(ts, names[N_SPAN_ID]);
	uint64_t graph = py_is(span, &PyUnicode_Type) ? graph_of(hash ^ key_hash(span)) : 0;

	if (!graph && !*group)
		*group = graph_of(group_hash(key, hash));
	Py_DecRef(span);
	return graph;
}

/* The smallest key stands for them all: the code that searches for it keeps the smallest keys of a
 * graph. *graph: that of its inputs, if they ran here. */
static uint64_t smallest_consumed(PyObject *ts, uint64_t *graph)
{
	PyObject *all = py_attr(ts, names[N_DEPENDENCIES]);
	PyObject *each = all ? PyObject_GetIter(all) : NULL, *one;
	uint64_t hash, smallest = 0, group = 0;

	for (int i = 0; each && i < CONSUMED_MAX && (one = PyIter_Next(each)); i++) {
		PyObject *key = py_attr(one, names[N_KEY]);

		hash = key_hash(key);
		if (hash && (!smallest || hash < smallest))
			smallest = hash;
		if (!*graph)
			*graph = graph_of_task(one, key, hash, &group);
		Py_DecRef(key);
		Py_DecRef(one);
	}
	PyErr_Clear();
	Py_DecRef(each);
	Py_DecRef(all);
	if (!*graph)
		*graph = group;
	return smallest;
}

/* The scheduler numbers the graphs that it receives: (priority of the user, number, ...). */
static PyObject *generation_of(PyObject *ts)
{
	PyObject *priority = py_attr(ts, names[N_PRIORITY]), *text = NULL;

	if (priority && py_is(priority, &PyTuple_Type) && PyTuple_Size(priority) > 1)
		text = PyObject_Str(PyTuple_GetItem(priority, 1));
	PyErr_Clear();
	Py_DecRef(priority);
	return text;
}

/* NULL: not there, or not a dict. New reference. */
static PyObject *in_dict(PyObject *dict, const char *name)
{
	return py_is(dict, &PyDict_Type) ? py_item_string(dict, name) : NULL;
}

static const char *utf8(PyObject *text, Py_ssize_t *n)
{
	return py_is(text, &PyUnicode_Type) ? PyUnicode_AsUTF8AndSize(text, n) : NULL;
}

/* dict[name] is a tuple that has the text. */
static int tuple_has(PyObject *dict, const char *name, const char *text)
{
	PyObject *tuple = in_dict(dict, name);
	Py_ssize_t i, n = py_is(tuple, &PyTuple_Type) ? PyTuple_Size(tuple) : 0, length;
	const char *each;
	int has = 0;

	for (i = 0; i < n && !has; i++) {
		each = utf8(PyTuple_GetItem(tuple, i), &length);
		has = each && !strcmp(each, text);
	}
	Py_DecRef(tuple);
	return has;
}

/*
 * Who chose the span that Dask has the task in. While a client keeps a result, Dask puts later
 * tasks of its group into that span and overwrites their annotation "span". The tasks of a
 * crema.measure() have another annotation, so they belong to the block in any span. coffea's tasks
 * without it in the span of a block are treated like those without a span. (What a task submits has
 * only its span: other tasks without the annotation belong to the block.)
 */
enum chosen { BY_DASK, BY_USER, BY_BLOCK };

static enum chosen span_chosen(PyObject *annotations, PyObject **block)
{
	PyObject *span = in_dict(annotations, "span");
	enum chosen by = BY_DASK;
	Py_ssize_t n;
	const char *id;

	*block = in_dict(annotations, CREMA_BLOCK_ANNOTATION);
	id = utf8(*block, &n);
	if (id)
		by = tuple_has(span, "ids", id) ? BY_USER : BY_BLOCK;
	else if (span)
		by = tuple_has(span, "name", CREMA_BLOCK_SPAN) ? BY_DASK : BY_USER;
	Py_DecRef(span);
	return by;
}

static char part_kind(uint32_t flags)
{
	return flags & CREMA_TASK_MERGE		  ? 'm'
	       : flags & CREMA_TASK_CHUNK	  ? 'c'
	       : flags & CREMA_TASK_PREPROCESSING ? 'p'
	       : flags & CREMA_TASK_SCATTER	  ? 's'
						  : 0;
}

/* Keys of one Client.map() that is not pure differ in a number at their end. 0: not such a key. */
static uint64_t map_of_key(const struct crema_task *t)
{
	size_t n = strlen(t->key), keep = n;

	while (keep && t->key[keep - 1] >= '0' && t->key[keep - 1] <= '9')
		keep--;
	if (keep < 2 || keep == n || n - keep > 9 || t->key[keep - 1] != '-')
		return 0;
	return arena_hash(t->key, (uint32_t)(keep - 1));
}

/* What else distinguishes graphs that came within one generation. */
static uint64_t part_detail(const struct crema_task *t, char kind, uint64_t graph)
{
	return kind == 'c'   ? (t->consumes ? t->consumes : map_of_key(t))
	       : kind == 's' ? t->key_hash
	       : kind == 'p' ? map_of_key(t)
			     : graph;
}

struct part {
	char name[128], *at;
	char kind;
};

static int part_add(struct part *p, PyObject *text)
{
	Py_ssize_t n = 0;
	const char *bytes = utf8(text, &n);

	if (!bytes || n >= p->name + sizeof(p->name) - 32 - p->at)
		return 0;
	memcpy(p->at, bytes, (size_t)n);
	p->at += n;
	return 1;
}

/* "SPAN.NUMBERk" */
static int part_begin(struct part *p, PyObject *span, PyObject *number)
{
	p->at = p->name;
	if (!part_add(p, span))
		return 0;
	*p->at++ = '.';
	if (!part_add(p, number))
		return 0;
	*p->at++ = p->kind;
	return 1;
}

/*
 * Dask's own spans mix what several clients and runs have at the same time. For coffea's tasks the
 * name is "SPAN.GENERATION", a letter for what they do, and a hash that distinguishes graphs. Tasks
 * that take their results, like a merge that is not coffea's, have the hash of their graph,
 * whenever they come. Merges in a span that the user opened have a name, too: while Dask has a
 * result of that span it puts the merges of later ones there. Other tasks keep the span's name:
 * each graph would take space in the arena.
 */
static uint32_t part_of_dasks(struct crema_task *t, struct part *p, PyObject *span, PyObject *ts,
			      uint64_t graph)
{
	PyObject *number = p->kind == 'u' ? PyUnicode_FromString("0") : generation_of(ts);
	int fits = part_begin(p, span, number);

	PyErr_Clear();
	Py_DecRef(number);
	if (!fits)
		return 0;
	graph = part_detail(t, p->kind, graph);
	if (graph)
		p->at = put_number(p->at, graph & 0xffffffff, 16);
	if (p->kind != 'm' && p->kind != 'u')
		graph = arena_hash(p->name, (uint32_t)(p->at - p->name)) & ~GRAPH_USERS;
	graph_keep_task(t, ts, span, graph);
	return arena_id(p->name, (uint32_t)(p->at - p->name));
}

/* "SPAN.0bBLOCK": Dask's span, for its own numbers, and the block's. */
static uint32_t part_of_block(PyObject *span, PyObject *block)
{
	struct part p = {.kind = 'b'};
	PyObject *number = PyUnicode_FromString("0");
	uint32_t id = part_begin(&p, span, number) && part_add(&p, block)
			      ? arena_id(p.name, (uint32_t)(p.at - p.name))
			      : 0;

	PyErr_Clear();
	Py_DecRef(number);
	return id;
}

static uint32_t part_id(struct crema_task *t, PyObject *span, PyObject *ts, uint64_t graph)
{
	PyObject *annotations = py_attr(ts, names[N_ANNOTATIONS]), *block;
	enum chosen by = span_chosen(annotations, &block);
	struct part p = {.kind = part_kind(t->flags)};
	uint32_t id = 0;

	if (!p.kind && graph && !(graph & GRAPH_USERS))
		p.kind = 'u';
	if (by == BY_USER || by == BY_BLOCK)
		t->flags |= CREMA_TASK_USERS_SPAN;
	if (by == BY_BLOCK)
		id = part_of_block(span, block);
	else if ((by == BY_DASK && p.kind) || (by == BY_USER && !block && p.kind == 'm'))
		id = part_of_dasks(t, &p, span, ts, graph);
	else if (by == BY_USER && !block && p.kind == 'c')
		graph_keep_task(t, ts, span, key_hash(span) | GRAPH_USERS);
	Py_DecRef(block);
	Py_DecRef(annotations);
	return id ? id : py_text_id(span);
}

void graph_describe(struct crema_task *t, PyObject *ts, PyObject *span)
{
	uint64_t graph = 0;

	if (!ts || !names_make()) {
		t->span = py_text_id(span);
		return;
	}
	t->consumes = smallest_consumed(ts, &graph);
	t->known |= CREMA_KNOWN_CONSUMES;
	t->span = span && span != PY_NONE ? part_id(t, span, ts, graph) : 0;
}
