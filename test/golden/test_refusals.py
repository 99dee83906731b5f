"""What is said about a command line that cannot be right: one sentence, which names the value.

Nothing here gets so far as to ask a hub or an agent: the sockets that are named are not there.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from test_golden import subcommands, told

FAILED, USAGE = 1, 2
AWAY = "/nonexistent/weft.sock"
PYTHON = "/usr/bin/python3"
LONG = "/tmp/" + "x" * 120
TOKEN = (Path(__file__).parents[1] / "corpus/token/whole").read_text().strip()
PIN = "A" * 43 + "="
TOO_LONG = '--socket "/tmp/xxxxxxxxxxxxxxx..." is too long: 125 bytes, and {} are allowed'
# A daemon has a second socket beside it, whose name is longer by ".users".
FITS, FITS_NOT = ("/" + "x" * (n - 1) for n in (97, 98))
FAR = f"--hub 192.0.2.1:8443 --admin-token-file /nonexistent/t --pin {PIN}"
OF_HUB = "is for asking a hub, and with --snapshot the file is all that is read"
A_NAME = "is not a name: 1 to 63 of a-z, 0-9 and '-'"

# The words, the exit status, and what the sentence says besides.
REFUSALS = [
    ("frob", USAGE, '"frob" is not a command'),
    ("hub down", USAGE, '"down" is not a command'),
    ("jion", USAGE, '"jion" is not a command; did you mean "weft join"?'),
    ("hub stauts", USAGE, '"stauts" is not a command; did you mean "weft hub status"?'),
    ("node list", USAGE, '"list" is not a command; did you mean "weft node ls"?'),
    (f"node ls --socket {AWAY}", FAILED, "no hub answers"),
    (f"edge ls --socket {AWAY}", FAILED, "no hub answers"),
    (f"hub status --socket {AWAY}", FAILED, "no hub answers"),
    ("hub up extra", USAGE, '"extra" is one argument too many'),
    ("hub up --listen 70000", USAGE, '"70000" is not a number from 1 to 65535'),
    ("hub up --listen x:1", USAGE, '"x:1" is not :PORT'),
    ("hub up --listen 192.0.2.1:51820", USAGE, "--listen takes a port only"),
    ("hub up --api foo", USAGE, '"foo" is not :PORT or ADDRESS:PORT'),
    ("hub up --network Bad_Name", USAGE, f'"Bad_Name" {A_NAME}'),
    ("hub up --cidr4 10.42.0.0/33", USAGE, '"33" is not a number from 0 to 32'),
    ("hub up --cidr4 10.42.0.0/31", USAGE, '"10.42.0.0/31", and lengths /8 to /30 are allowed'),
    ("hub up --cidr4 10.42.0.1/16", USAGE, '"10.42.0.1/16", which has bits set'),
    ("hub up --cidr4 fd00::/64", USAGE, '"fd00::/64", which is not IPv4'),
    ("hub up --cidr4 224.0.0.0/8", USAGE, '"224.0.0.0/8", which overlaps 224.0.0.0/3'),
    ("hub up --interface-prefix a/b", USAGE, f'"a/b" {A_NAME}'),
    ("hub up --log-level loud", USAGE, '"loud" is none of error, warning, info, debug'),
    ("hub up --public 192.0.2.1:99999", USAGE, '"99999" is not a number from 1 to 65535'),
    ("hub up --public hub.example.org:x", USAGE, '"x" is not a number from 1 to 65535'),
    ("hub up --public ::1", USAGE, "--public ::1 is in ::/8, where no other machine reaches"),
    ("hub up --public 127.0.0.1:9", USAGE, "--public 127.0.0.1:9 is in 127.0.0.0/8"),
    ("hub up --public 169.254.1.1", USAGE, "is in 169.254.0.0/16"),
    ("hub up --store foo", USAGE, 'store "foo" is none of "sqlite:PATH", "memory:"'),
    ("hub up --store sqlite:", USAGE, 'store "sqlite:" is none of'),
    ("hub up --state=", USAGE, "--state is empty: it takes DIR"),
    ("hub up --relay-only --store memory:", USAGE, "--store is for a hub, and with --relay-only"),
    ("hub up --relay-only --api :8443", USAGE, "--api is for a hub"),
    ("hub up --relay-only --network a", USAGE, "--network is for a hub"),
    ("hub up --relay-only --cidr4 10.0.0.0/16", USAGE, "--cidr4 is for a hub"),
    ("hub up --relay-only --audit-age 1d", USAGE, "--audit-age is for a hub"),
    ("hub up --relay-only --price-table p", USAGE, "--price-table is for a hub"),
    ("hub up --relay-only --line 1Gbit", USAGE, "--line is for a hub"),
    ("hub up --line 0", USAGE, '--line "0" is not a rate in bits per second'),
    ("hub up --line fast", USAGE, '--line "fast"'),
    ("hub up --no-dataplane --relay-only", USAGE, "--no-dataplane is for a hub"),
    (f"hub up --socket {LONG}", USAGE, TOO_LONG.format(97)),
    (f"hub up --socket {FITS_NOT}", USAGE, "is too long: 98 bytes, and 97 are allowed"),
    (f"agent --socket {FITS_NOT}", USAGE, "is too long: 98 bytes, and 97 are allowed"),
    (f"status --socket {FITS_NOT}", USAGE, "is too long: 98 bytes, and 97 are allowed"),
    (f"status --socket {FITS}", FAILED, f"there is no agent on {FITS}"),
    ("token new --socket=", USAGE, "--socket is empty: it takes PATH"),
    ("token new --ttl 0", USAGE, '"0" is not a duration from 1 s to 365 d'),
    ("token new --ttl -1h", USAGE, '"-1h" is not a duration'),
    ("token new --uses 0", USAGE, '"0" is not a number from 1 to 100000'),
    ("token new --uses 99999999999999999999999", USAGE, "is not a number from 1 to 100000"),
    ("token new --hub h:0", USAGE, '--hub "h:0" is neither HOST nor HOST:PORT'),
    ("token new --hub h", USAGE, "--hub h needs --admin-token-file and --pin"),
    ("token new --hub h:1", USAGE, "--hub h:1 needs --admin-token-file and --pin"),
    ("token new --hub h:1 --admin-token-file t --pin zz", USAGE, '--pin "zz" is not 32 bytes'),
    (f"token new --hub h:1 --admin-token-file / --pin {PIN}", USAGE, "file /: Is a directory"),
    (f"token new --hub h:1 --admin-token-file /dev/null --pin {PIN}", USAGE, "has no token"),
    ("token new --admin-token-file t", USAGE, "--admin-token-file is for a hub elsewhere"),
    (f"nodes --pin {PIN}", USAGE, "--pin is for a hub elsewhere: say which, with --hub"),
    (f"nodes --socket {LONG}", USAGE, TOO_LONG.format(97)),
    (f"nodes --socket {AWAY} {FAR}", USAGE, "--socket is of a hub on this machine, and --hub"),
    (f"nodes --socket /run/weft/hub.sock {FAR}", USAGE, "names one elsewhere: give either"),
    (f"status --socket {LONG}", USAGE, TOO_LONG.format(97)),
    ("cost --since soon", USAGE, '"soon"'),
    ("cost --until 2026-13-01", USAGE, '"2026-13-01"'),
    ("cost --since 2026-11-23 --until 2026-11-22", USAGE, "is a later day than 2026-11-22"),
    (f"token new --socket {AWAY}", FAILED, f"no hub answers at {AWAY}: on the hub's machine"),
    ("join", USAGE, "say one of TOKEN, - for standard input, and --token-file"),
    ("agent --renew-engine --take-down", USAGE, "--renew-engine and --take-down exclude"),
    ("join x --no-start --foreground", USAGE, "--no-start and --foreground exclude each other"),
    ("join x --name Bad_Name", USAGE, f'"Bad_Name" {A_NAME}'),
    ("join x --label foo", USAGE, 'label "foo" is not KEY=VALUE'),
    ("join x --label =v", USAGE, 'label "=v" is not KEY=VALUE'),
    ("join x --engine quick", USAGE, 'engine "quick" is none of auto, userspace, kernel'),
    ("join x --interface a/b", USAGE, '"a/b" is not a name: 1 to 15 printable characters'),
    ("join x --endpoint foo", USAGE, '"foo" is no endpoint: an address, or ADDRESS:PORT'),
    ("join x --endpoint 192.0.2.1:0", USAGE, '"192.0.2.1:0" is no endpoint'),
    ("join x --listen 65536", USAGE, '"65536" is not a number from 1 to 65535'),
    ("agent --log-level loud", USAGE, '"loud" is none of error'),
    ("agent --state /nonexistent/node", FAILED, "this machine has not joined a network"),
    (f"status --socket {AWAY}", FAILED, f"there is no agent on {AWAY}: this machine has not"),
    (f"paths gpu --socket {AWAY}", FAILED, f"there is no agent on {AWAY}: this machine has not"),
    ("paths Bad_Name", USAGE, f'"Bad_Name" {A_NAME}'),
    ("probe --once --state /nonexistent/node", FAILED, "this machine has not joined a network"),
    ("probe --period 100ms", USAGE, '"100ms" is not a duration from 1 s'),
    ("node rm A_B", USAGE, f'"A_B" {A_NAME}'),
    ("node add", USAGE, "NAME is missing"),
    ("node add A_B --qr", USAGE, f'"A_B" {A_NAME}'),
    ("node add a--b --qr", USAGE, "two '-' in a row"),
    ("node add a", USAGE, "give --public-key KEY; or --new-key or --qr"),
    ("node add a --public-key x", USAGE, '"x" is not a public key of 44 characters'),
    ("node add a --public-key x --qr", USAGE, "exclude each other"),
    ("node add a --qr --json", USAGE, "--qr and --json exclude each other"),
    ("node add a --qr --label foo", USAGE, 'label "foo" is not KEY=VALUE'),
    ("node add a --qr --listen-port 0", USAGE, '"0" is not a number from 1 to 65535'),
    (f"node add a --new-key --socket {AWAY}", FAILED, f"no hub answers at {AWAY}"),
    ("node set a", USAGE, "there is nothing to set: say --relay yes or no"),
    ("node set a --relay maybe", USAGE, '--relay "maybe" is none of yes, no'),
    ("nodes --network A_B", USAGE, f'"A_B" {A_NAME}'),
    ("network add x --topology star", USAGE, '"star" is none of auto, hub, mesh'),
    ("network add x --mtu 10", USAGE, '"10" is not a number from 1280 to 65535'),
    ("network add x --keepalive 100000", USAGE, '"100000" is not a number from 0 to 3600'),
    ("apply -f /nonexistent/file", FAILED, "/nonexistent/file: No such file"),
    ("apply -f /", FAILED, "/ cannot be read: Is a directory"),
    ("get Foo", USAGE, '"Foo" is none of Network, Node, MeshEdge'),
    ("get edges --history", USAGE, "--history is of a pair of two nodes: weft get edges A B"),
    ("get edges a --history", USAGE, "--history is of a pair of two nodes: weft get edges A B"),
    ("get Node a b --history", USAGE, "--history is of a pair of two nodes: weft get edges A B"),
    ("get edges a--b c --history", USAGE, '"a--b" is a pair, and --history takes its two nodes'),
    ("get edges a a --history", USAGE, 'a pair is of two nodes, and "a" is named twice'),
    ("get edges a A_B --history", USAGE, f'"A_B" {A_NAME}'),
    ("get edges a b", USAGE, '"b" is one argument too many: a second node goes with --history'),
    (f"get edges a b --history --socket {AWAY}", FAILED, "no hub answers"),
    ("get Node A_B", USAGE, f'"A_B" {A_NAME}'),
    ("edge set a b", USAGE, "there is nothing to set: say --path or --rate"),
    ("edge set a a --path off", USAGE, '"a" and "a" are the same node'),
    ("edge set a b --path warp", USAGE, '"warp" is none of auto, direct, relay, off'),
    ("render", USAGE, "give either NODE or --snapshot FILE"),
    (f"render --snapshot f --socket {AWAY}", USAGE, f"--socket {OF_HUB}"),
    ("render --snapshot f --hub 192.0.2.1:8443", USAGE, f"--hub {OF_HUB}"),
    ("render --snapshot f --admin-token-file t", USAGE, f"--admin-token-file {OF_HUB}"),
    (f"render --snapshot f --pin {PIN}", USAGE, f"--pin {OF_HUB}"),
    ("render --snapshot f --network default", USAGE, f"--network {OF_HUB}"),
    ("render --snapshot /nonexistent/file", FAILED, "/nonexistent/file does not exist"),
    ("render x --listen-port 0", USAGE, '"0" is not a number from 1 to 65535'),
    ("env --format xml", USAGE, '"xml" is none of sh, json, k8s, slurm'),
    ("env --nnodes 4:2", USAGE, '--nnodes "4:2": MIN, 4, is more than MAX, 2'),
    ("env --nnodes 4:", USAGE, '"4:" is neither a number of nodes nor MIN:MAX'),
    ("env --rendezvous mpi", USAGE, '"mpi" is none of c10d, etcd-v2, none'),
    ("env --nccl-log /", FAILED, "--nccl-log /: Is a directory"),
    (f"env --socket {AWAY}", FAILED, f"there is no agent on {AWAY}"),
    ("run", USAGE, "COMMAND is missing"),
    ("run --nnodes 99999999 -- true", USAGE, '"99999999" is neither a number of nodes'),
    ("run --nnodes 4:2 -- true", USAGE, '--nnodes "4:2": MIN, 4, is more than MAX, 2'),
    ("run --job A_B -- true", USAGE, f'"A_B" {A_NAME}'),
    ("run --params 7X -- true", USAGE, '--params "7X" is no number of weights from 1K to 1000T'),
    ("run --anyway -- true", USAGE, "--anyway is for --preflight, and there is no --preflight"),
    ("run --budget 5 --pin x -- true", USAGE, "--pin is for a hub elsewhere: say which, with --"),
    ("run --budget 5 --hub x -- true", USAGE, "--hub x needs --admin-token-file and --pin"),
    (f"run --budget 5 {FAR} -- true", USAGE, "admin token file /nonexistent/t: No such file"),
    ("run --frob -- true", USAGE, 'no option "--frob"'),
    (f"run --socket {AWAY} -- true", FAILED, f"there is no agent on {AWAY}"),
    (f"run --socket {AWAY} -- {PYTHON} -m lost.py", FAILED, f"there is no agent on {AWAY}"),
    (f"run --socket {AWAY} -- {PYTHON} lost.py", FAILED, 'script "lost.py" is not there; it is'),
    ("tune --apply --undo", USAGE, "--apply and --undo are opposites"),
    ("tune --rate 10Gbit", USAGE, "--rate and --rtt belong together"),
    ("tune --rtt 20", USAGE, "--rate and --rtt belong together"),
    ("tune --rtt 0 --rate 1Gbit", USAGE, '"0" is not a number from 1 to 10000'),
    ("tune --rtt 20ms --rate 1Gbit", USAGE, '"20ms" is not a number from 1 to 10000'),
    ("tune --rtt 20 --rate fast", USAGE, '"fast" is not a rate'),
    ("tune --undo --rate 1Gbit --rtt 1", USAGE, "--undo sets what was there"),
    ("preflight --expect 10GB", USAGE, '"10GB" is not a rate in bits per second'),
    ("preflight --expect 0", USAGE, '"0" is not a rate'),
    (f"preflight --socket {AWAY}", FAILED, f"there is no agent on {AWAY}: this machine has not"),
    ("plan", USAGE, "--params is missing"),
    ("plan --params 70X", USAGE, '"70X" is no number of weights from 1K to 1000T'),
    ("plan --params -7B", USAGE, '"-7B" is no number of weights'),
    ("plan --params 7B --active 8B --experts 8", USAGE,
     '--active "8B" is more than --params "7B"'),
    ("plan --params 7B --active 1B", USAGE, '--active "1B" is for a model with experts'),
    ("plan --params 7B --gpu tpu", USAGE, '--gpu "tpu" is none of a100,'),
    ("plan --params 7B --sync-bytes 1M,", USAGE, '"1M," is no list of at most 16 sizes'),
    ("plan --params 7B --sync-bytes 1X", USAGE, '"1X" is no list of at most 16 sizes'),
    ("plan --params 0x10p10", USAGE, '"0x10p10" is no number of weights'),
    ("plan --params 7B --sync-bytes 0x1p3", USAGE, '"0x1p3" is no list of at most 16 sizes'),
    ("plan --params 7B --matrix=", USAGE, "--matrix is empty: it takes FILE"),
    ("plan --params 7B --gpus 0", USAGE, '"0" is not a number from 1 to 64'),
    ("plan --params 7B --matrix /nonexistent/m", FAILED, "/nonexistent/m"),
    ("plan --params 7B --price-table /nonexistent/p", FAILED, "/nonexistent/p"),
    (f"plan --params 7B --socket {AWAY}", FAILED, f"there is no agent on {AWAY}"),
    ("run --once --max-restarts 3 -- true", USAGE, "--max-restarts is about beginning again"),
    ("run --wait-lost 1m --once -- true", USAGE, "--wait-lost is about beginning again"),
    ("probe --once --report", USAGE, "--once ends before there is much to report"),
    ("bench gpu --nodes a,b", USAGE, "PEER and --nodes"),
    ("bench --svg /nonexistent/x.svg", FAILED, 'picture "/nonexistent/x.svg" cannot be written'),
    ("bench --streams 17", USAGE, '"17" is not a number from 1 to 16'),
    ("bench --ms 0", USAGE, '"0" is not a number from 10 to 10000'),
    ("bench --allreduce 9999999", USAGE, "is not a number from 0 to 1024"),
    ("addrmap --period 0", USAGE, '"0" is not a duration from 1 s to 1 h'),
    ("addrmap --print --remove", USAGE, "--remove prints nothing"),
    ("wg", USAGE, "IFNAME is missing"),
    ("wg -f toolonginterfacename", FAILED, '"toolonginterfacename" must have 1 to 15 bytes'),
    ("wg -f x --threads 9999", USAGE, '"9999" is not a number from 1 to 32'),
    ("wg -f x --cpus 0-x", USAGE, 'CPU list "0-x" is not understood'),
    ("wg -f x --no-offload frob", USAGE, '"frob" is not an offload'),
    ("wg -f x --rate 1", USAGE, '--rate "1" is not from 100kbit to 1000Gbit'),
    ("wg -f x --class-rate bulk=5Mbit,slow=1Mbit", USAGE, '"slow=1Mbit" is not CLASS=RATE'),
    ("wg -f x --cipher des", USAGE, 'cipher "des" is not chacha20poly1305 or aes256gcm'),
    ("wg -f x --cipher-library foo", FAILED, '"foo" is not there'),
    (f"wg x --stats --socket {LONG}", USAGE, TOO_LONG.format(103)),
    (f"wg x --stats --socket {FITS_NOT}", FAILED, "weft wg"),
    ("wg nothere0 --stats", FAILED, "no weft wg runs nothere0 here: nothing listens on /"),
]


@pytest.mark.parametrize("line", [row[0] for row in REFUSALS])
def test_a_refusal_names_the_value(weft: Path, line: str) -> None:
    _, status, sentence = next(row for row in REFUSALS if row[0] == line)
    done = subprocess.run([weft, *line.split()], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == status, done.stderr
    assert sentence in done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, "one sentence"


def test_values_and_flags(weft: Path) -> None:
    """Each option with a value wants one; no flag takes one; nothing else is taken."""
    count = 0
    for name in subcommands(told(weft, "--help")):
        for sub in subcommands(told(weft, name, "--help")) or [""]:
            command = [name, *([sub] if sub else [])]
            for option, value in re.findall(r"^  (--[a-z][a-z0-9-]*)( [A-Z[:]\S*)?(?: |$)",
                                            told(weft, *command, "--help"), re.MULTILINE):
                words = [option] if value else [f"{option}=x"]
                wanted = (f"{option} needs a value" if value else
                          "no option" if option == "--help" else f"{option} takes no value")
                answer = told(weft, *command, *words)
                assert wanted in answer and "exit status 2" in answer, answer
                count += 1
            assert 'no option "--frob"' in told(weft, *command, "--frob")
    assert count > 100


@pytest.mark.parametrize("line", ["version", "--version", "--help", "help"])
def test_what_cannot_be_printed_is_a_failure(weft: Path, line: str) -> None:
    assert subprocess.run([weft, line], stdout=subprocess.DEVNULL, timeout=60).returncode == 0
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([weft, line], stdout=full, stderr=subprocess.PIPE, text=True,
                              timeout=60, check=False)
    assert done.returncode == FAILED
    assert done.stderr == f"weft {line}: standard output does not take it\n"
