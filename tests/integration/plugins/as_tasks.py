"""A plugin of pytest: each test function of another project runs as a task of a Dask worker in this process, so that with the library preloaded it
is measured. Without the library it runs in the same way, unmeasured."""

import distributed
import pytest


@pytest.fixture(scope="session", autouse=True)
def client_of_tasks():
    with distributed.LocalCluster(processes=False, n_workers=1, threads_per_worker=4, dashboard_address=":0") as cluster, \
            distributed.Client(cluster, set_as_default=False) as client:
        pytest.client_of_tasks = client
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    raised = []

    def call():
        try:
            pyfuncitem.obj(**arguments)
        except BaseException as error:
            raised.append(error)

    run_here.append(call)
    pytest.client_of_tasks.submit(take_and_run, key=f"test-{pyfuncitem.nodeid}", pure=False).result()
    if raised:
        raise raised[0]
    return True


# The worker is in this process: a function is handed over without being pickled.
run_here = []


def take_and_run():
    run_here.pop()()
