/*
 * finding.h - what is wrong with a network, in words: the one table of all that Weft may find, and
 * the set of what it finds now.
 *
 * A finding has a code that stays from version to version, a subject, a severity, since when it
 * holds, one sentence with the figures that it rests on, and what to do. Whoever judges looks at a
 * subject at a time: findings_look() begins, findings_add() says what is found, and findings_done()
 * forgets what was not found again. So a finding's @since is kept from look to look, and what has
 * begun and what is over is told once.
 *
 * All that shows whether something is well shows findings, and judges nothing itself.
 * docs/HEALTH.md is made from the table.
 *
 * Pure: no I/O, no clock.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/** What a finding is about, and so how its subject is written. */
enum finding_subject {
    FINDING_OF_HUB,    /* "hub": the hub that says it, or, at a node, the one that serves it */
    FINDING_OF_NODE,   /* "a" */
    FINDING_OF_PAIR,   /* "a--b", both ways */
    FINDING_OF_WAY,    /* "a>b": the packets from a to b */
    FINDING_OF_JOB,    /* "train" */
    FINDING_OF_RANK,   /* "train/a": the part of job train that runs on node a */
    FINDING_OF_BUDGET, /* "train", a job's, or the network's name */
    FINDING_SUBJECT_N,
};

/** How grave. Sorted: the gravest is the greatest. */
enum finding_severity {
    FINDING_NOTE,     /* worth knowing; nothing is worse for it now */
    FINDING_WARNING,  /* something is worse than it should be */
    FINDING_CRITICAL, /* something does not work */
    FINDING_SEVERITY_N,
};

/** finding_severity_names - "note", "warning", "critical". */
extern const char *const finding_severity_names[];

/* clang-format off */
/*
 * X(ID, code, SUBJECT, SEVERITY, title, means, fix, provoke): texts are of one line; @fix is what
 * is said beside a finding if whoever judges has nothing better, and @provoke how to see it in a
 * test network.
 */
