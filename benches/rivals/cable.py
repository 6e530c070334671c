"""Two network namespaces with a veth pair between them, which vanish with the script."""

import os
import subprocess
import sys

ADDRESSES = ("10.83.0.1", "10.83.0.2")


class Cable:
    """A virtual cable. Commands run at either end by `at(0)` and `at(1)`."""

    def __init__(self, mtu):
        self.names = [f"rivals-{os.getpid()}-{end}" for end in (0, 1)]
        self.mtu = mtu

    def __enter__(self):
        near, far = self.names
        for name in self.names:
            ip("netns", "add", name)
        ip("-n", near, "link", "add", "eth0", "mtu", str(self.mtu), "type", "veth", "peer", "name",
           "eth0", "mtu", str(self.mtu), "netns", far)
        for name, address in zip(self.names, ADDRESSES):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False)

    def at(self, end):
        """The words before a command that runs it at one end of the cable, on a processor of its
        own."""
        return ["ip", "netns", "exec", self.names[end], *pinned(end)]


def pinned(end):
    """The words before a command that bind it to the first or second processor there is."""
    return ["taskset", "-c", str(sorted(os.sched_getaffinity(0))[end])]


def ip(*words):
    """Runs `ip`, and ends the script with what it said if it failed."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"ip {' '.join(words)}: {done.stderr.strip()} (this needs root and iproute2)")
