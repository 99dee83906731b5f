/* network.c - weft network add|set|rm|ls: the networks of a hub. */
#include <stdio.h>

#include "api/client/client.h"
#include "base/err.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/options.h"

static struct {
    struct admin_target target;
    const char *name;
    const char *cidr4;
    const char *cidr6;
    const char *topology;
    uint64_t mtu;
    uint64_t keepalive_s;
    uint64_t drain_share;
    const char *key_rotation;
    bool json;
} arg = {.keepalive_s = UINT64_MAX, .drain_share = UINT64_MAX}; /* they were not given; 0 is a value
                                                                 of its own */

static const struct option add_options[] = {
    {"NAME", NULL, option_name, &arg.name, NULL, "of the new network", .is_required = true},
    {"--cidr4", "CIDR", option_text, &arg.cidr4, NULL,
        "IPv4 addresses of its nodes (default 10.77.0.0/16)"},
    {"--cidr6", "CIDR", option_text, &arg.cidr6, NULL,
        "IPv6 addresses of its nodes (default: a random block of fd00::/8)"},
    {"--topology", "WORD", option_word, &arg.topology, NULL, "auto, hub or mesh (default auto)",
        .words = "auto, hub, mesh"},
    {"--mtu", "BYTES", option_u64, &arg.mtu, NULL,
        "of interfaces whose links carry less (default 1420)", .min = 1280, .max = 65535},
    {"--keepalive", "SECONDS", option_u64, &arg.keepalive_s, NULL,
        "how often a node says hello to the hub (default: as each node measures it)", .min = 0,
        .max = 3600},
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage add_usage = {
    .command = "network add",
    .summary = "Make another network on this hub. The networks cannot see each other.",
    .options = add_options,
};

static void print_added(const json_t *body)
{
    (void)printf("network %s: %s and %s; next: weft token new --network %s\n", arg.name,
        admin_field(body, "spec", "cidr4"), admin_field(body, "spec", "cidr6"), arg.name);
}

static int network_add(int argc, char **argv)
{
    /* What was given, and nothing else, so that the hub's defaults hold for the rest. */
    bool has_keepalive = arg.keepalive_s != UINT64_MAX;
    json_t *body = json_pack("{s:s, s:s*, s:s*, s:s*, s:o*, s:o*}", "name", arg.name, "cidr4",
        arg.cidr4, "cidr6", arg.cidr6, "topology", arg.topology, "mtu",
        arg.mtu ? json_integer((json_int_t)arg.mtu) : NULL, "keepalive",
        has_keepalive ? json_integer((json_int_t)arg.keepalive_s) : NULL);

    return admin_show(
        &arg.target, add_usage.command, "POST", "/v1/networks", body, arg.json, print_added);
}

static const struct option set_options[] = {
    {"NAME", NULL, option_name, &arg.name, NULL, "of the network", .is_required = true},
    {"--drain-share", "PERCENT", option_u64, &arg.drain_share, NULL,
        "so many of its nodes may be drained at once because they fail their health checks, from 0 "
        "to 100; 0: none is, and it is said what would be done",
        .min = 0, .max = 100},
    {"--key-rotation", "DURATION", option_text, &arg.key_rotation, NULL,
        "each node changes its key after so long, as 30d; 0: never by the clock"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage set_usage = {
    .command = "network set",
    .summary = "Say what holds for the nodes of a network.",
    .options = set_options,
};

static int network_set(int argc, char **argv)
{
    _cleanup_(client_answer_deinit) struct client_answer before = CLIENT_ANSWER_NULL;
    _cleanup_(client_answer_deinit) struct client_answer after = CLIENT_ANSWER_NULL;
    char path[256];
    json_t *spec;
    int status;

    if (arg.drain_share == UINT64_MAX && !arg.key_rotation)
        return cmd_refuse(
            set_usage.command, "there is nothing to set: say --drain-share or --key-rotation");
    (void)snprintf(path, sizeof(path), "/v1/networks/%s/objects/Network/%s", arg.name, arg.name);
    status = admin_call(&arg.target, set_usage.command, "GET", path, NULL, &before);
    if (status != CMD_OK)
        return status;
    spec = json_object_get(before.body, "spec");
    if ((arg.drain_share != UINT64_MAX && json_object_set_new(spec, "drainShare",
                                              json_integer((json_int_t)arg.drain_share)) < 0) ||
        (arg.key_rotation &&
            json_object_set_new(spec, "keyRotation", json_string(arg.key_rotation)) < 0))
        return cmd_fail(set_usage.command, "out of memory");
    /* It has the resourceVersion that was read, so the hub refuses it if the network has changed
     * since. */
    status = admin_call(&arg.target, set_usage.command, "PUT", path, before.body, &after);
    if (status != CMD_OK)
        return status;
    if (arg.key_rotation)
        (void)printf(
            "nodes of network %s change their keys after %s\n", arg.name, arg.key_rotation);
    if (arg.drain_share == UINT64_MAX)
        return CMD_OK;
    if (arg.drain_share > 0)
        (void)printf("at most %u %% of the nodes of network %s are drained at once\n",
            (unsigned)arg.drain_share, arg.name);
    else
        (void)printf("no more nodes of network %s are drained, and it is said what would be done\n",
            arg.name);
    return CMD_OK;
}

static const struct option rm_options[] = {
    {"NAME", NULL, option_name, &arg.name, NULL, "of the network", .is_required = true},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage rm_usage = {
    .command = "network rm",
    .summary = "Remove a network with its nodes, tokens and keys.",
    .options = rm_options,
};

static int network_rm(int argc, char **argv)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "/v1/networks/%s", arg.name);
    return admin_delete(&arg.target, rm_usage.command, path, "network", arg.name);
}

static const struct option ls_options[] = {
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage ls_usage = {
    .command = "network ls",
    .summary = "List the hub's networks.",
    .options = ls_options,
};

static void print_networks(const json_t *body)
{
    const json_t *net;
    size_t i;

    (void)printf("%-20s %6s  %-18s  %s\n", "NAME", "NODES", "IPV4", "IPV6");
    json_array_foreach(json_object_get(body, "networks"), i, net)
        (void)printf("%-20s %6" JSON_INTEGER_FORMAT "  %-18s  %s\n",
            admin_field(net, "metadata", "name"), json_integer_value(json_object_get(net, "nodes")),
            admin_field(net, "spec", "cidr4"), admin_field(net, "spec", "cidr6"));
}

static int network_ls(int argc, char **argv)
{
    return admin_show(
        &arg.target, ls_usage.command, "GET", "/v1/networks", NULL, arg.json, print_networks);
}

int cmd_network(int argc, char **argv)
{
    static const struct option_subcommand table[] = {
        {"add", network_add, "make another network on this hub", &add_usage},
        {"set", network_set, "say what holds for the nodes of a network", &set_usage},
        {"rm", network_rm, "remove a network with all that is in it", &rm_usage},
        {"ls", network_ls, "list the hub's networks", &ls_usage},
        {NULL},
    };

    return options_dispatch("network", table, argc, argv);
}
