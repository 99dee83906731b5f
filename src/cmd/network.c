/* network.c - weft network add|rm|ls: the networks of a hub. */
#include <stdio.h>

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
    bool json;
} arg = {.keepalive_s = UINT64_MAX}; /* it was not given; 0 is a value of its own */

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
        {"rm", network_rm, "remove a network with all that is in it", &rm_usage},
        {"ls", network_ls, "list the hub's networks", &ls_usage},
        {NULL},
    };

    return options_dispatch("network", table, argc, argv);
}
