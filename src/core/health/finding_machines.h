/*
 * finding_machines.h - rows of the table of findings (finding.h): a machine, its programs, and
 * what it does to packets and programs itself.
 */
#pragma once

/* clang-format off */
#define FINDINGS_OF_MACHINES(X) \
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
    X(NODE_APART, "WEFT-NODE-006", NODE, CRITICAL, "hears nothing of the hub", \
        "The hub and the node hear nothing of each other, by UDP or TLS, while another node " \
        "reaches it: its machine is there, and its agent may be as well.", \
        "Look at what is between the two: on the node weft status says what is in the way to " \
        "the hub.", \
        "Drop all packets between a node and the hub, while other nodes reach it.") \
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
    X(RULES_UNENFORCED, "WEFT-RULE-001", NODE, CRITICAL, "rules are not enforced here", \
        "The network has rules, and neither this machine's packet filter nor the engine enforces " \
        "them: who may not reach it does, unless the sender's own machine refuses.", \
        "Have a kernel with nf_tables, or the userspace engine of this version (weft join " \
        "--engine userspace, weft agent --renew-engine); the sentence holds both words.", \
        "Start an agent with the kernel's WireGuard where nf_tables is missing, in a network " \
        "that has a rule.") \
    X(OFFLOAD_OFF, "WEFT-OFFLOAD-001", NODE, NOTE, "an offload is off", \
        "Packets are moved one by one that could be moved together, so this node is slower " \
        "than it could be.", \
        "It is the kernel's, or a driver's that is broken; use a newer kernel.", \
        "weft wg --no-offload udp-gso, in place of the engine that the agent starts.") \
    X(ARRIVE_APART, "WEFT-OFFLOAD-002", NODE, NOTE, "datagrams arrive one by one", \
        "Datagrams of one flow come so fast that the kernel could hand them on merged, and they " \
        "arrive one by one, so to receive them takes more of a core. The device that they come " \
        "by has rx-udp-gro-forwarding off, and on some kernels nothing is merged without it.", \
        "weft tune shows it, weft tune --apply sets it, and then weft tune says if it helps.", \
        "Join two network namespaces by a veth, ethtool -K DEV tx-udp-segmentation off at one " \
        "end and gro on at the other one, and send from the first through the tunnel.") \
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
        "Drop TCP between the node and the hub, and stop the agent.")
/* clang-format on */
