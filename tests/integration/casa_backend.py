"""A backend of dask-gateway that starts each scheduler and worker in a container of its own, as those of facilities do: with
the cluster's credentials mounted, and nothing of the server's environment."""

from dask_gateway_server.backends.local import UnsafeLocalBackend
from traitlets import List, Unicode

CREDENTIALS = "/etc/dask-credentials"


class ContainerBackend(UnsafeLocalBackend):
    start = List(Unicode(), config=True, help="what starts a container, without its name and its command")
    entrypoint = List(Unicode(), config=True, help="of the image: runs the command that follows")

    def get_tls_paths(self, cluster):
        return f"{CREDENTIALS}/dask.crt", f"{CREDENTIALS}/dask.pem"

    async def start_process(self, cluster, cmd, env, name):
        own = ["--machine=" + (name if name != "scheduler" else f"scheduler-{cluster.name}"),
               f"--bind-ro={self.get_certs_directory(cluster.state['workdir'])}:{CREDENTIALS}"]
        given = [f"--setenv={key}={value}" for key, value in env.items()]
        return await super().start_process(cluster, [*self.start, *own, *given, *self.entrypoint, *cmd], env, name)
