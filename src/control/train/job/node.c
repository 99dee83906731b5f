/* node.c - see node.h. */
#include "train/job/node.h"

#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_ask.h"
#include "base/err.h"
#include "base/text.h"
#include "fabric/fabric.h"
#include "mesh/object/fields.h"
#include "net/address/sockaddr.h"
#include "os/file.h"
#include "train/islands/islands.h"

#define ASK_TIMEOUT_MS 5000

/* Copies a text field of the agent's answer. False when it is missing, empty or too long. */
static bool take_text(const json_t *obj, const char *field, char *buf, size_t cap)
{
    const char *text = json_string_value(json_object_get(obj, field));

    return text && text[0] != '\0' && snprintf(buf, cap, "%s", text) < (int)cap;
}

unsigned train_node_locals(const char *interface, struct ip_addr *ret, unsigned cap)
{
    struct ifaddrs *all = NULL;
    struct endpoint at;
    unsigned n = 0;

    if (getifaddrs(&all) < 0)
        return 0;
    for (const struct ifaddrs *i = all; i && n < cap; i = i->ifa_next)
        if (i->ifa_addr && strcmp(i->ifa_name, interface) == 0 &&
            sockaddr_to_endpoint((const union sockaddr_inet *)i->ifa_addr, &at))
            ret[n++] = at.addr;
    freeifaddrs(all);
    return n;
}

/* Finds the farthest node outside this node's island, which is that of the first node. */
static void find_far(struct train_node *n, const struct islands *islands)
{
    for (size_t i = 0; i < islands->n_pairs; i++) {
        const struct islands_pair *p = &islands->pairs[i];
        size_t own = islands->of[p->a];

        if (p->a != 0 || p->rtt_ms <= n->far_rtt_ms ||
            (own != SIZE_MAX && own == islands->of[p->b]))
            continue;
        n->far_rtt_ms = p->rtt_ms;
        (void)snprintf(n->far, sizeof(n->far), "%s", islands->nodes[p->b].name);
    }
}

/*
 * Is every other node in this node's island? An island of a plain network counts only when a label
 * says so: it has nothing that the overlay has not, but for encryption. One that measurements
 * contradict does not count.
 */
static int compare_islands(struct train_node *n, const json_t *status)
{
    _cleanup_(islands_deinit) struct islands islands = ISLANDS_NULL;
    const struct island *own = NULL;
    int r = islands_find(&islands, status, NULL);

    if (r < 0)
        return r;
    if (islands.of[0] != SIZE_MAX)
        own = &islands.items[islands.of[0]];
    if (own && !own->is_declared &&
        (own->state == ISLANDS_CONTRADICTED || !fabric_kind_is_fast(fabric_kind_parse(own->kind))))
        own = NULL;
    for (size_t i = 1; i < islands.n_nodes; i++)
        n->n_others += !own || islands.of[i] != islands.of[0];
    find_far(n, &islands);
    n->is_one_island = own && n->n_others == 0;
    /* A node that is alone in its network is in the island that its label names. */
    if (islands.n_nodes == 1 && islands.nodes[0].label[0] != '\0')
        n->is_one_island = true;
    return 0;
}

static bool take_status(struct train_node *n, const json_t *status)
{
    const json_t *self = json_object_get(status, "self");
    const json_t *hub = json_object_get(status, "hub");
    const json_t *port = json_object_get(hub, "apiPort");
    char address[IP_ADDR_TEXT_MAX];

    if (!take_text(self, "name", n->name, sizeof(n->name)) ||
        !take_text(self, "network", n->network, sizeof(n->network)) ||
        !take_text(self, "interface", n->interface, sizeof(n->interface)) ||
        !take_text(self, "address4", n->address4, sizeof(n->address4)))
        return false;
    if (take_text(hub, "address4", address, sizeof(address)) && json_is_integer(port) &&
        ip_addr_parse(&n->hub.addr, address, NULL) == 0)
        n->hub.port = (uint16_t)json_integer_value(port);
    n->has_hubs = json_array_size(json_object_get(status, "hubs")) > 1;
    n->hub_heard = json_is_true(json_object_get(hub, "reachable"));
    return compare_islands(n, status) == 0;
}

/* Reads the speed of the interface, in Mbit/s, from the file that NCCL reads. -1: not known. */
static long read_speed(const char *interface)
{
    char path[64];
    long speed = -1;

    (void)snprintf(path, sizeof(path), "/sys/class/net/%.15s/speed", interface);
    _cleanup_(fclosep) FILE *f = fopen(path, "re");
    return f && fscanf(f, "%ld", &speed) == 1 ? speed : -1;
}

