/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * patch.h - which Python modules are watched, and which of their functions are replaced.
 *
 * All functions: GIL held; never leave an exception; each place is patched once. A patch function
 * returns 0, or -ENOENT when the module lacks what it needs (another version: it is noted, the rest
 * continues).
 */
#ifndef CREMA_SHIM_PYTHON_PATCH_H
#define CREMA_SHIM_PYTHON_PATCH_H

#include <stdint.h>

#include "shim/python/py.h"

/*
 * These call up to the table of watched modules (hooks/bootstrap.c), which sets them; before that
 * they do nothing. patch_pending(): checks every watched module that is imported and not patched
 * yet; cheap when none is left. patch_armed(): the same, once the process is armed. patch_loaded():
 * checks libraries that were loaded since, before a task that may have loaded them ends.
 */
extern void (*patch_pending)(void);
extern void (*patch_armed)(void);
extern void (*patch_loaded)(void);

int patch_worker_class(PyObject *module); /* distributed.worker: Worker.start_unsafe */
int patch_task_edges(PyObject *module);	  /* distributed.worker: _run_task and its older names */
int patch_coffea(PyObject *module);	  /* coffea.processor.executor: finds its classes */
int patch_executor(PyObject *module);	  /* the same: Runner._work_function, metadata_fetcher_* */
int patch_futures(PyObject *module);	  /* concurrent.futures.thread: ThreadPoolExecutor.submit */
int patch_interpreter_pool(
	PyObject *module);		 /* concurrent.futures.interpreter: WorkerContext.run */
int patch_thread_pool(PyObject *module); /* multiprocessing.pool: ThreadPool's ways to submit */
int patch_threading(PyObject *module);	 /* threading: Thread.start */
int patch_uproot(PyObject *module);	 /* uproot.source.futures: its pools' submit */
int patch_baskets(PyObject *module);	 /* uproot.models.TBasket: Model_TBasket.read_members */
int patch_pages(PyObject *module);	 /* uproot.models.RNTuple: its ways to read a page */
int patch_fields(PyObject *module);	 /* the same: reads of columns */
int patch_branches(PyObject *module);	 /* uproot.behaviors.TBranch: reads of columns */
int patch_parquet(PyObject *module);	 /* coffea.nanoevents.mapping.parquet: the same */
int patch_mapping(PyObject *module);	 /* coffea.nanoevents.mapping.uproot: the same */
int patch_hdf5(PyObject *module);	 /* h5py._hl.dataset: reads and writes of Dataset */
int patch_hdf5_groups(PyObject *module); /* h5py._hl.group: Group.create_dataset */
int patch_uproot_dask(PyObject *module); /* uproot._dask: UprootReadMixin.read_tree */
int patch_asyncio(PyObject *module);	 /* asyncio.selector_events: transports' write */
int patch_xrootd(PyObject *module);	 /* XRootD.client: requests of File and FileSystem */
int patch_aiohttp(PyObject *module);	 /* aiohttp.client_proto: requests on other loops */
int patch_arrow(PyObject *module);	 /* pyarrow.lib: named only */
int patch_coroutines(PyObject *module);	 /* asyncio.tasks */
int patch_grpc(PyObject *module);	 /* grpc._channel: calls from beginning to end */
int patch_grpc_aio(PyObject *module);	 /* grpc.aio._call: Call */
int patch_http2(PyObject *module);	 /* httpcore's HTTP/2 connections, async and not */
int patch_instrument(PyObject *module);	 /* crema.instrument: sections and values of tasks */
int patch_imports(PyObject *module);	 /* importlib: its way to import a module */
int patch_codecs(PyObject *module, const char *name);

/* py_client.c: detects whether this process is the command of `crema run`; if it is a Python, its
 * main thread is recorded (python/crema/client.py). Called by the constructor, before Python. */
void client_watch(void);

/* py_arm.c: turns this process into a measured one (start/arm.h). GIL held. */
int py_arm(const char *usual, int say);

/* py_probe.c: the worker probe's functions (probe.py), once there is a worker; what it writes. */
void probe_set(PyObject *functions);
PyObject *probe_call(const char *name, PyObject *const *args, size_t n);
struct crema_probe_text;
void probe_put(struct crema_probe_text *p, const char *text, size_t bytes);

/* py_task.c: key and worker of a task that the replaced functions do not see; prefix and span of
 * span_key. Each may be None. */
struct crema_task;
void task_describe(struct crema_task *t, PyObject *key, PyObject *worker, PyObject *span_key);
/* Its span, and what it consumes, from the TaskState (NULL: unknown): needs its flags and key. */
void graph_describe(struct crema_task *t, PyObject *ts, PyObject *span);

/* py_probe.c: the key of the actor that has this method, None or NULL; new reference. */
PyObject *probe_actor_key(PyObject *worker, PyObject *method);

/* py_task.c: a task's key, cut to the size of the slot's. */
void task_key(struct crema_task *t, const char *text, size_t bytes);

/*
 * py_task.c: an execution from start to end. begin: the slot has been described, now its work
 * starts. end: keeps a pending exception; does nothing in a child that was forked meanwhile.
 */
struct execution {
	uint32_t owner, epoch, outer, outer_is_pool;
	PyObject *token;
	struct section_open *sections; /* that the thread had open before */
};
void execution_begin(struct execution *x, uint32_t owner);
void execution_end(struct execution *x, uint32_t status);

/* py_coffea.c: the kind of coffea work in a task's arguments, written into the slot. */
void coffea_describe(struct crema_task *t, PyObject *const *args, Py_ssize_t nargs);
/* The same for a WorkItem or FileMeta, or a tuple that begins with one: 1 if `o` is one of
 * these. */
int coffea_describe_item(struct crema_task *t, PyObject *o);
/* py_found.c: what roastcoffea has put into a processor's output. */
void found_describe(const struct crema_task *t, PyObject *out);

/* py_report.c: what a chunk reports about itself, in the result of coffea's work function. */
void report_of_runner(struct crema_task *t, PyObject *result);
/* The same in Dask's message of a chunk that ended, for users' functions. */
void report_of_task(struct crema_task *t, PyObject *message);
/* Records the exception that ended a task; none of the exception's own code runs. t may be NULL. */
void raised_describe(struct crema_task *t, PyObject *raised);

/* py_pool.c: the context variable that carries the task's name to other threads. */
void pool_forget(void);
PyObject *pool_enter(unsigned owner);
void pool_leave(PyObject *token);
/* Name (task.h) of the task on whose behalf this code runs: its thread's, else its context's; else
 * 0. */
uint64_t pool_current(void);
/* Number of the stack (byte_sample.h) that requests what this code requests, likewise. enter,
 * leave: around passing work to a loop, whose context then has it; NULL: nothing to leave. */
uint32_t pool_stack(void);
PyObject *pool_stack_enter(void);
void pool_stack_leave(PyObject *token);
/* A capsule that holds a reference to that task's slot until it is freed; NULL: no task (no
 * exception). */
PyObject *pool_capsule(void);
uint32_t pool_capsule_owner(PyObject *capsule);

#endif