#define FINDING_CODES(X) \
    /* A machine and its programs */ \
    X(NODE_DOWN, "WEFT-NODE-001", NODE, CRITICAL, "machine is down, or cut off", \
        "Its agent is not heard, it has no WireGuard session with the hub, and no probe of " \
        "another node is answered.", \
        "Start the machine, or look at its line: nothing of it is heard anywhere.", \
        "Cut the machine's line, or switch it off.") \
    X(NODE_AGENT_SILENT, "WEFT-NODE-002", NODE, CRITICAL, "agent is silent", \
        "Its agent has stopped to report, while its WireGuard still answers.", \
        "On the node: systemctl restart weft-agent, and read journalctl -u weft-agent.", \
        "Stop the agent alone: kill -STOP.") \
    X(NODE_NEVER_APPLIED, "WEFT-NODE-003", NODE, WARNING, "never converged", \
        "It has joined, and its agent has never been heard, or has applied nothing yet.", \
        "On the node: weft status says what is in the way; weft join starts an agent.", \
        "Join with --no-start.") \
    X(NODE_COPIED, "WEFT-NODE-004", NODE, CRITICAL, "two machines run as one node", \
        "Reports of one node come from two machines by turns: a copied image has its keys.", \
        "On the copy: weft leave, then join with a token of its own.", \
        "Start a copy of a node's state on another machine.") \
    X(APPLY_FAILED, "WEFT-APPLY-001", NODE, CRITICAL, "cannot be applied", \
        "Its agent cannot make the interface what the network says.", \
        "The sentence holds the agent's own words; on the node: weft status.", \
        "Move the engine's socket away: /run/wireguard/weft0.sock.") \
    /* What a machine does to packets and programs itself */ \
    X(NIC_DROPS, "WEFT-NIC-001", NODE, WARNING, "network card drops packets", \
        "The card or its ring has no room for what comes or goes: a thousandth of the packets or " \
        "more, in a minute.", \
        "Make the rings longer (ethtool -G), and spread the card's queues over more cores.", \
        "Send more than the machine can take.") \
    X(NIC_ERRORS, "WEFT-NIC-002", NODE, WARNING, "network card gets damaged packets", \
        "Checksums or frames are wrong: a cable, a plug, a port or a transceiver is bad.", \
        "Change the cable, then the port; ethtool -S names the counter that grows.", \
        "Take a bad cable.") \
    X(BACKLOG_FULL, "WEFT-NIC-003", NODE, WARNING, "kernel throws packets away", \
        "The backlog of a core is full: it gets more than it works off.", \
        "sysctl -w net.core.netdev_max_backlog=300000, and spread the card's queues over cores.", \
        "Set net.core.netdev_max_backlog to 1, under load.") \
    X(UDP_BUFFER_FULL, "WEFT-UDP-003", NODE, WARNING, "datagrams are not read in time", \
        "Sockets' buffers are full, so the kernel throws datagrams away. It is this machine that " \
        "loses them, not the line.", \
        "Give the machine more cores, or sysctl -w net.core.rmem_max=67108864.", \
        "Stop a program that gets datagrams: kill -STOP.") \
    X(TCP_AGAIN, "WEFT-TCP-001", NODE, NOTE, "TCP sends much again", \
        "A hundredth of the segments or more is sent again: lines lose packets, or are full.", \
        "weft get edges and weft status name the pair that loses packets, if it is Weft's.", \
        "Lose packets on a line that carries TCP.") \
    X(CPU_FULL, "WEFT-CPU-001", NODE, NOTE, "cores are full", \
        "The machine's cores have not been idle for a minute, so packets wait for them as well.", \
        "Leave a core to the network: fewer data loaders, or taskset.", \
        "Run a busy loop on each core.") \
    X(CPU_HELD_BACK, "WEFT-CPU-002", NODE, WARNING, "processor time is rationed", \
        "The control group that Weft runs in has a quota, and has used it up.", \
        "Raise the quota: CPUQuota= of the unit, or the container's limit.", \
        "systemctl set-property weft-agent CPUQuota=1%") \
    X(CPU_HOT, "WEFT-CPU-003", NODE, WARNING, "cores are hot, and slowed down", \
        "The processor slows its cores down, because they are hot.", \
        "Look at the machine's fans and at its room.", \
        "Stop a fan.") \
    X(DISK_LOW, "WEFT-DISK-001", NODE, WARNING, "disk is nearly full", \
        "The file system that has Weft's state has less than a twentieth, and less than 1 GiB, " \
        "left.", \
        "Remove what is not needed there: df -h, du -xh.", \
        "Fill the disk that has /var/lib/weft, but for a little.") \
    X(DISK_FULL, "WEFT-DISK-002", NODE, CRITICAL, "disk is full", \
        "The file system that has Weft's state has no room, so what changes is not kept over a " \
        "restart.", \
        "Remove what is not needed there: df -h, df -i, du -xh.", \
        "Fill the disk that has /var/lib/weft.") \
    X(FABRIC_GONE, "WEFT-FABRIC-001", NODE, CRITICAL, "fabric device is gone", \
        "A verbs device that was there has vanished: its driver was unloaded, or it has failed.", \
        "dmesg says why; load its driver again, or take the machine out of the job.", \
        "Unload the driver of a verbs device.") \
    X(FABRIC_DOWN, "WEFT-FABRIC-002", NODE, CRITICAL, "fabric port is down", \
        "A port that was active is not any more: a job would fall back to TCP, or stop.", \
        "Look at the cable and at the switch's port; ibstat says the port's state.", \
        "Take the cable of a port out.") \
    X(FABRIC_ERRORS, "WEFT-FABRIC-003", NODE, WARNING, "fabric port has errors", \
        "The error counters of an active port grow. A fabric has no errors while it is well.", \
        "Change the cable or the transceiver; a job on this port is slower than others.", \
        "Bend the cable of a port.") \
    X(GPU_GONE, "WEFT-GPU-001", NODE, CRITICAL, "GPU is gone", \
        "The GPUs' driver does not reach a GPU any more that it had before: it has fallen off " \
        "the bus, or was taken away.", \
        "Take the machine out of its jobs and start it anew; if it comes again, have the GPU " \
        "looked at. dmesg says more.", \
        "Have NVML say of a GPU that it is lost.") \
    X(GPU_DRIVER_GONE, "WEFT-GPU-002", NODE, CRITICAL, "GPUs' driver is gone, or does not answer", \
        "NVIDIA's driver answered before, and does not now: it was unloaded, it cannot, or it " \
        "hangs.", \
        "nvidia-smi and dmesg say why; load the driver again, or start the machine anew.", \
        "Unload the module nvidia.") \
    X(GPU_DRIVER_CHANGED, "WEFT-GPU-003", NODE, WARNING, "GPUs' driver was changed", \
        "The driver has another version than before, or its library another one than what the " \
        "kernel has loaded.", \
        "Start the machine anew when its jobs are over, and have one version on all nodes of a " \
        "job.", \
        "Upgrade the packages of the driver, and do not start the machine anew.") \
    X(GPU_MEMORY, "WEFT-GPU-004", NODE, CRITICAL, "GPU memory is bad", \
        "A GPU has counted memory errors that ECC cannot correct since its driver was loaded: " \
        "programs are ended by them.", \
        "Take the machine out of its jobs, and nvidia-smi --gpu-reset; if it comes again, have " \
        "the GPU changed.", \
        "Have NVML count an uncorrected error.") \
    X(GPU_FAULT, "WEFT-GPU-005", NODE, CRITICAL, "GPU has reported a fault (Xid)", \
        "In the last hour the driver has reported a fault that is one of the GPU, its memory or " \
        "its links, by NVIDIA's number.", \
        "Take the machine out of its jobs, and start it anew; NVIDIA's list of Xid errors has " \
        "what to do for each number.", \
        "Have NVML report the Xid 74.") \
    X(GPU_FAULT_MILD, "WEFT-GPU-006", NODE, WARNING, "GPU has ended a program's work (Xid)", \
        "In the last hour the driver has reported a fault that is mostly a program's own, or " \
        "that the GPU has mended.", \
        "Look at the job's own output first. If different programs get it on this GPU alone, it " \
        "is the GPU.", \
        "Have a program on a GPU use memory that it does not have.") \
    X(GPU_FAR, "WEFT-GPU-007", NODE, NOTE, "GPU is far from the network card", \
        "What GPUs send to others goes over the link between the processors, since no card is at " \
        "their NUMA node.", \
        "Use the GPUs near the card first, or have a card at each NUMA node; nvidia-smi topo -m " \
        "shows them.", \
        "Have a GPU at another NUMA node than the network card.") \
    X(GPU_WAITS, "WEFT-GPU-008", NODE, WARNING, "GPUs wait for a full line", \
        "The GPUs that programs use work less than 80 % of the time, while a line of the machine " \
        "carries 90 % of its rate or more.", \
        "Let the job exchange less often (weft plan), or give it a faster line. NCCL's waiting " \
        "counts as work.", \
        "Fill the line of a node on which a job computes.") \
    X(HEALTH_FAILED, "WEFT-HEALTH-001", NODE, WARNING, "failed its health check", \
        "The health check of the machine has failed three times in a row or more.", \
        "On the node: weft health says what fails, and weft doctor what mends it.", \
        "Fill the disk that has /var/lib/weft, and run weft health --drain three times.") \
    X(NODE_DRAINED, "WEFT-HEALTH-002", NODE, WARNING, "drained", \
        "It has failed its health check, and gets no new work until three are passed in a row.", \
        "On the node: weft health says what fails, and weft doctor what mends it.", \
        "The same, with a share set by weft network set NAME --drain-share 50.") \
    X(PROBE_SILENT, "WEFT-PROBE-001", NODE, WARNING, "probe is silent", \
        "Its probe has stopped to report, while its machine is there. What it said is not " \
        "counted any more.", \
        "On the node: systemctl restart weft-probe, and read journalctl -u weft-probe.", \
        "Stop the probe alone: kill -STOP.") \
    X(AGENT_UNREACHED, "WEFT-NODE-005", NODE, CRITICAL, "no agent answers on this machine", \
        "weft doctor has asked the agent of the machine that it runs on, and got no answer.", \
        "systemctl start weft-agent, or without systemd weft agent --background; then weft " \
        "doctor again.", \
        "Stop the agent, and run weft doctor.") \
    X(LINE_CUT, "WEFT-LINE-001", NODE, CRITICAL, "this machine's line is cut", \
        "Neither the hub nor any peer answers, so it is this machine that is cut off, and " \
        "nobody else is at fault.", \
        "Look at this machine's own link, addresses and default route: ip link, ip route.", \
        "Cut the machine's line, and look at weft status on it.") \
    X(UDP_BLOCKED, "WEFT-UDP-001", NODE, WARNING, "UDP to the hub fails", \
        "Packets to the hub go in TLS, which is slower, since UDP does not get through.", \
        "Let UDP out to the hub's port, and the answers in.", \
        "Drop UDP between the node and the hub.") \
    X(UDP_ONE_WAY, "WEFT-UDP-002", NODE, WARNING, "UDP to the hub passes one way only", \
        "Packets to the hub go in TLS, which is slower, since UDP gets through in one " \
        "direction alone.", \
        "Let UDP pass in the direction that the sentence names.", \
        "Drop UDP from the hub to the node, and not from the node to the hub.") \
    X(KEEPALIVE_SLOW, "WEFT-NAT-001", NODE, WARNING, "keepalive does not hold the NAT", \
        "The NAT forgets a silent mapping sooner than the network has the node say hello, and " \
        "then nobody reaches it.", \
        "Set the keepalive of the network to auto: weft get Network NAME, keepalive, weft " \
        "apply.", \
        "Set the keepalive of a network to 0, with a node behind a NAT.") \
    X(CLOCK_OFF, "WEFT-CLOCK-001", NODE, WARNING, "clock differs from the hub's", \
        "More than 10 s lie between the two. Handshakes do not mind; jobs, logs and whoever " \
        "compares times do.", \
        "Have the clock set by a time server: timedatectl set-ntp true, or chrony.", \
        "Set the clock of a node an hour ahead.") \
    X(CLOCK_BACK, "WEFT-CLOCK-002", NODE, CRITICAL, "clock was set back", \
        "Peers take no handshake that is dated before one that they have seen, so they " \
        "refuse those of this node.", \
        "Have the clock set by a time server: timedatectl set-ntp true, or chrony.", \
        "Set the clock of a node with the kernel's WireGuard back by an hour, and start the " \
        "machine anew.") \
    X(NAME_LEFT_OUT, "WEFT-NAME-001", NODE, NOTE, "name means something else here", \
        "Something else answers to the name of a node on this machine, so it is left out of " \
        "the hosts file.", \
        "Use the qualified name, NODE.NETWORK.weft; or rename one of the two.", \
        "Have the resolver of a machine lead the name of a node elsewhere.") \
    X(NAMES_UNWRITTEN, "WEFT-NAME-002", NODE, WARNING, "names are not written to the hosts file", \
        "The hosts file cannot be written; it is tried again and again.", \
        "Mend what the sentence names; or weft join --no-hosts, and addresses.", \
        "Make /etc/hosts read-only.") \
    X(NAMES_UNANSWERED, "WEFT-NAME-003", NODE, NOTE, "names are not answered by DNS", \
        "This node's own name server does not listen, so containers do not get the names " \
        "from it.", \
        "Let the program that has port 53 listen on addresses of its own; or weft join " \
        "--no-dns.", \
        "Have another program listen on port 53 of all addresses.") \
    X(FOREIGN_PEERS, "WEFT-PEERS-001", NODE, WARNING, "somebody else has added peers", \
        "Peers that neither the hub nor the agent had added were removed from the interface in " \
        "the last ten minutes.", \
        "Find out who has added them; a WireGuard without an agent is made a member with " \
        "weft node add.", \
        "wg set weft0 peer KEY allowed-ips 10.42.9.9/32") \
    X(RATES_UNKEPT, "WEFT-RATE-001", NODE, WARNING, "rates are not kept", \
        "The network says how much this node may send, and the engine does not keep it so.", \
        "Use the userspace engine, or a kernel that has what the sentence names.", \
        "Give a node a rate, and an engine of an older version, which keeps none.") \
    X(OFFLOAD_OFF, "WEFT-OFFLOAD-001", NODE, NOTE, "an offload is off", \
        "Packets are moved one by one that could be moved together, so this node is slower " \
        "than it could be.", \
        "It is the kernel's, or a driver's that is broken; use a newer kernel.", \
        "weft wg --no-offload udp-gso, in place of the engine that the agent starts.") \
    X(CLUSTER_UNHEARD, "WEFT-KUBE-001", NODE, WARNING, "cluster's API does not answer", \
        "Known peers stay, and no change of the network is heard of until it answers.", \
        "Look at the cluster's API server, and at the agent's account in it.", \
        "Stop the API server of the cluster that says who is in the network.") \
    X(EDGES_UNWRITTEN, "WEFT-KUBE-002", NODE, WARNING, "parts of edges are not written", \
        "The agent writes its own parts of MeshEdges, and the API server does not take them; the " \
        "hub writes them again once they are old.", \
        "The sentence holds the server's words: 403 is the account's Role or the policy " \
        "(deploy/kubernetes/edge-policy.yaml), 409 somebody else who owns the fields.", \
        "Take the Role of the agent's account away.") \
    X(SUBNET_UNREADY, "WEFT-ROUTE-001", NODE, WARNING, "subnet behind this node is not reached", \
        "This node was told to be the way to a subnet, and is not yet.", \
        "The sentence holds what is missing.", \
        "weft join --route 10.9.0.0/24 with a token that does not admit it.") \
    X(STATE_UNREADABLE, "WEFT-STATE-001", NODE, CRITICAL, "state cannot be read", \
        "The folder that holds the node's key and what it knows cannot be read, so no agent " \
        "can run.", \
        "The sentence names the file; weft join makes the state anew.", \
        "Put a letter before all others in node.json, and stop the agent.") \
    X(STATE_DISK_FULL, "WEFT-STATE-002", NODE, WARNING, "disk of the state is full", \
        "Less than 16 MiB are free where the node keeps what it knows, or no file can be " \
        "made there.", \
        "Make space on that file system.", \
        "Fill the file system that holds the state.") \
    X(INTERFACE_AWAY, "WEFT-LINK-001", NODE, CRITICAL, "interface is not there", \
        "No interface of that name exists, or it is down, so no packet of the overlay " \
        "leaves.", \
        "Start the agent, which makes it: systemctl start weft-agent.", \
        "ip link delete weft0, with the agent stopped.") \
    X(ENGINE_SILENT, "WEFT-ENGINE-001", NODE, CRITICAL, "engine does not answer", \
        "The interface is there, and no WireGuard with this node's key answers for it.", \
        "Start the agent, which begins the engine anew: systemctl restart weft-agent.", \
        "Kill weft-wg and the agent, and make another interface of that name: ip link add weft0 " \
        "type bridge.") \
    X(TLS_BLOCKED, "WEFT-TLS-001", NODE, NOTE, "TLS to the hub fails", \
        "UDP reaches the hub, and TCP to its API does not: were UDP to fail, nothing would be " \
        "left.", \
        "Let TCP out to the port of the hub's API.", \
        "Drop TCP between the node and the hub, and stop the agent.") \
    /* A pair of nodes */ \
    X(PAIR_APPLY_FAILED, "WEFT-APPLY-002", PAIR, CRITICAL, "edge cannot be applied", \
        "An agent cannot make this peer what the network says.", \
        "The sentence holds the agent's own words; on that node: weft status.", \
        "Give an edge a rate, and one of its nodes an engine of an older version, which keeps " \
        "none.") \
    X(PAIR_KEY_REFUSED, "WEFT-KEY-001", PAIR, CRITICAL, "another key is pinned", \
        "The MeshEdge pins a public key that is not the node's, so each end removes the other.", \
        "If the node's key is right: weft edge set A B --key NAME=KEY, or remove the pin.", \
        "Pin any other key.") \
    X(PAIR_UNREACHED, "WEFT-PATH-001", PAIR, CRITICAL, "tunnel is dead", \
        "A probe gets no answer through the tunnel, while both machines are there.", \
        "weft paths NAME on either node says what was tried.", \
        "Drop what comes from a node out of the tunnel: nft, hook input, ip saddr.") \
    X(PAIR_NO_PATH, "WEFT-PATH-002", PAIR, CRITICAL, "no path", \
        "An agent has no way to the other end, not even through a hub.", \
        "weft paths NAME on that node says what was tried.", \
        "Set the edge of two nodes to direct, and drop UDP between them.") \
    X(PAIR_FELL_BACK, "WEFT-PATH-003", PAIR, WARNING, "relay instead of direct", \
        "The pair had a direct path and has lost it, and no one has asked for a relay.", \
        "Let UDP pass between the two again; weft paths NAME says what was tried.", \
        "Drop UDP between two nodes that were direct.") \
    X(PAIR_NOT_DIRECT, "WEFT-PATH-004", PAIR, WARNING, "no direct path, though one is wanted", \
        "The topology is mesh, or the edge is set to direct, and for half a minute there was " \
        "no direct path.", \
        "weft paths NAME on either node says what was tried.", \
        "Set the topology to mesh, and drop UDP between two nodes of which one has yet to join.") \
    X(PEER_SILENT, "WEFT-PEER-001", PAIR, CRITICAL, "peer does not answer", \
        "What a live WireGuard answers was sent to it, data or handshakes, and nothing has " \
        "come back.", \
        "Is that machine up, and on the network? If so, weft status on it.", \
        "Cut the peer's line, and send it something.") \
    X(HANDSHAKE_LATE, "WEFT-HANDSHAKE-001", PAIR, WARNING, "handshake is late", \
        "Packets flow in a session older than 135 s. WireGuard renews one after 120 s, and it " \
        "ends at 180 s.", \
        "Look for what lets data pass and not handshakes: a packet filter, or a peer that is " \
        "overloaded.", \
        "Drop datagrams of 148 and 92 bytes between two nodes that send to each other.") \
    X(HANDSHAKE_STALE, "WEFT-HANDSHAKE-002", PAIR, CRITICAL, "no session any more", \
        "The last handshake is older than 180 s, and what was sent since then had no answer.", \
        "Is that machine up, and on the network? If so, weft status on it.", \
        "Drop datagrams of 148 and 92 bytes between two nodes that send to each other, for four " \
        "minutes.") \
    X(PATH_SHORT, "WEFT-MTU-001", PAIR, NOTE, "path carries short packets only", \
        "The direct path carries less than 1280 bytes inside the tunnel, the least that IPv6 " \
        "needs.", \
        "Find the link on the way that has a small MTU, or a tunnel in a tunnel.", \
        "Set the MTU of a router between two nodes to 1300.") \
    X(WAY_DEAF, "WEFT-ONEWAY-001", WAY, CRITICAL, "one way is cut", \
        "What the first node sends does not arrive at the second, while the other way is well.", \
        "Let UDP in at the second node, or out at the first.", \
        "Drop the packets of one direction.") \
    X(WAY_LOSS, "WEFT-LOSS-001", WAY, WARNING, "packets are lost", \
        "0.1 % or more of what the first node sends does not arrive at the second, by the " \
        "counters in WireGuard's messages: all connections through it are slower.", \
        "Look at the line in that direction: a full queue, a bad cable, a radio link. " \
        "weft get edges has both directions.", \
        "Lose 0.2 % of the packets of one direction while TCP uses it.") \
    X(WAY_LOSS_CRITICAL, "WEFT-LOSS-002", WAY, CRITICAL, "many packets are lost", \
        "1 % or more of what the first node sends does not arrive at the second, by the " \
        "counters in WireGuard's messages: above 5 ms of round trip little is left of the line.", \
        "Look at the line in that direction: a full queue, a bad cable, a radio link. " \
        "weft get edges has both directions.", \
        "Lose 2 % of the packets of one direction while TCP uses it.") \
    /* What weft preflight finds before a job begins */ \
    X(PAIR_HOLE, "WEFT-MTU-002", PAIR, CRITICAL, "large packets are lost", \
        "Packets of the size that the kernel sends do not arrive, while small ones do: pings and " \
        "SSH work, and a transfer hangs.", \
        "Set the network's mtu to what passes, or find what drops larger packets on the way.", \
        "Drop packets above 1300 bytes between two nodes after the path was measured.") \
    X(PAIR_NO_TCP, "WEFT-TCP-002", PAIR, CRITICAL, "TCP is not carried", \
        "Pings are answered, and a TCP connection does not come about or carries nothing.", \
        "Look for a packet filter on the two that treats TCP differently: nft list ruleset.", \
        "Drop TCP on the interface of a node.") \
    X(PAIR_SLOW, "WEFT-RATE-002", PAIR, WARNING, "far slower than the others", \
        "A pair moves less than an eighth of what the median pair moves, or less than was " \
        "expected. A job in step waits for it.", \
        "Look at the line of the two, or leave one of them out of the job.", \
        "Limit the line of one node to a tenth of the others', and run weft preflight.") \
    X(PAIR_BUFFERS, "WEFT-TCP-003", PAIR, WARNING, "TCP's buffers are too small", \
        "One connection fills what the kernels' buffers let it keep in flight, and several carry " \
        "more.", \
        "On both: weft tune --apply.", \
        "Set net.ipv4.tcp_rmem to small values on a line of 50 ms.") \
    X(CLOCKS_DIFFER, "WEFT-CLOCK-003", NODE, WARNING, "clock differs from the other nodes'", \
        "More than half a second; from 5 s on torchrun's rendezvous, which compares times of " \
        "heartbeats, does not work.", \
        "Have the clock set by a time server: timedatectl set-ntp true, or chrony.", \
        "Set the clock of a node a minute ahead, and run weft preflight.") \
    X(READY_NCCL, "WEFT-READY-001", NODE, CRITICAL, "NCCL would take another interface", \
        "NCCL would announce an address that others do not reach, or several.", \
        "Start the job by weft run, or set NCCL_SOCKET_IFNAME to =weft0.", \
        "Set NCCL_SOCKET_IFNAME=lo, and run weft preflight.") \
    X(READY_GLOO, "WEFT-READY-002", NODE, CRITICAL, "Gloo would take another interface", \
        "Gloo would announce an address that others do not reach.", \
        "Start the job by weft run, or set GLOO_SOCKET_IFNAME to weft0.", \
        "Set GLOO_SOCKET_IFNAME=lo, and run weft preflight.") \
    X(READY_NAMES, "WEFT-READY-003", NODE, WARNING, "names lead elsewhere", \
        "The names of other members do not lead to them on this machine.", \
        "Remove what else answers to the name; weft status says what is in the hosts file.", \
        "Put another address of a member into /etc/hosts.") \
    X(READY_HOST_NAME, "WEFT-READY-004", NODE, CRITICAL, "host name does not lead to the node", \
        "Rank 0 announces its host name with torch 1, and on another member that leads " \
        "elsewhere, or nowhere.", \
        "Start the job by weft run as root, or set the host name to the node's name.", \
        "Give a node a host name that nobody knows, and run weft preflight --plain.") \
    X(READY_FILES, "WEFT-READY-005", NODE, CRITICAL, "too few files may be open", \
        "The hard limit on open files is less than a job of this size takes.", \
        "Raise it: ulimit -Hn, or LimitNOFILE= of the unit.", \
        "Run weft preflight under ulimit -n 256.") \
    X(READY_MEMLOCK, "WEFT-READY-006", NODE, WARNING, "too little memory may be locked", \
        "A fabric device needs memory that is locked, and a limit is set.", \
        "ulimit -l unlimited, or LimitMEMLOCK=infinity of the unit.", \
        "Run weft preflight under ulimit -l 64 on a machine with a fabric device.") \
    X(READY_VERSIONS, "WEFT-READY-007", NODE, WARNING, "versions differ", \
        "NCCL, torch, Python or Weft differ from those of the other members.", \
        "Install the same everywhere; NCCL refuses another version of itself.", \
        "Have another torch on one node.") \
    X(READY_ABSENT, "WEFT-READY-008", NODE, CRITICAL, "agent cannot be asked", \
        "The agent of a member does not answer, so its pairs are not measured.", \
        "On that node: weft status.", \
        "Stop the agent of a node, and run weft preflight.") \
    /* A hub */ \
    X(HUB_STORE_REFUSES, "WEFT-HUB-001", HUB, CRITICAL, "store takes no writes", \
        "What is to be changed is refused until the store takes writes again; packets go on.", \
        "Make room on the hub's disk, or look at the store.", \
        "Fill the disk of the hub.") \
    X(HUB_STORE_BEHIND, "WEFT-HUB-002", HUB, CRITICAL, "store is not heard", \
        "The hub does not know what another hub may have changed, and tells its nodes what was " \
        "so before.", \
        "Look at the store, and at the line between it and the hub.", \
        "Cut the line between a hub and its store.") \
    X(HUB_UNREACHED, "WEFT-HUB-003", HUB, CRITICAL, "hub is not reached", \
        "The node does not hear its hub. Direct paths go on; what the hub relays does not, nor " \
        "is any change heard of.", \
        "On the hub: systemctl status weft-hub. On the way: UDP to its port, or TCP to its " \
        "API.", \
        "Stop the hub.") \
    X(EVENTS_REFUSED, "WEFT-EVENT-001", HUB, CRITICAL, "hub's events are refused", \
        "What the hub says of the network cannot be so, and this node goes on with what it " \
        "knew before.", \
        "The administrator of the hub has to look into it.", \
        "Give the network of a hub other blocks, behind its back.") \
    X(HUB_LINE_NEAR, "WEFT-HUB-004", HUB, NOTE, "hub's line is nearly full", \
        "The hub has relayed more than three quarters of what its line can carry for half a " \
        "minute.", \
        "Let the pairs that are named reach each other directly (weft paths NAME), or add a " \
        "relay near them: weft join --relay.", \
        "Start the hub with --line 10Mbit, and send 8 Mbit/s between two nodes that it relays.") \
    X(HUB_LINE_FULL, "WEFT-HUB-005", HUB, WARNING, "hub's line is full", \
        "The hub has relayed more than nine tenths of what its line can carry for half a minute. " \
        "It takes no new pairs that have another relay, and asks the heaviest ones to go another " \
        "way, until it has been below six tenths for three minutes.", \
        "Let the pairs that are named reach each other directly (weft paths NAME), or add a " \
        "relay near them: weft join --relay.", \
        "Start the hub with --line 10Mbit, and send all that goes between two nodes that it " \
        "relays.") \
    X(RELAY_LINE_NEAR, "WEFT-RELAY-001", NODE, NOTE, "relay's line is nearly full", \
        "A node has relayed more than three quarters of what its line can carry for half a " \
        "minute.", \
        "Let the pairs that are named reach each other directly (weft paths NAME), or add " \
        "another relay near them: weft join --relay.", \
        "Give a relay a rate (weft node set NAME --rate 10Mbit), and send 8 Mbit/s between two " \
        "nodes that it relays.") \
    X(RELAY_LINE_FULL, "WEFT-RELAY-002", NODE, WARNING, "relay's line is full", \
        "A node has relayed more than nine tenths of what its line can carry for half a minute. " \
        "It takes no new pairs that have another relay, and asks the heaviest ones to go another " \
        "way, until it has been below six tenths for three minutes.", \
        "Let the pairs that are named reach each other directly (weft paths NAME), or add " \
        "another relay near them: weft join --relay.", \
        "Give a relay a rate (weft node set NAME --rate 10Mbit), and send all that goes between " \
        "two nodes that it relays.") \
    X(HUB_AWAY, "WEFT-HUBS-001", NODE, WARNING, "another hub is away", \
        "The network has several hubs, and one that does not serve this node at the moment " \
        "is not reached from it.", \
        "On that hub: systemctl status weft-hub.", \
        "Stop one of several hubs.") \
    /* A job, and its part on a node. In the order of causes: who waits because of another is not \
     * named (health/job_health.h). */ \
    X(RANK_GONE, "WEFT-RANK-005", RANK, CRITICAL, "is gone", \
        "Nothing is heard of the job on that node, and its command has not ended: its machine is " \
        "down or cut off, or somebody has killed weft run.", \
        "Start the machine, and the same command there; weft nodes says if the node is heard.", \
        "Kill weft run on one node of a running job: kill -9.") \
    X(RANK_STOPPED, "WEFT-RANK-004", RANK, CRITICAL, "is stopped", \
        "A process of the job there was stopped by a signal or a debugger, and the others wait.", \
        "On that node: kill -CONT the process, or let the debugger go on.", \
        "Stop a process of the job on one node: kill -STOP.") \
    X(NCCL_POLL, "WEFT-NCCL-001", RANK, CRITICAL, "NCCL cannot ask its fabric device", \
        "NCCL's log says that ibv_poll_cq fails: the verbs device is gone, or its driver was " \
        "loaded anew under the job.", \
        "On that node: weft status and dmesg say what became of the device; start the job anew.", \
        "Unload the driver of a verbs device under a job.") \
    X(NCCL_COMPLETION, "WEFT-NCCL-002", RANK, CRITICAL, "a transfer of NCCL has failed", \
        "NCCL's log has a completion with an error: what was sent over the fabric was not " \
        "acknowledged, or was refused.", \
        "Look at the fabric between that node and the peer that the sentence names, and if the " \
        "peer's part is still there.", \
        "Take the cable of a fabric port out under a job.") \
    X(NCCL_UNREACHED, "WEFT-NCCL-003", RANK, CRITICAL, "NCCL does not reach a peer", \
        "NCCL's log says that a connection to another rank is not made, after all its attempts.", \
        "weft paths and weft preflight on that node say if the address is one of the overlay, " \
        "and if it is reached.", \
        "Have NCCL use an interface that other nodes do not reach.") \
    X(NCCL_CLOSED, "WEFT-NCCL-004", RANK, CRITICAL, "a peer has closed NCCL's connection", \
        "NCCL's log says that the other end has closed a connection, or has reset it: mostly its " \
        "process has ended there.", \
        "Look at the output of the rank that the sentence names: it was the first to end.", \
        "Kill one process of a job whose NCCL uses sockets.") \
    X(NCCL_TIMEOUT, "WEFT-NCCL-005", RANK, CRITICAL, "NCCL has timed out", \
        "NCCL's log says that a transfer has timed out, or that a collective operation took " \
        "longer than it may.", \
        "Look for the rank that is behind: weft jobs, and py-spy dump --pid PID on each node.", \
        "Drop the packets between two nodes of a job until TCP gives up.") \
    X(NCCL_NETWORK, "WEFT-NCCL-006", RANK, WARNING, "NCCL uses another network than was wanted", \
        "NCCL's log says that it took another network, provider or interface than the fabric of " \
        "the node asks for.", \
        "The sentence has the log's own reason: mostly a plugin that is not found, or a variable " \
        "that forbids it.", \
        "Set NCCL_IB_DISABLE=1 on a machine with InfiniBand.") \
    X(RANK_LINE_SLOW, "WEFT-RANK-001", RANK, WARNING, "its line is slow", \
        "What the job sends on that line, in the direction that is named, goes at a third of " \
        "what it went at before, or less, and the job waits for it.", \
        "weft paths NAME on that node says how the packets go; look at what else fills its line.", \
        "Limit what one node of a running job sends to 200 KB/s.") \
    X(RANK_UNREAD, "WEFT-RANK-002", RANK, WARNING, "does not read", \
        "What others have sent to the job there has arrived, and its processes do not read it.", \
        "See what the job's processes do there: py-spy dump --pid PID, or cat /proc/PID/stack.", \
        "Have one rank sleep while the others send to it.") \
    X(RANK_KERNEL, "WEFT-RANK-006", RANK, WARNING, "is held in the kernel", \
        "A process of the job there takes a core in the kernel, while the others wait for it.", \
        "On that node: perf top, and dmesg; memory that is short, or a driver, does so.", \
        "Have one rank make system calls without end while the others wait for it.") \
    X(RANK_SLOW, "WEFT-RANK-003", RANK, WARNING, "computes while the others wait", \
        "The job is slower than before, and of its nodes this one alone has work to do.", \
        "Look at what else runs on that machine, at its disk, and at how the data are divided.", \
        "Have one rank of a running job compute, or wait for a disk, while the others wait.") \
    X(JOB_STUCK, "WEFT-JOB-001", JOB, CRITICAL, "is stuck", \
        "Nothing moves between its nodes for longer than it ever paused, none of them is gone or " \
        "stopped, and no line is slow.", \
        "Look at what each rank waits for: py-spy dump --pid PID on each node.", \
        "Have each rank of a running job wait for what another one never sends.") \
    /* What is spent */ \
    X(BUDGET_NEAR, "WEFT-COST-001", BUDGET, NOTE, "budget of the day is nearly spent", \
        "Four fifths of the day's budget are spent.", \
        "Raise the budget, or let the job meet less often: weft plan.", \
        "Set a budget that is nearly reached.") \
    X(BUDGET_SPENT, "WEFT-COST-002", BUDGET, WARNING, "budget of the day is spent", \
        "All of the day's budget is spent. Nothing is stopped for it.", \
        "Raise the budget, or let the job meet less often: weft plan.", \
        "Set a budget that is passed.")

