/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * missing.c - handles a module version that lacks what its patch needs: the worker runs on, one
 * line reports it, and what can no longer be counted by task is unknown from then on.
 */
#include <string.h>

#include "shim/count/codec.h"
#include "shim/count/task.h"
#include "shim/hooks/bootstrap.h"
#include "shim/python/patch.h"
#include "shim/shim.h"

/* What is unknown then. */
enum loss {
	LOSS_ALL, /* nothing useful is measured: reported at once, the journal may stay empty */
	LOSS_DESCRIPTION, /* the identity of a task; its numbers are right */
	LOSS_POOLS,	  /* what other threads do for a task */
	LOSS_NETWORK,
	LOSS_CODECS,
};

static const struct missing {
	int (*patch)(PyObject *module);
	enum loss loss;
	const char *text;
} table[] = {
	{patch_worker_class, LOSS_ALL,
	 "distributed.worker has no Worker.start_unsafe: workers run unmeasured"},
	{patch_task_edges, LOSS_ALL,
	 "distributed.worker has no task function that crema knows: no task is seen"},
	{patch_coffea, LOSS_DESCRIPTION,
	 "coffea.processor.executor has no WorkItem: its chunks are not known"},
	{patch_executor, LOSS_DESCRIPTION,
	 "coffea.processor.executor has no Runner._work_function: what coffea measures of its "
	 "chunks is unknown"},
	{patch_uproot_dask, LOSS_DESCRIPTION,
	 "uproot._dask has no UprootReadMixin.read_tree: chunks of uproot.dask are not known"},
	{patch_futures, LOSS_POOLS,
	 "ThreadPoolExecutor has no submit: what tasks do in other threads is unattributed"},
	{patch_interpreter_pool, LOSS_POOLS,
	 "InterpreterPoolExecutor has no WorkerContext.run: what tasks do in other threads is "
	 "unattributed"},
	{patch_thread_pool, LOSS_POOLS,
	 "ThreadPool lacks a method that crema knows: what tasks do in other threads is "
	 "unattributed"},
	{patch_threading, LOSS_POOLS,
	 "Thread has no start: what tasks do in other threads is unattributed"},
	{patch_uproot, LOSS_POOLS,
	 "uproot.source.futures lacks a pool that crema knows: what tasks do in other threads is "
	 "unattributed"},
	{patch_instrument, LOSS_DESCRIPTION,
	 "crema.instrument is of another version: sections and values of tasks are unknown"},
	{patch_baskets, LOSS_DESCRIPTION,
	 "uproot has no Model_TBasket.read_members: the baskets it used are unknown"},
	{patch_pages, LOSS_DESCRIPTION,
	 "uproot has no read_locator and read_page that crema knows: once it has opened an "
	 "RNTuple, the baskets and pages it used are unknown"},
	{patch_branches, LOSS_DESCRIPTION,
	 "uproot has no _ranges_or_baskets_to_arrays: what its columns cost is unknown"},
	{patch_mapping, LOSS_DESCRIPTION,
	 "coffea has no UprootSourceMapping that crema knows: which columns it made arrays of is "
	 "unknown"},
	{patch_hdf5, LOSS_CODECS,
	 "h5py has no Dataset that crema knows: (de)compressed bytes of tasks are unknown"},
	{patch_hdf5_groups, LOSS_CODECS,
	 "h5py has no Group that crema knows: (de)compressed bytes of tasks are unknown"},
	{patch_xrootd, LOSS_NETWORK,
	 "XRootD.client has no File that crema knows: network bytes by task are unknown"},
	{patch_parquet, LOSS_DESCRIPTION,
	 "coffea has no ParquetSourceMapping that crema knows: which columns it made arrays of is "
	 "unknown"},
	{patch_aiohttp, LOSS_NETWORK,
	 "aiohttp has no ResponseHandler that crema knows: network bytes by task are unknown"},
	{patch_http2, LOSS_NETWORK,
	 "httpcore has no HTTP/2 connection that crema knows: network bytes by task are unknown"},
	{patch_grpc, LOSS_NETWORK,
	 "gRPC has no calls that crema knows: network bytes by task are unknown"},
	{patch_grpc_aio, LOSS_NETWORK,
	 "gRPC's asyncio has no calls that crema knows: network bytes by task are unknown"},
	{patch_coroutines, LOSS_NETWORK,
	 "asyncio.tasks has no run_coroutine_threadsafe that crema knows: network bytes by task "
	 "are unknown"},
	{patch_asyncio, LOSS_NETWORK,
	 "asyncio has no socket transport that crema knows: network bytes by task are unknown"},
};

#define TABLE (sizeof(table) / sizeof(table[0]))

static const uint64_t codec_counts = CODEC_COUNTS(decompress) | CODEC_COUNTS(compress);

static void lose(enum loss loss)
{
	if (loss == LOSS_POOLS)
		tasks_cannot_count(~UINT64_C(0), CREMA_TASK_POOL_UNSEEN);
	else if (loss == LOSS_NETWORK)
		tasks_cannot_count(CREMA_NETWORK_COUNTS, 0);
	else if (loss == LOSS_CODECS)
		tasks_cannot_count(codec_counts, 0);
}

static void note_codec(const char *module)
{
	static const char end[] =
		" has no function that crema knows: (de)compressed bytes of tasks are unknown";
	char text[160];
	size_t n = strlen(module);

	if (n + sizeof(end) > sizeof(text))
		return;
	memcpy(text, module, n);
	memcpy(text + n, end, sizeof(end));
	shim_note(text);
}

/* What was found missing in this process, including before it was armed. */
static struct {
	const struct missing *what; /* NULL: a codec's module */
	const char *module;
} found[CREMA_SHM_NOTES];
static size_t found_count;

static void tell(size_t i)
{
	if (found[i].what)
		shim_note(found[i].what->text);
	else
		note_codec(found[i].module);
}

static int interpreters;

static void tell_interpreters(void)
{
	shim_note("this process has more than one Python interpreter: (de)compressed bytes of "
		  "tasks are unknown");
}

/* Other interpreters' functions are different objects from the main one's. */
void missing_interpreter(void)
{
	if (__atomic_exchange_n(&interpreters, 1, __ATOMIC_SEQ_CST))
		return;
	lose(LOSS_CODECS);
	if (shim_armed())
		tell_interpreters();
}

void missing_tell(void)
{
	if (__atomic_load_n(&interpreters, __ATOMIC_SEQ_CST))
		tell_interpreters();
	for (size_t i = 0; i < found_count; i++)
		tell(i);
}

void missing_say(int (*patch)(PyObject *), const char *module)
{
	const struct missing *m = NULL;

	for (size_t i = 0; i < TABLE; i++)
		if (table[i].patch == patch)
			m = &table[i];
	if (m && m->loss == LOSS_ALL)
		shim_say(m->text, NULL);
	lose(m ? m->loss : LOSS_CODECS);
	if (found_count == CREMA_SHM_NOTES)
		return;
	found[found_count].what = m;
	found[found_count++].module = module;
	if (shim_armed())
		tell(found_count - 1);
}
