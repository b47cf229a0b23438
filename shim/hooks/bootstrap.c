/* SPDX-License-Identifier: BSD-3-Clause */
/* bootstrap.c - the audit hook and the table of watched modules. */
#include "shim/hooks/bootstrap.h"

#include <errno.h>
#include <string.h>

#include "shim/count/fd.h"
#include "shim/count/opener.h"
#include "shim/count/task.h"
#include "shim/hooks/loaded.h"
#include "shim/python/patch.h"
#include "shim/python/py_line.h"
#include "shim/shim.h"
#include "unseen_io.h"

enum when { ALWAYS, ARMED };

struct watch {
	const char *module;
	int (*patch)(PyObject *module);
	enum when when;
	int tried; /* the early import was tried */
	int done;
};

static int codecs_of(PyObject *module);
static int codecs_unseen(PyObject *module);
static int patch_io_uring(PyObject *module);
static int patch_xrdclient(PyObject *module);

static struct watch watches[] = {
	{"distributed.worker", patch_worker_class, ALWAYS, 0, 0},
	{"distributed.worker", patch_task_edges, ARMED, 0, 0},
	{"concurrent.futures.thread", patch_futures, ARMED, 0, 0},
	{"concurrent.futures.interpreter", patch_interpreter_pool, ARMED, 0, 0},
	{"multiprocessing.pool", patch_thread_pool, ARMED, 0, 0},
	{"threading", patch_threading, ARMED, 0, 0},
	{"asyncio.selector_events", patch_asyncio, ARMED, 0, 0},
	{"aiohttp.client_proto", patch_aiohttp, ARMED, 0, 0},
	{"asyncio.tasks", patch_coroutines, ARMED, 0, 0},
	{"pyarrow.lib", patch_arrow, ARMED, 0, 0},
	{"httpcore._async.http2", patch_http2, ARMED, 0, 0},
	{"httpcore._sync.http2", patch_http2, ARMED, 0, 0},
	{"XRootD.client", patch_xrootd, ARMED, 0, 0},
	{"xrdclient.session.sync", patch_xrdclient, ARMED, 0, 0},
	{"grpc._channel", patch_grpc, ARMED, 0, 0},
	{"grpc.aio._call", patch_grpc_aio, ARMED, 0, 0},
	{"uproot.source.futures", patch_uproot, ARMED, 0, 0},
	{"uproot.models.TBasket", patch_baskets, ARMED, 0, 0},
	{"uproot.models.RNTuple", patch_pages, ARMED, 0, 0},
	{"uproot.models.RNTuple", patch_fields, ARMED, 0, 0},
	{"uproot.behaviors.TBranch", patch_branches, ARMED, 0, 0},
	{"coffea.nanoevents.mapping.uproot", patch_mapping, ARMED, 0, 0},
	{"coffea.nanoevents.mapping.parquet", patch_parquet, ARMED, 0, 0},
	{"coffea.processor.executor", patch_coffea, ALWAYS, 0, 0},
	{"coffea.processor.executor", patch_executor, ALWAYS, 0, 0},
	{"uproot._dask", patch_uproot_dask, ARMED, 0, 0},
	{"liburing", patch_io_uring, ARMED, 0, 0},
	{"crema.instrument", patch_instrument, ARMED, 0, 0},
	{"h5py._hl.dataset", patch_hdf5, ARMED, 0, 0},
	{"h5py._hl.group", patch_hdf5_groups, ARMED, 0, 0},
	{"_frozen_importlib", patch_imports, ARMED, 0, 0},
	{"_imp", codecs_of, ARMED, 0, 0},
	{"zlib", codecs_of, ARMED, 0, 0},
	{"_bz2", codecs_of, ARMED, 0, 0},
	{"_lzma", codecs_of, ARMED, 0, 0},
	{"isal.isal_zlib", codecs_of, ARMED, 0, 0},
	{"deflate", codecs_of, ARMED, 0, 0},
	{"cramjam.cramjam", codecs_of, ARMED, 0, 0},
	{"lz4.block._block", codecs_of, ARMED, 0, 0},
	{"lz4.frame._frame", codecs_of, ARMED, 0, 0},
	{"numcodecs.blosc", codecs_of, ARMED, 0, 0},
	{"numcodecs.lz4", codecs_of, ARMED, 0, 0},
	{"blosc.blosc_extension", codecs_of, ARMED, 0, 0},
	{"zstandard.backend_c", codecs_of, ARMED, 0, 0},
	{"pyarrow._parquet", codecs_of, ARMED, 0, 0},
	{"pyarrow._dataset", codecs_of, ARMED, 0, 0},
	{"pyarrow._feather", codecs_of, ARMED, 0, 0},
	{"pyarrow._orc", codecs_of, ARMED, 0, 0},
	{"pyarrow.lib", codecs_of, ARMED, 0, 0},
	{"pyarrow._csv", codecs_of, ARMED, 0, 0},
	{"pyarrow._json", codecs_of, ARMED, 0, 0},
	{"h5py.h5d", codecs_of, ARMED, 0, 0},
	{"tables.hdf5extension", codecs_of, ARMED, 0, 0},
	{"tables.tableextension", codecs_of, ARMED, 0, 0},
	{"tables.indexesextension", codecs_of, ARMED, 0, 0},
	{"netCDF4._netCDF4", codecs_of, ARMED, 0, 0},
	{"blosc2.blosc2_ext", codecs_of, ARMED, 0, 0},
#define CODEC(id, mod, where, name, direction, at, in)
#define UNSEEN(mod, text) {mod, codecs_unseen, ARMED, 0, 0},
#include "codecs.def"
#undef CODEC
};

