"""Two hosts connected by veth, programs that make connections, and a running recorder."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

PORT = 8080
LIBRARIES = ("-l:libssl.so.3", "-l:libcrypto.so.3")
"""Libraries with which connections.c is linked."""
PAGE_BYTES = 4000
"""Size of a fetched page: RESPONSE_BYTES in connections.c."""
NGINX = """\
daemon off;
master_process off;
error_log {folder}/errors;
pid {folder}/pid;
events {{}}
http {{
    access_log {folder}/access;
    sendfile on;
    tcp_nopush on;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen {address}:{port}{encrypted};
        root {folder};
        ssl_certificate {folder}/certificate;
        ssl_certificate_key {folder}/key;
    }}
}}
"""
"""Configuration of nginx: a page from a file, and a log line per request."""
CERTIFICATE = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=server -days 1"
SOURCES = Path(__file__).resolve().parent.parent / "agent"
AGENT = Path(os.environ.get("THALWEG_AGENT", str(Path(sys.executable).with_name("thalweg-agent"))))


class Machine:
    """Two network namespaces connected by veth, two cgroups, and the program that makes connections."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self.stack = folder, stack
        self.recorded, self.other = (stack.enter_context(cgroup(name)) for name in ("recorded", "other"))
        self.program = folder / "connections"
        subprocess.run(["cc", "-O2", "-Wall", "-o", self.program, SOURCES / "connections.c", *LIBRARIES], check=True)
        self.server, self.client = (stack.enter_context(namespace()) for _ in range(2))
        server, client = str(self.server), str(self.client)
        run("ip", "link", "add", "cable", "netns", server, "type", "veth", "peer", "cable", "netns", client)
        for place, end in ((self.server, 1), (self.client, 2)):
            # There must be more addresses than one, because each has a limited number of ports.
            for more in range(8):
                self.inside(place, "ip", "addr", "add", f"10.9.{more}.{end}/24", "dev", "cable")
            self.inside(place, "ip", "link", "set", "cable", "up")
            self.inside(place, "sysctl", "-qw", "net.ipv4.ip_local_port_range=1024 65535")

    def command(self, place: int, *words: object) -> list[str]:
        """Return a command that runs in a namespace."""
        return ["nsenter", "--target", str(place), "--net", *map(str, words)]

    def inside(self, place: int, *words: object) -> str:
        """Run a command in a namespace, and return its output."""
        return run(*self.command(place, *words))

    @contextmanager
    def serving(
        self, how: str, address: str = "10.9.0.1", port: int = PORT, cgroup: Path | None = None
    ) -> Iterator[int]:
        """Run a server in the recorded cgroup or another: `bare`, `nginx`, `nginx-tls`, or `keep` (no answers)."""
        enter = ["sh", "-c", f'echo $$ > {cgroup or self.recorded}/cgroup.procs && exec "$@"', "sh"]
        program = [self.program, how, address, port]
        if how in ("nginx", "nginx-tls"):
            program = self.web_server(address, port, " ssl" if how == "nginx-tls" else "")
        line = enter + self.command(self.server, *program)
        with ended(subprocess.Popen(line, stdin=subprocess.DEVNULL)) as server:
            while f":{port}" not in self.inside(self.server, "ss", "-Hltn", "src", address):
                if server.poll() is not None:
                    raise SystemExit(f"bench: a server cannot be started: {shlex.join(map(str, program))}")
                time.sleep(0.01)
            yield server.pid

    def web_server(self, address: str, port: int, encrypted: str) -> list[Any]:
        """Return the command that starts nginx with a page to fetch."""
        folder = self.folder / f"nginx-{port}"
        folder.mkdir(exist_ok=True)
        (folder / "page").write_bytes(b"x" * PAGE_BYTES)
        own = ("-keyout", f"{folder}/key", "-out", f"{folder}/certificate")
        subprocess.run(("openssl", *CERTIFICATE.split(), *own), check=True, capture_output=True)
        settings = folder / "nginx.conf"
        settings.write_text(NGINX.format(folder=folder, address=address, port=port, encrypted=encrypted))
        return [nginx(), "-c", settings, "-e", folder / "errors"]

    def ask(self, seconds: float, port: int, cpu: int) -> None:
        """Make connections from a CPU for a number of seconds."""
        self.inside(self.client, "taskset", "--cpu-list", cpu, self.program, "ask", "10.9.0.1", port, seconds)


def nginx() -> Path | None:
    """Return the path of nginx: the system's, or the one that `tools/bootstrap nginx` has fetched; None
    without either.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    installed = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    kept = cache / "thalweg" / "nginx" / "nginx"
    return Path(installed) if installed else kept if kept.exists() else None


class Agent:
    """A running recorder for the machine's cgroup or another one; with `tune`, it also chooses algorithms."""

    def __init__(self, machine: Machine, *options: str, command: str = "record", cgroup: Path | None = None) -> None:
        watched = cgroup or machine.recorded
        self.at = ["--socket", str(machine.folder / f"{watched.name}.sock")]
        line = [str(AGENT), command, "--out", str(machine.folder / f"{watched.name}-records"), *self.at]
        line += ["--listen", "127.0.0.1:0", "--cgroup", str(watched), *options]
        self.process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
        # The agent is stopped even if the measurement fails.
        machine.stack.callback(self.stop)
        assert self.process.stdout is not None
        if not self.process.stdout.readline().startswith(("recording", "tuning")):
            raise SystemExit("bench: the recorder cannot be started")

    def status(self) -> dict[str, Any]:
        """Return the status that the agent reports."""
        return dict(json.loads(run(str(AGENT), "status", "--json", *self.at)))

    def stop(self) -> None:
        """Stop the agent, unless it has exited already."""
        self.process.terminate()
        self.process.wait()

    def end(self) -> None:
        """Stop the agent, and fail if it exits with an error."""
        self.stop()
        if self.process.returncode != 0:
            raise SystemExit(f"bench: the recorder ended with {self.process.returncode}")


def run(*words: str) -> str:
    """Run a command until it exits, and return its output."""
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


@contextmanager
def ended(process: "subprocess.Popen[Any]") -> Iterator["subprocess.Popen[Any]"]:
    """Kill a process at the end of the context."""
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def namespace() -> Iterator[int]:
    """Create a network namespace; yield the pid of the process that holds it."""
    with ended(subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE)) as keeper:
        ours, theirs = Path("/proc/self/ns/net"), Path(f"/proc/{keeper.pid}/ns/net")
        while theirs.readlink() == ours.readlink():
            time.sleep(0.01)
        yield keeper.pid


@contextmanager
def cgroup(name: str) -> Iterator[Path]:
    """Create a version 2 cgroup for the duration of the context."""
    mounts = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    mount = next(Path(words[1]) for words in mounts if words[2] == "cgroup2")
    path = mount / f"thalweg-bench-{os.getpid()}-{name}"
    path.mkdir()
    try:
        yield path
    finally:
        while (path / "cgroup.procs").read_text():
            time.sleep(0.01)
        path.rmdir()