enum finding_code {
#define X(id, ...) FINDING_##id,
    FINDING_CODES(X)
#undef X
    FINDING_CODE_N,
};
/* clang-format on */

/** A row of the table. */
struct finding_kind {
    const char *code; /* "WEFT-NODE-001" */
    enum finding_subject subject;
    enum finding_severity severity;
    const char *title;   /* a clause of a few words */
    const char *means;   /* a sentence */
    const char *fix;     /* a sentence */
    const char *provoke; /* a sentence */
};

/** finding_kinds - by enum finding_code. */
extern const struct finding_kind finding_kinds[];

/** Longest code. */
#define FINDING_CODE_TEXT_MAX 31
/** The subject of what is found of a hub. */
#define FINDING_HUB "hub"
/** Longest subject: two names and "--", or a job's and a node's; with the zero. */
#define FINDING_SUBJECT_MAX 136
/** Longest sentence and longest fix, with the zero. */
#define FINDING_TEXT_MAX 480
#define FINDING_FIX_MAX  320
/** Most findings that a set keeps; more are counted. */
#define FINDINGS_MAX 10000

/** What is found now. On the heap. */
struct finding {
    enum finding_code code;
    int64_t since; /* s since 1970 */
    bool is_old;   /* not found again since the last findings_look() */
    bool is_new;   /* found since then for the first time */
    char subject[FINDING_SUBJECT_MAX];
    char text[FINDING_TEXT_MAX]; /* a sentence */
    char fix[FINDING_FIX_MAX];   /* a sentence */
};

