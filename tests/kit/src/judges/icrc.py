"""Prints the ICRC that scapy computes for each frame of a capture: its bytes in hexadecimal, or a
dash where scapy has no opinion, which it has of RoCE v2 only."""

import sys

from scapy.contrib.roce import BTH
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapReader

for data, _ in RawPcapReader(sys.argv[1]):
    packet = Ether(data)
    if BTH not in packet or packet[BTH].underlayer.name != "UDP":
        print("-")
        continue
    # The ICRC of the frame is forgotten, and made anew when the packet is built.
    packet[BTH].icrc = None
    print(bytes(packet[BTH])[-4:].hex())
