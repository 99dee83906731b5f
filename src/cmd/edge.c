/* edge.c - weft edge set: how two nodes talk, and how fast. */
#include <stdio.h>
#include <string.h>

#include "api/client/client.h"
#include "base/err.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/mesh_options.h"
#include "cmd/options.h"
#include "mesh/object/object.h"

static struct {
    struct admin_target target;
    const char *network;
    const char *a;
    const char *b;
    const char *path;
    const char *rate;
} arg;

static const struct option options[] = {
    {"A", NULL, option_name, &arg.a, NULL, "one node", .is_required = true},
    {"B", NULL, option_name, &arg.b, NULL, "the other", .is_required = true},
    {"--path", "WORD", option_word, &arg.path, NULL, "auto, direct, relay or off",
        .words = "auto, direct, relay, off"},
    {"--rate", "RATE", option_text, &arg.rate, NULL,
        "each sends the other no more, as in 20Mbit; none: as fast as it can"},
    {"--network", "NAME", option_name, &arg.network, "default", "where both are members"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "edge set",
    .summary = "Say how two nodes talk, and how fast; \"off\" cuts them off from each other.",
    .options = options,
};

/* The object that shall be: what else was said of the pair stays. A new reference; NULL: no memory,
 * or the rate is no UTF-8. */
static json_t *make(const json_t *before, const char *name)
{
    bool in_order = strcmp(arg.a, arg.b) < 0;
    json_t *edge;
    json_t *spec;

    if (before) {
        edge = json_deep_copy(before);
        /* It is written by those who observe it. */
        (void)json_object_del(edge, "status");
    } else {
        edge = json_pack("{s:s, s:{s:s, s:s}, s:{s:[s,s], s:s}}", "kind", mesh_edge_kind.name,
            "metadata", "name", name, "network", arg.network, "spec", "nodes",
            in_order ? arg.a : arg.b, in_order ? arg.b : arg.a, "path", "auto");
    }
    spec = json_object_get(edge, "spec");
    if (edge && ((arg.path && json_object_set_new(spec, "path", json_string(arg.path)) < 0) ||
                    (arg.rate && mesh_options_set_rate(spec, "rate", arg.rate) < 0)))
        edge = (json_decref(edge), NULL);
    return edge;
}

static int edge_set(int argc, char **argv)
{
    _cleanup_(client_answer_deinit) struct client_answer before = CLIENT_ANSWER_NULL;
    _cleanup_(client_answer_deinit) struct client_answer after = CLIENT_ANSWER_NULL;
    char name[OBJECT_NAME_MAX + 1];
    char path[256];
    const char *rate;
    json_auto_t *edge = NULL;
    int status;

    if (strcmp(arg.a, arg.b) == 0)
        return cmd_refuse(usage.command, "\"%s\" and \"%s\" are the same node", arg.a, arg.b);
    if (!arg.path && !arg.rate)
        return cmd_refuse(usage.command, "there is nothing to set: say --path or --rate");
    (void)snprintf(path, sizeof(path), "/v1/networks/%s/objects/%s/%s", arg.network,
        mesh_edge_kind.name, edge_name(arg.a, arg.b, name));
    status = admin_try(&arg.target, usage.command, "GET", path, NULL, 404, &before);
    if (status != CMD_OK)
        return status;
    edge = make(before.body, name);
    if (!edge)
        return cmd_fail(usage.command, "out of memory, or --rate is not text");
    status = admin_call(&arg.target, usage.command, "PUT", path, edge, &after);
    if (status != CMD_OK)
        return status;
    rate = admin_field(after.body, "spec", "rate");
    (void)printf("%s %s: applied\n", mesh_edge_kind.name, name);
    if (arg.rate && *rate)
        (void)printf("each of the two sends the other at most %s\n", rate);
    else if (arg.rate)
        (void)printf("each of the two sends the other as fast as it can\n");
    return CMD_OK;
}

int cmd_edge(int argc, char **argv)
{
    static const struct option_subcommand table[] = {
        {"set", edge_set, "say how two nodes talk, and how fast", &usage},
        {"ls", cmd_edges, "say how the edges are; the same as \"weft get edges\""},
        {NULL},
    };

    return options_dispatch("edge", table, argc, argv);
}
