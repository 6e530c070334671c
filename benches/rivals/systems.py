"""What is measured of each system: one-way times of 16 bytes, messages of 8 bytes a second, and
bytes a second in messages of 64 KiB.

A measurement returns a dictionary with some of `one_way_us`, `messages_per_s`, `gbytes_per_s`.
"""

import json
import os
import signal
import subprocess
import tempfile
import time

from cable import ADDRESSES, pinned

HERE = os.path.dirname(os.path.abspath(__file__))
PORT = 13399
# A measurement that hasn't ended by then is taken for one that hangs.
PATIENCE = 60


class Failed(Exception):
    """A measurement that failed, with what its command said."""


def output(command, environment=None):
    """What a command prints, or `Failed` with its words and its errors."""
    try:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 env={**os.environ, **(environment or {})}, start_new_session=True)
    except OSError as why:
        raise Failed(f"{command[0]}: {why}") from why
    try:
        said, complained = child.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired as why:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        raise Failed(f"{' '.join(command)}: hasn't ended after {PATIENCE} s") from why
    if child.returncode:
        raise Failed(f"{' '.join(command)}: status {child.returncode}: {complained[-500:].strip()}")
    return said


class Doorbell:
    """The command `doorbell perf`, which makes a cable of its own."""

    def __init__(self, program, seconds):
        self.program, self.seconds = program, seconds

    def perf(self, test, device, *options):
        """One line of `doorbell perf`, as a dictionary."""
        command = [self.program, "perf", test, "--pair", "--json", "--seconds", str(self.seconds)]
        command += ["--device", device] if device else []
        return json.loads(output([*command, *options]))

    def one_way(self, test, device, *options, part=1):
        """A one-way time; `part` of the test's, where that is the whole of a call."""
        return {"one_way_us": self.perf(test, device, *options)["p50_us"] * part}

    def rate(self, test, device, *options):
        """Messages a second."""
        line = self.perf(test, device, "--size", "8", *options)
        return {"messages_per_s": line["msgs_per_s"]}

    def bulk(self, test, device):
        """Gigabytes a second, by messages of 64 KiB."""
        return {"gbytes_per_s": self.perf(test, device, "--size", "65536")["gbytes_per_s"]}


class Served:
    """A server that runs while a client measures."""

    def __init__(self, command, environment=None):
        self.command, self.environment = command, {**os.environ, **(environment or {})}

    def __enter__(self):
        self.child = subprocess.Popen(self.command, env=self.environment,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self.child

    def __exit__(self, *_):
        if self.child.poll() is None:
            self.child.terminate()
        self.child.wait()


def listening(prefix):
    """Waits until a server listens, in the namespace in which `prefix` runs commands."""
    end = time.monotonic() + PATIENCE
    while f":{PORT} " not in output([*prefix, "ss", "-Hltn", f"sport = :{PORT}"]):
        if time.monotonic() > end:
            raise Failed(f"no server listens at port {PORT}")
        time.sleep(0.02)


def ucx(near, far, host, transports):
    """UCX's tagged messages, by `ucx_perftest` over the transports named."""
    environment = {"UCX_TLS": transports, "UCX_WARN_UNUSED_ENV_VARS": "n"}

    def line(test, size, count):
        with Served([*far, "ucx_perftest", "-p", str(PORT)], environment):
            listening(far)
            said = output([*near, "ucx_perftest", host, "-p", str(PORT), "-t", test, "-s",
                           str(size), "-n", str(count), "-f", "-v"], environment)
        head, values = said.strip().split("\n")[-2:]
        return dict(zip(head.split(","), map(float, values.split(","))))

    shared = "posix" in transports
    return {
        "one_way_us": line("tag_lat", 16, 500_000 if shared else 50_000)["50.0_percentile_lat"],
        "messages_per_s": line("tag_bw", 8, 5_000_000 if shared else 200_000)["overall_mr"],
        # It prints MB of 2^20 bytes.
        "gbytes_per_s": line("tag_bw", 65536, 100_000 if shared else 20_000)["overall_bw"]
        * 2**20 / 1e9,
    }


def mpich(cable, seconds):
    """MPICH's messages: in shared memory, or over TCP if there is a cable."""
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "mpi")
        output(["mpicc.mpich", "-O2", "-o", program, os.path.join(HERE, "mpi.c")])
        if cable is None:
            command = ["mpiexec.hydra", "-bind-to", "core", "-n", "2", program, str(seconds)]
            return json.loads(output(command, {"UCX_TLS": "posix,self"}))
        # Each end is a host with a name of its own, or MPICH would use shared memory.
        launcher = os.path.join(folder, "launch")
        with open(launcher, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nshift\nhost=$1; shift\ncase $host in\n") # behind ssh's `-x`
            for end, address in enumerate(ADDRESSES):
                file.write(f"{address}) exec {' '.join(cable.at(end))} unshare --uts "
                           f"sh -c \"hostname mpi{end}; $*\";;\n")
            file.write("esac\n")
        os.chmod(launcher, 0o755)
        command = ["ip", "netns", "exec", cable.names[0], "mpiexec.hydra", "-launcher", "ssh",
                   "-launcher-exec", launcher, "-localhost", ADDRESSES[0], "-hosts",
                   ",".join(ADDRESSES), "-n", "2", "-ppn", "1", program, str(seconds)]
        return json.loads(output(command, {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0"}))


def iperf3(cable, seconds):
    """TCP by iperf3: one stream, as many bytes as go."""
    with Served([*cable.at(1), "iperf3", "-s", "-p", str(PORT)]):
        listening(cable.at(1))
        said = output([*cable.at(0), "iperf3", "-c", ADDRESSES[1], "-p", str(PORT), "-J", "-t",
                       str(max(1, round(seconds)))])
    return {"gbytes_per_s": json.loads(said)["end"]["sum_received"]["bits_per_second"] / 8e9}


def rpc(program, seconds):
    """The systems of `benches/rpc`, by name: half of a call's time, and calls a second."""
    said = output([program, "--json", "--seconds", str(seconds), "--case", "single,loaded"])
    found = {}
    for line in map(json.loads, said.strip().split("\n")):
        found.setdefault((line["system"], line["device"]), {})[line["case"]] = line
    return {
        key: {
            "one_way_us": cases["single"]["p50_us"] / 2,
            "messages_per_s": cases["loaded"]["calls_per_s"],
        }
        for key, cases in found.items() if {"single", "loaded"} <= cases.keys()
    }