/** All that is found now. All zero: nothing. */
struct findings {
    struct finding **items; /* owns, also what they point to; sorted by subject, then code */
    size_t n;
    size_t cap;
    uint64_t n_left_out; /* had no room, since the start */
};

/** finding_name_pair() - the subject of a pair of nodes, whichever is named first. Returns @buf. */
const char *finding_name_pair(char buf[static FINDING_SUBJECT_MAX], const char *a, const char *b);

/** findings_deinit() - forget all. */
void findings_deinit(struct findings *f);

/** findings_find() - lends that one; NULL: it is not found now. */
const struct finding *findings_find(
    const struct findings *f, enum finding_code code, const char *subject);

/** findings_has() - is anything at least that grave found about @subject? */
bool findings_has(const struct findings *f, const char *subject, enum finding_severity least);

/** findings_are_alike() - do both have the same codes about the same subjects? */
bool findings_are_alike(const struct findings *a, const struct findings *b);

/** findings_look() - @subject, NULL: all, is looked at anew: what is not found again ends at
 * findings_done(). */
void findings_look(struct findings *f, const char *subject);

/** findings_look_as() - the same, of what is found about a @subject of that kind: a job may be
 * called like a node, and somebody else looks at it. */
void findings_look_as(struct findings *f, enum finding_subject about, const char *subject);