enum { WATCHES = sizeof(watches) / sizeof(watches[0]) };

static struct watch *current;

static int codecs_of(PyObject *module)
{
	return patch_codecs(module, current->module);
}

static int codecs_unseen(PyObject *module)
{
	(void)module;
#define CODEC(id, mod, where, name, direction, at, in)
#define UNSEEN(mod, text)                                                                          \
	if (!strcmp(current->module, mod))                                                         \
		shim_note(text);
#include "codecs.def"
#undef CODEC
	return 0;
}

/* The package liburing contains a private copy of that library, whose calls stay inside it. */
static int patch_io_uring(PyObject *module)
{
	(void)module;
	crema_unseen_io(crema_shm, CREMA_UNSEEN_RING, 0);
	return 0;
}

/* Whichever of its callers has the lock sends and receives for all: bytes of one task would be
 * counted for another, or for a task that has ended. */
static int patch_xrdclient(PyObject *module)
{
	(void)module;
	shim_note("xrdclient is loaded: its connections serve several tasks, what each of them "
		  "receives and sends is unknown");
	tasks_cannot_count(CREMA_NETWORK_COUNTS, 0);
	return 0;
}

static int wanted(const struct watch *w)
{
	return !w->done && (w->when == ALWAYS || shim_armed());
}

/* 1 if the module is there and cannot be patched yet. */
static int patch_one(struct watch *w)
{
	int is_there;
	PyObject *module = py_module_of(w->module, &is_there);
	struct watch *outer = current;

	/* Our import may already have led to the patch, through an event inside it. */
	if (module && !w->done) {
		w->done = 1;
		current = w;
		if (w->patch(module))
			missing_say(w->patch, w->module);
		current = outer;
		PyErr_Clear();
	}
	Py_DecRef(module);
	return is_there && !w->done;
}

/* What was imported when all of it had been looked at: modules, and events of importing one. */
static Py_ssize_t looked_at = -1;
static uint64_t imports, looked_at_imports;

static void look_at_all(void)
{
	uint64_t events = imports;
	int pending = 0;

	for (int i = 0; i < WATCHES; i++)
		if (wanted(&watches[i]))
			pending |= patch_one(&watches[i]);
	looked_at = pending ? -1 : PyObject_Size(PyImport_GetModuleDict());
	looked_at_imports = events;
	loaded_look();
}

/* For each task: a look-up of each module that is not there yet would be 1 % of a short one. */
static void look_at_new(void)
{
	if (imports != looked_at_imports || PyObject_Size(PyImport_GetModuleDict()) != looked_at)
		look_at_all();
	else
		loaded_look();
}

static void armed(void)
{
	missing_tell();
	look_at_all();
}

