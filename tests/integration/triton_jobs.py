"""Tasks of test_triton.py."""

import threading

_kept = {}


def kept(make, *key):
    if key not in _kept:
        _kept[key] = make()
    return _kept[key]


def rows(number):
    import numpy as np

    return np.arange(4 * number, dtype=np.float32).reshape(number, 4) / 7


def check(found, given):
    import numpy as np

    assert np.allclose(np.ravel(found), given.sum(axis=1))
    return len(given)


def wrapped(address, number):
    """coffea's wrapper, one for all tasks of the worker."""
    from coffea.ml_tools import triton_wrapper

    class Sums(triton_wrapper):
        def prepare_awkward(self, given):
            return [["out"], {"in": given}], {}

    model = kept(lambda: Sums(f"triton+grpc://{address}/sums/1", client_args={"ssl": False}), "wrapper", address)
    given = rows(number)
    return check(model.numpy_call(["out"], {"in": given})["out"], given)


def inputs(module, number):
    given = rows(number)
    tensor = module.InferInput("in", list(given.shape), "FP32")
    tensor.set_data_from_numpy(given)
    return given, [tensor]


def asked_later(address, number):
    """A future: the thread that waits for it is not the one that receives."""
    import tritonclient.grpc as client

    one = kept(lambda: client.InferenceServerClient(address), "client", address)
    given, tensors = inputs(client, number)
    done = threading.Event()
    answers = []
    one.async_infer("sums", tensors, lambda result, error: (answers.append(result), done.set()))
    done.wait(60)
    return check(answers[0].as_numpy("out"), given)


def streamed(address, number, calls):
    """Several answers of one call."""
    import queue

    import tritonclient.grpc as client

    answers = queue.Queue()
    with client.InferenceServerClient(address) as one:
        one.start_stream(lambda result, error: answers.put(result))
        for _ in range(calls):
            given, tensors = inputs(client, number)
            one.async_stream_infer("sums", tensors)
            check(answers.get(timeout=60).as_numpy("out"), given)
        one.stop_stream()
    return number * calls


def fails(address):
    import tritonclient.grpc as client
    import tritonclient.utils

    one = kept(lambda: client.InferenceServerClient(address), "client", address)
    try:
        one.infer("other", inputs(client, 1)[1])
    except tritonclient.utils.InferenceServerException as error:
        return error.status()


def by_asyncio(address, number):
    import asyncio

    import tritonclient.grpc.aio as client

    async def run():
        async with client.InferenceServerClient(address) as one:
            given, tensors = inputs(client, number)
            return check((await one.infer("sums", tensors)).as_numpy("out"), given)

    return asyncio.run(run())


def by_http(address, number, calls):
    """gevent's greenlets; a client for each thread, as theirs do not work in another."""
    import tritonclient.http as client

    one = kept(lambda: client.InferenceServerClient(address), "http", address, threading.get_ident())
    for _ in range(calls):
        given, tensors = inputs(client, number)
        check(one.infer("sums", tensors).as_numpy("out"), given)
    return number * calls
