"""Where a process and its children listen, as Linux has it in /proc."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path


def listening() -> list[str]:
    """The addresses on which this process and its children take connections."""
    sockets = {target for pid in family("self") for target in sockets_of(pid)}
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return [address_of(row[1]) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets]


def family(pid: str) -> list[str]:
    children = [word for path in Path(f"/proc/{pid}/task").glob("*/children") for word in path.read_text().split()]
    return [pid, *(one for child in children for one in family(child))]


def sockets_of(pid: str) -> list[str]:
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(str(entry.readlink()))
        except OSError:  # closed meanwhile
            continue
    return found


def address_of(row: str) -> str:
    """The kernel writes an address as words of four bytes, each turned around."""
    words = row.partition(":")[0]
    raw = b"".join(bytes.fromhex(words[place : place + 8])[::-1] for place in range(0, len(words), 8))
    address = ip_address(raw)
    return str(getattr(address, "ipv4_mapped", None) or address)
