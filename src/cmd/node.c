/* node.c - weft nodes, weft node rm, weft node set: who is in a network, and what each may. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/client.h"
#include "base/cleanup.h"
#include "base/parse.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/options.h"

static struct {
    struct admin_target target;
    const char *network;
    const char *name;
    const char *relay;
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
    char buf[32] = "never";

    if (json_is_integer(age))
        (void)format_duration(json_integer_value(age) * NSEC_PER_SEC, buf);
    (void)printf("%-20s %-15s %-26s %-9s %-14s %s\n", admin_field(node, "metadata", "name"),
        admin_field(node, "spec", "address4"), admin_field(node, "spec", "address6"),
        is_hub         ? "hub"
        : is_reachable ? "yes"
                       : "no",
        is_hub ? "-" : buf, admin_field(node, NULL, "endpoint"));
}

/* An edge is told by both its ends. */
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

int cmd_nodes(int argc, char **argv)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    const json_t *node;
    char path[128];
    size_t i;
    int status;

    if (options_parse(&list_usage, argc, argv, &status))
        return status;
    (void)snprintf(path, sizeof(path), "/v1/networks/%s/nodes", arg.network);
    status = admin_call(&arg.target, list_usage.command, "GET", path, NULL, &answer);
    if (status != CMD_OK)
        return status;
    if (arg.json)
        return admin_print_json(answer.body);
    (void)printf("%-20s %-15s %-26s %-9s %-14s %s\n", "NAME", "IPV4", "IPV6", "REACHABLE",
        "HANDSHAKE AGO", "ENDPOINT");
    json_array_foreach(json_object_get(answer.body, "nodes"), i, node)
        print_node(node);
    print_alarms(json_object_get(answer.body, "nodes"));
    return CMD_OK;
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
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    char path[256];
    int status;

    if (options_parse(&rm_usage, argc, argv, &status))
        return status;
    (void)snprintf(path, sizeof(path), "/v1/networks/%s/nodes/%s", arg.network, arg.name);
    status = admin_call(&arg.target, rm_usage.command, "DELETE", path, NULL, &answer);
    if (status == CMD_OK)
        (void)printf("node %s is removed from network %s\n", arg.name, arg.network);
    return status;
}

static const struct option set_options[] = {
    {"NAME", NULL, option_name, &arg.name, NULL, "of the node", .need = OPTION_REQUIRED},
    {"--network", "NAME", option_name, &arg.network, "default", "where it is a member"},
    {"--relay", "YES", option_word, &arg.relay, NULL,
        "yes: it may relay for others, if it wants to; no: it may not", .words = "yes, no"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage set_usage = {
    .command = "node set",
    .summary = "Say what a node may do.",
    .options = set_options,
};

/* The node as it is, with one thing changed; refused if somebody else changes it meanwhile. */
static int put_relay(const char *path, json_t *node, bool relay)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;

    if (json_object_set_new(json_object_get(node, "spec"), "relay", json_boolean(relay)) < 0)
        return cmd_fail(set_usage.command, "out of memory");
    return admin_call(&arg.target, set_usage.command, "PUT", path, node, &answer);
}

static int node_set(int argc, char **argv)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    char path[256];
    bool relay;
    int status;

    if (options_parse(&set_usage, argc, argv, &status))
        return status;
    if (!arg.relay)
        return cmd_refuse(set_usage.command, "there is nothing to set: say --relay yes or no");
    relay = strcmp(arg.relay, "yes") == 0;
    (void)snprintf(path, sizeof(path), "/v1/networks/%s/objects/Node/%s", arg.network, arg.name);
    status = admin_call(&arg.target, set_usage.command, "GET", path, NULL, &answer);
    if (status == CMD_OK)
        status = put_relay(path, answer.body, relay);
    if (status == CMD_OK)
        (void)printf("node %s of network %s %s relay for others\n", arg.name, arg.network,
            relay ? "may" : "may not");
    return status;
}

int cmd_node(int argc, char **argv)
{
    static const struct option_subcommand table[] = {
        {"set", node_set, "say what a node may do"},
        {"rm", node_rm, "remove a node and cut it off everywhere"},
        {NULL, NULL, NULL},
    };

    return options_dispatch("node", table, argc, argv);
}
