"""Prints the ICRC that scapy computes for each frame of a capture: its bytes in hexadecimal, or a
dash where scapy has no opinion, which it has of RoCE v2 only."""

import multiprocessing
import sys

from scapy.contrib.roce import BTH
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapReader


def icrc(data):
    packet = Ether(data)
    if BTH not in packet or packet[BTH].underlayer.name != "UDP":
        return "-"
    return packet[BTH].compute_icrc(b"").hex()


if __name__ == "__main__":
    frames = (data for data, _ in RawPcapReader(sys.argv[1]))
    # It takes half a millisecond a frame.
    with multiprocessing.Pool() as pool:
        for line in pool.imap(icrc, frames, chunksize=256):
            print(line)
