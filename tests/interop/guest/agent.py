"""Runs commands in the guest for the host, over a virtio port.

The host says   start ID LENGTH, a line end, and a shell command of that many bytes;
                signal ID NUMBER, for all processes of that command.
The guest says  ready, once;
                out ID LENGTH or err ID LENGTH, a line end, and that many bytes of output;
                end ID STATUS: what the command returned, or minus the signal that ended it.

Several commands run at a time. What is imported is little: nothing here was compiled before.
"""

import os
import select

NAME = "doorbell"
CHUNK = 1 << 16


def port():
    """Opens the port of that name."""
    folder = "/sys/class/virtio-ports/"
    for entry in os.listdir(folder):
        with open(folder + entry + "/name") as file:
            if file.read().strip() == NAME:
                return os.open("/dev/" + entry, os.O_RDWR)
    raise SystemExit("doorbell: there is no virtio port for the agent")


class Job:
    """A command that runs, in a process group of its own."""

    def __init__(self, number, command):
        self.number = number
        out, out_end = os.pipe()
        err, err_end = os.pipe()
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, out_end, 1),
            (os.POSIX_SPAWN_DUP2, err_end, 2),
        ]
        shell = ["sh", "-c", command]
        self.pid = os.posix_spawn("/bin/sh", shell, os.environ, file_actions=actions, setpgroup=0)
        os.close(out_end)
        os.close(err_end)
        self.end = os.pidfd_open(self.pid)
        self.pipes = {out: b"out", err: b"err"}
        for pipe in self.pipes:
            os.set_blocking(pipe, False)

    def signal(self, number):
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass


class Agent:
    """The port, and the commands that run."""

    def __init__(self):
        self.port = port()
        self.heard = b""
        self.jobs = {}
        # What a descriptor that is ready leads to: a job and, of its output, the pipe.
        self.leads = {}
        self.poll = select.poll()
        self.poll.register(self.port, select.POLLIN)

    def say(self, head, body=b""):
        rest = head + b"\n" + body
        while rest:
            rest = rest[os.write(self.port, rest):]

    def start(self, number, command):
        job = Job(number, command)
        self.jobs[number] = job
        for descriptor in [job.end, *job.pipes]:
            self.leads[descriptor] = job
            self.poll.register(descriptor, select.POLLIN)

    def forget(self, descriptor):
        self.poll.unregister(descriptor)
        del self.leads[descriptor]
        os.close(descriptor)

    def read(self, job, pipe):
        """Passes on what a pipe has. Whether there may be more at once."""
        try:
            data = os.read(pipe, CHUNK)
        except BlockingIOError:
            return False
        if data:
            self.say(b"%s %d %d" % (job.pipes[pipe], job.number, len(data)), data)
            return True
        del job.pipes[pipe]
        self.forget(pipe)
        return False

    def end(self, job):
        """The command has ended: not so, perhaps, what it started and has its pipes."""
        _, status = os.waitpid(job.pid, 0)
        for pipe in list(job.pipes):
            while self.read(job, pipe):
                pass
        for pipe in list(job.pipes):
            self.forget(pipe)
        self.forget(job.end)
        del self.jobs[job.number]
        self.say(b"end %d %d" % (job.number, os.waitstatus_to_exitcode(status)))

    def hear(self):
        self.heard += os.read(self.port, CHUNK)
        while b"\n" in self.heard:
            line, rest = self.heard.split(b"\n", 1)
            verb, number, value = line.split()
            number, value = int(number), int(value)
            if verb == b"start":
                if len(rest) < value:
                    return
                command, rest = rest[:value], rest[value:]
                self.start(number, command)
            elif number in self.jobs:
                self.jobs[number].signal(value)
            self.heard = rest

    def serve(self):
        self.say(b"ready")
        while True:
            for descriptor, _ in self.poll.poll():
                job = self.leads.get(descriptor)
                if descriptor == self.port:
                    self.hear()
                elif job is None:
                    pass  # Closed since the poll.
                elif descriptor == job.end:
                    self.end(job)
                else:
                    self.read(job, descriptor)


Agent().serve()
