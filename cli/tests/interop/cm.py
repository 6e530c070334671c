"""Asks for a connection by rdma_cm, or is asked for one, and prints what comes with each event.

There is no queue pair behind it: only what the managers tell each other is looked at, private data
above all, of which no program of rdma-core shows any.

    cm.py ask ADDRESS PORT DATA              connects, establishes, waits for the end
    cm.py accept ADDRESS PORT DATA           accepts the first that asks, and ends it when it is established
    cm.py refuse ADDRESS PORT DATA           refuses it
"""

import ctypes
import ipaddress
import socket
import struct
import sys

cm = ctypes.CDLL("librdmacm.so.1", use_errno=True)
EVENTS = [
    "ADDR_RESOLVED", "ADDR_ERROR", "ROUTE_RESOLVED", "ROUTE_ERROR", "CONNECT_REQUEST",
    "CONNECT_RESPONSE", "CONNECT_ERROR", "UNREACHABLE", "REJECTED", "ESTABLISHED", "DISCONNECTED",
]
TCP_PORT_SPACE = 0x0106
PATIENCE = 10_000  # ms


class ConnParam(ctypes.Structure):
    _fields_ = [
        ("private_data", ctypes.c_void_p),
        ("private_data_len", ctypes.c_uint8),
        ("responder_resources", ctypes.c_uint8),
        ("initiator_depth", ctypes.c_uint8),
        ("flow_control", ctypes.c_uint8),
        ("retry_count", ctypes.c_uint8),
        ("rnr_retry_count", ctypes.c_uint8),
        ("srq", ctypes.c_uint8),
        ("qp_num", ctypes.c_uint32),
    ]


class Event(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_void_p),
        ("listen_id", ctypes.c_void_p),
        ("event", ctypes.c_int),
        ("status", ctypes.c_int),
        ("conn", ConnParam),
    ]


def check(result, what):
    if result != 0:
        sys.exit(f"{what}: errno {ctypes.get_errno()}")


cm.rdma_create_event_channel.restype = ctypes.c_void_p
channel = ctypes.c_void_p(cm.rdma_create_event_channel())


def wait(*wanted):
    """The next event, which must be one of these: whose it is, its status and its private data."""
    event = ctypes.POINTER(Event)()
    check(cm.rdma_get_cm_event(channel, ctypes.byref(event)), "waiting for an event")
    found = event.contents
    name = EVENTS[found.event] if found.event < len(EVENTS) else str(found.event)
    data = ctypes.string_at(found.conn.private_data or 0, found.conn.private_data_len)
    owner = ctypes.c_void_p(found.id)
    text = data.rstrip(b"\0").decode(errors="replace")
    print(f"{name} {found.status} [{text}] {len(data)}", flush=True)
    check(cm.rdma_ack_cm_event(event), "acknowledging")
    if name not in wanted:
        sys.exit(f"not {' or '.join(wanted)}")
    return owner, name


def sockaddr(text, port):
    address = ipaddress.ip_address(text)
    if address.version == 4:
        return struct.pack("=H", socket.AF_INET) + struct.pack("!H", port) + address.packed + bytes(8)
    family = struct.pack("=H", socket.AF_INET6) + struct.pack("!HI", port, 0)
    return family + address.packed + bytes(4)


def param(data):
    keep = ctypes.create_string_buffer(data, max(len(data), 1))
    made = ConnParam(
        ctypes.cast(keep, ctypes.c_void_p), len(data), 1, 1, 0, 7, 7, 0, 0x1234
    )
    made.keep = keep
    return made


part, address, port, data = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4].encode()
at = sockaddr(address, port)
own = ctypes.c_void_p()
check(cm.rdma_create_id(channel, ctypes.byref(own), None, TCP_PORT_SPACE), "an identifier")
if part == "ask":
    check(cm.rdma_resolve_addr(own, None, at, PATIENCE), "resolving the address")
    wait("ADDR_RESOLVED")
    check(cm.rdma_resolve_route(own, PATIENCE), "resolving the route")
    wait("ROUTE_RESOLVED")
    check(cm.rdma_connect(own, ctypes.byref(param(data))), "connecting")
    _, name = wait("CONNECT_RESPONSE", "REJECTED")
    if name == "CONNECT_RESPONSE":
        check(cm.rdma_establish(own), "establishing")
        wait("DISCONNECTED")
        check(cm.rdma_disconnect(own), "answering that")
else:
    check(cm.rdma_bind_addr(own, at), "binding")
    check(cm.rdma_listen(own, 8), "listening")
    asker, _ = wait("CONNECT_REQUEST")
    if part == "accept":
        check(cm.rdma_accept(asker, ctypes.byref(param(data))), "accepting")
        wait("ESTABLISHED")
        check(cm.rdma_disconnect(asker), "ending it")
        wait("DISCONNECTED")
    else:
        check(cm.rdma_reject(asker, data, ctypes.c_uint8(len(data))), "refusing")