int train_node_read(struct train_node *ret, const char *socket_path, struct err *e)
{
    struct train_node n = {0};
    json_auto_t *status = NULL;
    int r = agent_ask(socket_path, "GET", "/v1/status", ASK_TIMEOUT_MS, &status, e);

    if (r != 0)
        return r;
    if (!take_status(&n, status))
        return err_set(e, -EPROTO,
            "the agent on %s answers without its name, interface or "
            "address",
            socket_path);
    n.has_infiniband = dir_has_entries("/sys/class/infiniband");
    n.ports = local_ports_read();
    n.speed_mbit = read_speed(n.interface);
    *ret = n;
    return 0;
}

/* ==== the nodes of the island, on its private network ======================================== */

/* ---- from a status -------------------------------------------------------------------------- */

/* Reads a peer. False when it is not reached over the private network, or not well formed. */
static bool take_mate(struct island_mate *ret, const json_t *peer)
{
    struct island_mate m = {0};
    struct endpoint at;

    if (strcmp(fields_text_of(peer, "path"), "lan") != 0 ||
        endpoint_parse(&at, fields_text_of(peer, "endpoint"), NULL) != 0 ||
        ip_addr_is_link_local(&at.addr) ||
        parse_name(fields_text_of(peer, "name"), "name", NULL) != 0)
        return false;
    (void)snprintf(m.name, sizeof(m.name), "%s", fields_text_of(peer, "name"));
    m.lan = at.addr;
    /* One that is not well formed is in no line of a hosts file. */
    (void)ip_addr_parse(&m.overlay4, fields_text_of(peer, "address4"), NULL);
    (void)ip_addr_parse(&m.overlay6, fields_text_of(peer, "address6"), NULL);
    *ret = m;
    return true;
}

/* @facts: in the order of the status, this node first. */
static int take_mates(struct island_lan *ret, const json_t *status, const struct islands *islands)
{
    const json_t *peers = json_object_get(status, "peers");
    struct island_lan l = {.mates = calloc(json_array_size(peers) + 1, sizeof(*l.mates))};
    size_t own = islands->of[0];
    const struct island *island = own == SIZE_MAX ? NULL : &islands->items[own];
    const json_t *peer;
    size_t i;

    if (!l.mates)
        return -ENOMEM;
    if (island && (island->is_declared || island->state != ISLANDS_CONTRADICTED))
        json_array_foreach(peers, i, peer)
            if (islands->of[i + 1] == own && take_mate(&l.mates[l.n], peer))
                l.n++;
    *ret = l;
    return 0;
}

int island_lan_of_status(struct island_lan *ret, const json_t *status)
{
    _cleanup_(islands_deinit) struct islands islands = ISLANDS_NULL;
    int r = islands_find(&islands, status, NULL);

    return r == 0 ? take_mates(ret, status, &islands) : r;
}

void island_lan_deinit(struct island_lan *l)
{
    free(l->mates);
    *l = (struct island_lan)ISLAND_LAN_NULL;
}

/* ---- as text -------------------------------------------------------------------------------- */

void island_lan_format(const struct island_lan *l, struct str *out)
{
    char address[IP_ADDR_TEXT_MAX];

    for (size_t i = 0; i < l->n; i++)
        str_addf(out, "%s\t%s\n", ip_addr_format(&l->mates[i].lan, address), l->mates[i].name);
}

/* The address that a line begins with. @ret_len: of its text. False: it begins with none. */
static bool line_address(const char *line, size_t len, struct ip_addr *ret_address, size_t *ret_len)
{
    char text[IP_ADDR_TEXT_MAX];
    size_t n = 0;

    while (n < len && line[n] != ' ' && line[n] != '\t')
        n++;
    if (n == 0 || n == len || n >= sizeof(text))
        return false;
    memcpy(text, line, n);
    text[n] = '\0';
    *ret_len = n;
    return ip_addr_parse(ret_address, text, NULL) == 0;
}

/* @line: with its line feed, if it has one. */
static void add_line(const struct island_lan *l, struct str *out, const char *line, size_t len)
{
    const struct island_mate *mate = NULL;
    char address[IP_ADDR_TEXT_MAX];
    struct ip_addr overlay;
    size_t n = 0;

    if (line_address(line, len, &overlay, &n) && !ip_addr_is_none(&overlay))
        for (size_t i = 0; i < l->n && !mate; i++)
            if (ip_addr_equal(&l->mates[i].overlay4, &overlay) ||
                ip_addr_equal(&l->mates[i].overlay6, &overlay))
                mate = &l->mates[i];
    if (!mate) {
        str_add_bytes(out, line, len);
        return;
    }
    if (ip_addr_is_v4(&mate->lan) != ip_addr_is_v4(&overlay))
        return;
    str_add(out, ip_addr_format(&mate->lan, address));
    str_add_bytes(out, line + n, len - n);
}

void island_lan_hosts(const struct island_lan *l, struct str *out, const char *old, size_t len)
{
    str_add(out, ISLAND_LAN_MARK);
    for (size_t off = 0; off < len;) {
        const char *end = memchr(old + off, '\n', len - off);
        size_t n = end ? (size_t)(end - (old + off)) + 1 : len - off;

        add_line(l, out, old + off, n);
        off += n;
    }
}
