/*
 * finding_jobs.h - rows of the table of findings (finding.h): before a job begins, while it runs,
 * and what it costs.
 */
#pragma once

/* clang-format off */
#define FINDINGS_OF_JOBS(X) \
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
    X(NCCL_BEHIND, "WEFT-NCCL-007", RANK, CRITICAL, "has not started what the others wait for", \
        "Nothing moves between the job's nodes, and by NCCL's RAS a rank there has started fewer " \
        "operations of a kind than all others of its communicator.", \
        "See what the process that the sentence names does there: py-spy dump --pid PID.", \
        "Have one rank of a running job leave out a collective operation, or wait before it.") \
    X(NCCL_SILENT, "WEFT-NCCL-008", RANK, CRITICAL, "does not answer NCCL", \
        "Nothing moves between the job's nodes, and by NCCL's RAS a rank there does not answer: " \
        "its process has ended, hangs, or is not reached by the network that NCCL uses.", \
        "On that node: is the process that the sentence names there? Look at its output.", \
        "Kill one process of a job whose NCCL has the RAS.") \
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
    X(RANK_DIFFERS, "WEFT-RANK-008", RANK, CRITICAL, \
        "is in another collective operation than the others", \
        "Nothing moves between the job's nodes, and by PyTorch's flight recorder a rank there " \
        "waits in an operation of another kind, size or type than most ranks of its process " \
        "group do under the same number: none of them can end.", \
        "Compare what the ranks do there in the script: a branch that one of them takes alone, " \
        "or a tensor of another size, such as of a last batch.", \
        "Have one rank of a job gather where the others reduce.") \
    X(RANK_BEHIND, "WEFT-RANK-007", RANK, CRITICAL, "has not entered what the others wait in", \
        "Nothing moves between the job's nodes, and by PyTorch's flight recorder a rank there " \
        "has not entered the collective operation in which the others of its process group wait.", \
        "See what its process does there: py-spy dump --pid PID.", \
        "Have one rank of a running job leave out a collective operation, or wait before it.") \
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
/* clang-format on */
