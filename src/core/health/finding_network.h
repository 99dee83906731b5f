/*
 * finding_network.h - rows of the table of findings (finding.h): pairs of nodes, and hubs.
 */
#pragma once

/* clang-format off */
#define FINDINGS_OF_NETWORK(X) \
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
    X(PAIR_RTT, "WEFT-RTT-001", PAIR, WARNING, "round trips take much longer than usual", \
        "For two minutes each round trip on the direct path has taken twice as long as was usual " \
        "in the last hour, and 5 ms longer, while neither end moved much: packets go another way " \
        "now, or a queue on it is full of others' packets.", \
        "Look at the way of the packets, and at what else fills it: mtr, or traceroute -n, to " \
        "the endpoint in weft paths NAME.", \
        "Delay the packets between two nodes by 40 ms after some minutes.") \
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
    /* Who a peer is, since it was first seen */ \
    X(TRUST_REFUSED, "WEFT-TRUST-001", PAIR, CRITICAL, \
        "hub says another key, and the peer answers", \
        "The hub says that a known peer has another key or address, which its key has not " \
        "signed, while that key still answers. The node goes on with what it knows: the hub may " \
        "have been broken into.", \
        "Look into the hub. If the peer has really got another key, and it is another machine " \
        "that answers: weft trust NAME.", \
        "Replace the public key of a node in the hub's store, while it sends.") \
    X(TRUST_WAITS, "WEFT-TRUST-002", PAIR, WARNING, "another key of a peer waits", \
        "The hub says that a known peer has another key or address, which its key has not " \
        "signed. It is believed once that key has been silent for ten minutes; with " \
        "trustPolicy: ask, once somebody says so on this node.", \
        "Compare the key with weft status on that machine, and then: weft trust NAME.", \
        "Let a machine join anew under its name while the others have heard it a minute ago.") \
    X(TRUST_CHANGED, "WEFT-TRUST-003", PAIR, WARNING, "peer has another key", \
        "In the last 24 h another key or address of a known peer was believed, which the key " \
        "before had not signed, because that one was silent.", \
        "Compare the key with weft status on that machine; if it is right: weft trust NAME.", \
        "Let a machine join anew under its name, ten minutes after it was last heard.") \
    X(TRUST_HUB, "WEFT-TRUST-004", PAIR, NOTE, "another hub is believed", \
        "In the last 24 h the network's hubs have named another hub, which may say from now on " \
        "who is in the network.", \
        "If it is meant to be one: weft trust NAME. Else look into the hubs.", \
        "Start another hub on the network's store.") \
    X(WAY_LOSS_WORSE, "WEFT-LOSS-003", WAY, WARNING, "much more is lost than in the last hour", \
        "Three times as much of what the first node sends is lost as was usual in the last hour, " \
        "when WEFT-LOSS-001 or WEFT-LOSS-002 was found already, which do not tell it.", \
        "See since when, by weft get edges A B --history, and what has changed on that line: a " \
        "queue may be full of others' packets.", \
        "Lose 0.2 % of the packets of one direction for some minutes while TCP uses it, and then " \
        "0.9 %.") \
    X(WAY_SLOW, "WEFT-RATE-003", WAY, WARNING, "carries much less than in the last hour", \
        "What a job sends from the first node to the second goes at a third of what was usual in " \
        "the last hour while there was something to send, or less, and the job waits for it.", \
        "weft paths on the first node says how the packets go; look at what else fills the line.", \
        "Limit what one node of a running job sends to 200 KB/s.") \
    /* A hub */ \
    X(HUB_RULES_UNENFORCED, "WEFT-RULE-002", HUB, CRITICAL, "rules are not enforced on the hub", \
        "The network has rules, and neither the packet filter of the hub's machine nor the hub " \
        "itself enforces them: members reach all of its ports, unless their own machines refuse.", \
        "Have a kernel with nf_tables; the sentence holds the words of both.", \
        "Use up the memory of a hub where nf_tables is missing, and change a rule.") \
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
        "Stop one of several hubs.")
/* clang-format on */
