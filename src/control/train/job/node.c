/* node.c - see node.h. */
#include "train/job/node.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent_ask.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "fabric/fabric.h"
#include "train/islands/islands.h"

#define ASK_TIMEOUT_MS 5000

/* Copies a text field of the agent's answer. False when it is missing, empty or too long. */
static bool take_text(const json_t *obj, const char *field, char *buf, size_t cap)
{
    const char *text = json_string_value(json_object_get(obj, field));

    return text && text[0] != '\0' && snprintf(buf, cap, "%s", text) < (int)cap;
}

/* Finds the farthest node outside this node's island, which is the first of the facts. */
static void find_far(
    struct train_node *n, const struct islands_facts *facts, const struct islands *islands)
{
    for (size_t i = 0; i < facts->n_pairs; i++) {
        const struct islands_pair *p = &facts->pairs[i];
        size_t own = islands->of[p->a];

        if (p->a != 0 || p->rtt_ms <= n->far_rtt_ms ||
            (own != SIZE_MAX && own == islands->of[p->b]))
            continue;
        n->far_rtt_ms = p->rtt_ms;
        (void)snprintf(n->far, sizeof(n->far), "%s", facts->nodes[p->b].name);
    }
}

/*
 * Is every other node in this node's island? An island of a plain network counts only when a label
 * says so: it has nothing that the overlay has not, but for encryption. One that measurements
 * contradict does not count.
 */
static int compare_islands(struct train_node *n, const json_t *status)
{
    struct islands islands = ISLANDS_NULL;
    struct islands_facts facts;
    const struct island *own = NULL;
    int r = islands_facts_of_status(&facts, status);

    if (r < 0)
        return r;
    r = islands_find(&islands, facts.nodes, facts.n_nodes, facts.pairs, facts.n_pairs);
    if (r == 0 && islands.of[0] != SIZE_MAX)
        own = &islands.items[islands.of[0]];
    if (own && !own->is_declared &&
        (own->state == ISLANDS_CONTRADICTED || !fabric_kind_is_fast(fabric_kind_parse(own->kind))))
        own = NULL;
    for (size_t i = 1; r == 0 && i < facts.n_nodes; i++)
        n->n_others += !own || islands.of[i] != islands.of[0];
    if (r == 0)
        find_far(n, &facts, &islands);
    n->islands = own && n->n_others == 0 ? ENV_ISLANDS_ONE : ENV_ISLANDS_SEVERAL;
    /* A node that is alone in its network is in the island that its label names. */
    if (facts.n_nodes == 1 && facts.nodes[0].label[0] != '\0')
        n->islands = ENV_ISLANDS_ONE;
    islands_deinit(&islands);
    islands_facts_deinit(&facts);
    return r;
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

static bool has_entries(const char *dir)
{
    DIR *d = opendir(dir);
    bool found = false;

    if (!d)
        return false;
    for (struct dirent *entry = readdir(d); entry && !found; entry = readdir(d))
        found = entry->d_name[0] != '.';
    (void)closedir(d);
    return found;
}

/* Reads the speed of the interface, in Mbit/s, from the file that NCCL reads. -1: not known. */
static long read_speed(const char *interface)
{
    char path[64];
    FILE *f;
    long speed = -1;

    (void)snprintf(path, sizeof(path), "/sys/class/net/%.15s/speed", interface);
    f = fopen(path, "re");
    if (!f)
        return -1;
    if (fscanf(f, "%ld", &speed) != 1)
        speed = -1;
    (void)fclose(f);
    return speed;
}

int train_node_read(struct train_node *ret, const char *socket_path, struct err *e)
{
    struct train_node n = {0};
    json_t *status = NULL;
    bool good;
    int r = agent_ask(socket_path, "GET", "/v1/status", ASK_TIMEOUT_MS, &status, e);

    if (r != 0)
        return r;
    good = take_status(&n, status);
    json_decref(status);
    if (!good)
        return err_set(e, -EPROTO,
            "the agent on %s answers without its name, interface or "
            "address",
            socket_path);
    n.has_infiniband = has_entries("/sys/class/infiniband");
    n.ports = local_ports_read();
    n.speed_mbit = read_speed(n.interface);
    *ret = n;
    return 0;
}
