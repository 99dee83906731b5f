"""Two clients of one configuration socket, run in a host: two_clients_program.py SOCKET KEY

The first begins a request about the peer KEY (hexadecimal) and stops in the midst of it; the second
removes all peers; the first goes on. Prints what both were answered, and then all that is there.
"""

from __future__ import annotations

import socket
import sys


class Client:
    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)

    def say(self, text: str) -> None:
        self.socket.sendall(text.encode())

    def hear(self) -> str:
        answer = b""
        while not answer.endswith(b"\n\n"):
            piece = self.socket.recv(65536)
            if not piece:
                sys.exit("the data plane has hung up")
            answer += piece
        return answer.decode()

    def ask(self, request: str) -> str:
        self.say(request)
        return self.hear()


def main() -> None:
    path, key = sys.argv[1:]
    first, second = Client(path), Client(path)
    first.say(f"set=1\npublic_key={key}\n")
    while f"public_key={key}" not in second.ask("get=1\n\n"):
        pass
    print("removed", second.ask("set=1\nreplace_peers=true\n\n").strip())
    print("went on", first.ask("allowed_ip=10.9.0.1/32\nmtu=1400\n\n").strip())
    print(second.ask("get=1\n\n").strip())


if __name__ == "__main__":
    main()