/* `name` is about to be imported. */
static void before_import(const char *name)
{
	for (int i = 0; i < WATCHES; i++) {
		struct watch *w = &watches[i];
		struct py_turn *turn;
		PyObject *m;

		if (!wanted(w) || w->tried || strcmp(w->module, name))
			continue;
		/* Import it now, so that it is patched before its first user sees it. The import
		 * under way then finds it in sys.modules. If ours fails, the import under way fails
		 * as well. */
		w->tried = 1;
		turn = py_turn_pause();
		m = PyImport_ImportModule(name);
		py_turn_resume(turn);
		if (!m)
			PyErr_Clear();
		Py_DecRef(m);
		patch_one(w);
	}
}

/* ("open", path, mode, flags): finds the line of a task's own code that opens a file. */
static void before_open(PyObject *args)
{
	PyObject *path = PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0) : NULL;
	struct crema_thread *t = shim_armed() ? thread_block : NULL;
	struct crema_line line;
	struct py_error error;
	const char *text;
	Py_ssize_t n;
	PY_TURN;

	if (!t || !task_slot(t->owner) || !py_is(path, &PyUnicode_Type) || py_in_another())
		return;
	py_error_save(&error);
	text = PyUnicode_AsUTF8AndSize(path, &n);
	if (text && !fd_is_import(text, (size_t)n)) {
		line = py_own_line();
		opener_expect(text, &line);
	}
	PyErr_Clear();
	py_error_restore(&error);
}

static void look_at_import(PyObject *args)
{
	PyObject *name = PyTuple_GetItem(args, 0);
	struct py_error error;
	const char *text;
	PY_TURN;

	imports++;
	py_error_save(&error);
	text = py_is(name, &PyUnicode_Type) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
	if (text) {
		before_import(text);
		look_at_all();
	}
	PyErr_Clear();
	py_error_restore(&error);
}

static int audit(const char *event, PyObject *args, void *unused)
{
	(void)unused;
	if (event[0] == 'o' && !strcmp(event, "open") && !shim_off)
		before_open(args);
	if (event[0] != 'i' || strcmp(event, "import") || shim_off)
		return 0;
	/* It begins with imports. Its modules belong to it and stay as they are. */
	if (py_in_another())
		missing_interpreter();
	/* With a file name the module is incomplete: an extension that is being created. */
	else if (PyTuple_Size(args) >= 2 && PyTuple_GetItem(args, 1) == PY_NONE)
		look_at_import(args);
	return 0;
}

static int done, threads_started;
int bootstrap_watching;

int bootstrap_possible(void)
{
	return Py_IsInitialized != NULL && !shim_off;
}

static int cannot_take_turns(void)
{
	if (!py_turns_ready())
		return 0;
	shim_say("this process runs unmeasured: this free-threaded Python is not supported; "
		 "use 3.14 or newer, or a build with the GIL",
		 NULL);
	return 1;
}

void bootstrap_try(void)
{
	if (done || !py_in_main())
		return;
	done = 1;
	bootstrap_watching = 0;
	if (cannot_take_turns() || !py_complete() || PySys_AddAuditHook(audit, NULL)) {
		shim_off = 1;
		return;
	}
	if (PyInterpreterState_Head() != PyInterpreterState_Main())
		missing_interpreter();
	patch_pending = look_at_new;
	patch_armed = armed;
	patch_loaded = loaded_look;
	look_at_all();
	PyErr_Clear();
}

void bootstrap_watch(void)
{
	bootstrap_watching = bootstrap_possible();
}

void bootstrap_thread(void)
{
	threads_started = 1;
	bootstrap_watching = 0;
}

/*
 * The interpreter opens files without the GIL. Taking it here waits for no one as long as no other
 * thread was ever started. A vfork child of the interpreter opens no Python module.
 */
void bootstrap_opened(const char *path)
{
	int state, saved = errno;

	if (done || threads_started || !path || !strstr(path, "coffea/processor/") ||
	    !Py_IsInitialized() || !PyGILState_GetThisThreadState())
		return;
	state = PyGILState_Ensure();
	bootstrap_try();
	PyGILState_Release(state);
	errno = saved;
}
