/* node.c - weft nodes, weft node rm: who is in a network. The rest of weft node: node_add.c,
 * node_set.c. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/mesh_options.h"
#include "cmd/options.h"
#include "mesh/object/fields.h"
#include "mesh/object/subnets.h"

static struct {
    struct admin_target target;
    const char *network;
    const char *name;
    bool json;
} arg;

static const struct option list_options[] = {
    {"--network", "NAME", option_name, &arg.network, "default", "whose nodes"},
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage list_usage = {
    .command = "nodes",
    .summary = "List a network's nodes as the hub sees them.",
    .options = list_options,
};

static void print_node(const json_t *node)
{
    const json_t *age = json_object_get(node, "handshakeAgeSeconds");
    const bool is_hub = json_object_get(json_object_get(node, "spec"), "hub") != NULL;
    const bool is_reachable = json_is_true(json_object_get(node, "reachable"));
    const char *engine = admin_field(node, "status", "engine");
    char buf[32] = "never";

    if (json_is_integer(age))
        (void)format_duration(json_integer_value(age) * NSEC_PER_SEC, buf);
    (void)printf("%-20s %-15s %-26s %-10s %-9s %-14s %s%s\n", admin_field(node, "metadata", "name"),
        admin_field(node, "spec", "address4"), admin_field(node, "spec", "address6"),
        engine[0] ? engine : "-",
        is_hub && is_reachable ? "hub"
        : is_hub               ? "hub, away"
        : is_reachable         ? "yes"
                               : "no",
        is_hub ? "-" : buf, admin_field(node, NULL, "endpoint"),
        json_is_true(json_object_get(node, "inTls")) ? " in TLS" : "");
}

/* Of several hubs, which one serves the jobs. The field is there only then. */
static void print_owner(const json_t *nodes)
{
    const json_t *node;
    bool has_several = false;
    size_t i;

    json_array_foreach(nodes, i, node) {
        const json_t *serves = json_object_get(node, "servesJobs");
        const json_t *hub = json_object_get(json_object_get(node, "spec"), "hub");

        has_several = has_several || serves;
        if (!json_is_true(serves))
            continue;
        (void)printf("%s serves the rendezvous of jobs (epoch %lld)\n",
            admin_field(node, "metadata", "name"),
            (long long)json_integer_value(json_object_get(hub, "rendezvousEpoch")));
        return;
    }
    if (has_several)
        (void)printf("no hub serves the rendezvous of jobs at the moment\n");
}

/* An edge without a direct path counts at both its ends, so that each of them gets a line. */
static void print_alarms(const json_t *nodes)
{
    const json_t *node;
    size_t i;

    json_array_foreach(nodes, i, node) {
        long long n = (long long)json_integer_value(json_object_get(node, "alarms"));

        if (n > 0)
            (void)printf("ALARM: %s has no direct path to %lld node%s, though only direct paths "
                         "are wanted: \"weft status\" there says why\n",
                admin_field(node, "metadata", "name"), n, n == 1 ? "" : "s");
    }
}

static struct subnets routes_in(const json_t *node, const char *part)
{
    struct subnets s = SUBNETS_NULL;
    const json_t *json = json_object_get(node, part);
    struct fields f = fields_make(json, part, NULL);

    if (json)
        subnets_decode(&f, "routes", &s);
    return s;
}

/* An image with a node in it was copied: two machines take each other's sessions away. */
static void print_copies(const json_t *nodes)
{
    const json_t *node;
    size_t i;

    json_array_foreach(nodes, i, node) {
        const char *why = admin_field(node, "copies", "why");

        if (why[0] != '\0')
            (void)printf("COPIED: %s: %s\n", admin_field(node, "metadata", "name"), why);
    }
}

/* A line for the subnets behind a node, and one for those that it asks for and the hub does not
 * admit. */
static void print_routes(const json_t *node)
{
    const struct subnets has = routes_in(node, "spec");
    const struct subnets asked = routes_in(node, "status");
    const char *name = admin_field(node, "metadata", "name");
    const struct subnets waits = subnets_without(&asked, &has);
    char text[SUBNETS_TEXT_MAX];

    if (has.n > 0)
        (void)printf("%s is the way to %s\n", name, subnets_format(&has, text));
    if (waits.n == 0)
        return;
    (void)printf(
        "%s asks to be the way to %s, which is not admitted: ", name, subnets_format(&waits, text));
    mesh_options_print_admit(name, &waits);
    if (strcmp(arg.network, "default") != 0)
        (void)printf(" --network %s", arg.network);
    (void)printf("\n");
}

static void print_nodes(const json_t *body)
{
    const json_t *nodes = json_object_get(body, "nodes");
    const json_t *node;
    size_t i;

    (void)printf("%-20s %-15s %-26s %-10s %-9s %-14s %s\n", "NAME", "IPV4", "IPV6", "ENGINE",
        "REACHABLE", "HANDSHAKE AGO", "ENDPOINT");
    json_array_foreach(nodes, i, node)
        print_node(node);
    json_array_foreach(nodes, i, node)
        print_routes(node);
    print_owner(nodes);
    print_copies(nodes);
    print_alarms(nodes);
}

int cmd_nodes(int argc, char **argv)
{
    char path[128];
    int status;

    if (options_parse(&list_usage, argc, argv, &status))
        return status;
    (void)snprintf(path, sizeof(path), "/v1/networks/%s/nodes", arg.network);
    return admin_show(&arg.target, list_usage.command, path, arg.json, print_nodes);
}

static const struct option rm_options[] = {
    {"NAME", NULL, option_name, &arg.name, NULL, "of the node", .need = OPTION_REQUIRED},
    {"--network", "NAME", option_name, &arg.network, "default", "where it is a member"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage rm_usage = {
    .command = "node rm",
    .summary = "Remove a node; every other node stops talking to it within two seconds.",
    .options = rm_options,
};

static int node_rm(int argc, char **argv)
{
    char path[256];
    int status;

    if (options_parse(&rm_usage, argc, argv, &status))
        return status;
    (void)snprintf(path, sizeof(path), "/v1/networks/%s/nodes/%s", arg.network, arg.name);
    status = admin_delete(&arg.target, rm_usage.command, path);
    if (status == CMD_OK)
        (void)printf("node %s is removed from network %s\n", arg.name, arg.network);
    return status;
}

int cmd_node(int argc, char **argv)
{
    static const struct option_subcommand table[] = {
        {"add", cmd_node_add, "make a stock WireGuard a node"},
        {"set", cmd_node_set, "say what a node may do"},
        {"rm", node_rm, "remove a node and cut it off everywhere"},
        {"ls", cmd_nodes, "list the nodes; the same as \"weft nodes\""},
        {NULL, NULL, NULL},
    };

    return options_dispatch("node", table, argc, argv);
}
