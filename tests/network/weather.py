#!/usr/bin/python3
"""A network of machines on this one: each node has namespaces of its own (network, host name, files), and its only way to the others is an
Ethernet of TAP devices with weather: a relay that delays each frame, loses some, and lets no more through than a link's rate.

The kernel needs neither netem nor tbf; what is lost is repeated by the nodes' own TCP. Needs root, or user namespaces, and /dev/net/tun."""
import ctypes
import fcntl
import heapq
import itertools
import os
import random
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SUBNET = "10.77.0"
CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
FRAME = 65536
BACKLOG = 0.05  # seconds of frames that a link holds; what comes then is lost, as in a switch

NAMESPACES = ["--net", "--uts", "--mount"]

libc = ctypes.CDLL(None, use_errno=True)


def why_not():
    """Why such a network can't be made here, or None."""
    for program in ("ip", "unshare", "nsenter"):
        if not shutil.which(program):
            return f"no program {program}"
    if subprocess.run(["unshare", *NAMESPACES, "true"], capture_output=True, check=False).returncode:
        return "no namespaces may be made here (root, or unshare --user --map-root-user before it)"
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError as error:
        return f"/dev/net/tun: {error.strerror}"
    return None


class Weather:
    """delay: seconds each way; loss: the share of frames; rate: bits a second of each node's link; mtu: bytes of a packet at most."""

    def __init__(self, delay=0.0, loss=0.0, rate=1e9, mtu=1500):
        self.delay, self.loss, self.rate, self.mtu = delay, loss, rate, mtu

    def payload(self):
        """Bytes a second that TCP brings over a link at best: of each frame 14 bytes are Ethernet's head, 52 IP's and TCP's."""
        return self.rate / 8 * (self.mtu - 52) / (self.mtu + 14)


class Relay:
    """A switch whose ports are TAP devices: what its nodes send goes on when it is due."""

    def __init__(self, taps, weather, seed=1):
        self.taps, self.weather, self.random = taps, weather, random.Random(seed)
        self.free = [0.0] * len(taps)  # when each node's link has sent what it holds
        self.due, self.order = [], itertools.count()
        self.frames = self.bytes = self.lost = 0
        self.late = 0.0  # seconds, of all frames together

    def take(self, port, frame, now):
        """A frame that the node at a port sent. The last byte of an address is its node's number."""
        begin = max(now, self.free[port])
        if begin - now > BACKLOG or self.random.random() < self.weather.loss:
            self.lost += 1
            return
        self.frames += 1
        self.bytes += len(frame)
        self.free[port] = begin + len(frame) * 8 / self.weather.rate
        to = range(len(self.taps)) if frame[0] & 1 else [frame[5]] if frame[5] < len(self.taps) else []
        for node in to:
            if node != port:
                heapq.heappush(self.due, (self.free[port] + self.weather.delay, next(self.order), node, frame))

    def run(self, stop):
        """Until `stop` can be read."""
        poll = select.epoll()
        poll.register(stop, select.EPOLLIN)
        ports = {tap: port for port, tap in enumerate(self.taps)}
        for tap in self.taps:
            poll.register(tap, select.EPOLLIN)
        while True:
            now = time.monotonic()
            while self.due and self.due[0][0] <= now:
                due, _, node, frame = heapq.heappop(self.due)
                self.late += now - due
                try:
                    os.write(self.taps[node], frame)
                except OSError:  # its queue is full, or the node is gone
                    self.lost += 1
            for fd, _ in poll.poll(max(0.0, self.due[0][0] - now) if self.due else 1.0):
                if fd == stop:
                    return
                for _ in range(64):
                    try:
                        self.take(ports[fd], os.read(fd, FRAME), time.monotonic())
                    except BlockingIOError:
                        break