/**
 * findings_add() - it is found, by the clock @at, s since 1970
 * @subject:	as its code's kind of subject is written
 * @fmt:	the sentence
 *
 * Return: lends it, so that a better fix can be put into it; NULL: no room or no memory, and
 * @n_left_out counts it.
 */
struct finding *findings_add(struct findings *f, enum finding_code code, const char *subject,
    int64_t at, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/** finding_set_fix() - a better fix than the code's own; @f may be NULL. */
void finding_set_fix(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** What has changed with a finding. */
typedef void (*finding_changed_fn)(void *arg, const struct finding *f, bool is_over);

/** findings_done() - @subject, NULL: all, was looked at: tell @changed (NULL: nobody) of what has
 * begun and of what is over, which is forgotten. @changed must not change @f, and @subject is not a
 * finding's.
 */
void findings_done(struct findings *f, const char *subject, finding_changed_fn changed, void *arg);

/**
 * findings_take() - of some kinds of subject, what is found is what somebody else has found
 * @from:	theirs; NULL: nothing
 * @kinds:	a bit each: 1 << FINDING_OF_JOB. All of @f that is about such a subject is theirs
 * @changed:	as of findings_done()
 */
void findings_take(struct findings *f, const struct findings *from, unsigned kinds,
    finding_changed_fn changed, void *arg);

/** finding_encode() - as JSON, by the clock @at; a new reference, NULL: no memory. */
json_t *finding_encode(const struct finding *f, int64_t at);

/** findings_sorted() - lends all @f->n of them, the gravest first, then the oldest; free() the
 * array. NULL: no memory. */
const struct finding **findings_sorted(const struct findings *f);

/** findings_encode() - {"findings": [...], "leftOut": n}, the gravest first, then the oldest; a new
 * reference, NULL: no memory. */
json_t *findings_encode(const struct findings *f, int64_t at);

/** findings_worst() - the gravest severity of all, as an exit status: 0 none or notes, 1 a warning,
 * 2 critical. */
int findings_worst(const struct findings *f);