def hurry():
    """This process before others, where it may: a link does not wait for a processor."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    except PermissionError:
        pass


def open_tap(pid, name):
    """A TAP device in the network namespace of a process."""
    own, its = os.open("/proc/self/ns/net", os.O_RDONLY), os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        if libc.setns(its, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
        return tap
    finally:
        libc.setns(own, CLONE_NEWNET)
        os.close(own)
        os.close(its)


def processes_of(pid):
    """All processes in the network namespace of one: whatever a job left behind on its node."""
    own, found = os.readlink(f"/proc/{pid}/ns/net"), []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{name}/ns/net") == own:
                found.append(int(name))
        except OSError:  # it has ended meanwhile
            pass
    return found


class Network:
    """Nodes node0, node1, ... and the relay between them, as a context."""

    def __init__(self, nodes, weather):
        self.count, self.weather, self.nodes, self.taps = nodes, weather, [], []
        self.folder = tempfile.TemporaryDirectory()
        self.relay = None

    def __enter__(self):
        try:
            self.begin()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_):
        self.end()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def begin(self):
        with open(self.path("hosts"), "w", encoding="utf-8") as file:
            file.write("127.0.0.1 localhost\n")
            file.writelines(f"{SUBNET}.{k + 1} node{k}\n" for k in range(self.count))
        for k in range(self.count):
            self.begin_node(k)
        self.begin_relay()

    def begin_node(self, k):
        setup = f"hostname node{k} && mount --bind {self.path('hosts')} /etc/hosts && mount -t sysfs sysfs /sys && ip link set lo up && echo ready && exec sleep 100000"
        node = subprocess.Popen(["unshare", *NAMESPACES, "sh", "-c", setup], stdout=subprocess.PIPE, text=True)
        self.nodes.append(node)
        if node.stdout.readline() != "ready\n":
            raise RuntimeError(f"node{k} can't be made")
        with open(self.path(f"node{k}"), "w", encoding="utf-8") as file:
            file.write(str(node.pid))
        self.taps.append(open_tap(node.pid, "tide0"))
        for command in (f"link set tide0 address 02:00:00:00:00:{k:02x} mtu {self.weather.mtu} up", f"addr add {SUBNET}.{k + 1}/24 dev tide0"):
            subprocess.run(["nsenter", "--target", str(node.pid), "--net", "ip", *command.split()], check=True)

    def begin_relay(self):
        self.stop, self.stopper = os.pipe()
        self.told, tell = os.pipe()
        self.relay = os.fork()
        if self.relay == 0:
            relay = Relay(self.taps, self.weather)
            try:
                hurry()
                relay.run(self.stop)
                os.write(tell, f"{relay.frames} {relay.bytes} {relay.lost} {relay.late / max(relay.frames, 1)}".encode())
            finally:
                os._exit(0)
        os.close(tell)

    def end(self):
        """Ends the relay, and the nodes with all that runs on them; frames, bytes and lost are what the relay saw, late how many seconds
        behind its time a frame came: the relay had no processor, or more frames than it can carry."""
        if self.relay:
            os.write(self.stopper, b"x")
            os.waitpid(self.relay, 0)
            *counts, self.late = map(float, os.read(self.told, 200).split() or (0, 0, 0, 0))
            self.frames, self.bytes, self.lost = map(int, counts)
            for fd in (self.stop, self.stopper, self.told):
                os.close(fd)
        for tap in self.taps:
            os.close(tap)
        for node in self.nodes:
            for pid in processes_of(node.pid):
                os.kill(pid, signal.SIGKILL)
            node.wait()
            node.stdout.close()
        self.folder.cleanup()

    def enter(self, k):
        """The beginning of a command line that runs on a node."""
        return ["nsenter", "--target", str(self.nodes[k].pid), *NAMESPACES, "--"]

    def environment(self):
        """What makes mpirun of Open MPI and MPICH start a rank on each node, by `remote` in place of ssh, and use its network alone."""
        with open(self.path("hostfile"), "w", encoding="utf-8") as file:
            file.writelines(f"node{k}\n" for k in range(self.count))
        remote = os.path.join(HERE, "remote")
        return {"TIDE_NETWORK": self.folder.name,
                "OMPI_MCA_orte_default_hostfile": self.path("hostfile"), "OMPI_MCA_plm_rsh_agent": remote,
                "OMPI_MCA_btl_tcp_if_include": "tide0", "OMPI_MCA_oob_tcp_if_include": "tide0", "OMPI_MCA_pml": "ob1",
                "OMPI_MCA_btl": "tcp,self", "OMPI_MCA_rmaps_base_mapping_policy": "node",
                "HYDRA_HOST_FILE": self.path("hostfile"), "HYDRA_LAUNCHER": "ssh", "HYDRA_LAUNCHER_EXEC": remote, "HYDRA_IFACE": "tide0",
                "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "tide0", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "tide0"}


def main():
    """weather.py NODES DELAY_MS LOSS_PERCENT RATE_MBIT command...: the command on node0 of such a network."""
    nodes, delay, loss, rate = int(sys.argv[1]), *map(float, sys.argv[2:5])
    with Network(nodes, Weather(delay / 1e3, loss / 100, rate * 1e6)) as network:
        code = subprocess.run([*network.enter(0), *sys.argv[5:]], env={**os.environ, **network.environment()}, check=False).returncode
    print(f"relay: {network.frames} frames, {network.bytes} bytes, {network.lost} lost", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
