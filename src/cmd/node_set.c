/* node_set.c - weft node set: say what a node may do. */
#include <stdio.h>
#include <string.h>

#include "api/client/client.h"
#include "base/cleanup.h"
#include "base/err.h"
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
    const char *relay;
    struct subnets add;
    struct subnets remove;
    bool removes_all;
} arg;

static int option_no_route(const struct option *o, const char *text, struct err *e)
{
    if (strcmp(text, "all") != 0)
        return option_subnets(o, text, e);
    arg.removes_all = true;
    return 0;
}

static const struct option options[] = {
    {"NAME", NULL, option_name, &arg.name, NULL, "of the node", .need = OPTION_REQUIRED},
    {"--network", "NAME", option_name, &arg.network, "default", "where it is a member"},
    {"--relay", "YES", option_word, &arg.relay, NULL,
        "yes: it may relay for others, if it wants to; no: it may not", .words = "yes, no"},
    OPTION_SUBNETS_ROUTE(arg.add),
    {"--no-route", "CIDR", option_no_route, &arg.remove, NULL,
        "this one not any more; all: none of them", .many = true},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "node set",
    .summary = "Say what a node may do.",
    .options = options,
};

static bool changes_routes(void)
{
    return arg.add.n > 0 || arg.remove.n > 0 || arg.removes_all;
}

/* Removes @p from @s. */
static void take_away(struct subnets *s, const struct ip_prefix *p)
{
    unsigned n = 0;

    for (unsigned i = 0; i < s->n; i++)
        if (!ip_prefix_equal(&s->items[i], p))
            s->items[n++] = s->items[i];
    s->n = n;
}

/* Changes @routes from what the node has to what it shall have. CMD_OK, or a message was printed.
 */
static int change_routes(struct subnets *routes)
{
    char text[SUBNETS_TEXT_MAX];
    char block[IP_PREFIX_TEXT_MAX];
    struct err e = ERR_NULL;

    if (arg.removes_all)
        routes->n = 0;
    for (unsigned i = 0; i < arg.remove.n; i++) {
        const struct ip_prefix *p = &arg.remove.items[i];

        if (!subnets_has(routes, p))
            return cmd_fail(usage.command, "node %s is not the way to %s; it has %s", arg.name,
                ip_prefix_format(p, block), routes->n ? subnets_format(routes, text) : "no routes");
        take_away(routes, p);
    }
    for (unsigned i = 0; i < arg.add.n; i++)
        if (subnets_add(routes, &arg.add.items[i], &e) < 0)
            return cmd_fail(usage.command, "%s", err_text(&e));
    return CMD_OK;
}

/* Changes @node, the object as the hub has it, to what it shall be. @routes: set to its routes
 * then. */
static int change(json_t *node, struct subnets *routes)
{
    json_t *spec = json_object_get(node, "spec");
    struct err e = ERR_NULL;
    struct fields f = fields_make(spec, "the hub's answer", &e);
    int status;

    subnets_decode(&f, "routes", routes);
    if (fields_end(&f) != 0)
        return cmd_fail(usage.command, "%s", err_text(&e));
    status = change_routes(routes);
    if (status != CMD_OK)
        return status;
    /* A hub of a version without routes refuses the field, even when the list is empty. */
    if ((changes_routes() && json_object_set_new(spec, "routes", subnets_encode(routes)) < 0) ||
        (arg.relay &&
            json_object_set_new(spec, "relay", json_boolean(strcmp(arg.relay, "yes") == 0)) < 0))
        return cmd_fail(usage.command, "out of memory");
    return CMD_OK;
}

static void print_done(const struct subnets *routes)
{
    char text[SUBNETS_TEXT_MAX];

    if (arg.relay)
        (void)printf("node %s of network %s %s relay for others\n", arg.name, arg.network,
            strcmp(arg.relay, "yes") == 0 ? "may" : "may not");
    if (changes_routes())
        (void)printf("node %s of network %s is the way to %s\n", arg.name, arg.network,
            routes->n ? subnets_format(routes, text) : "no subnet");
}

int cmd_node_set(int argc, char **argv)
{
    _cleanup_(client_answer_deinit) struct client_answer before = CLIENT_ANSWER_NULL;
    _cleanup_(client_answer_deinit) struct client_answer after = CLIENT_ANSWER_NULL;
    struct subnets routes = SUBNETS_NULL;
    char path[256];
    int status;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    if (!arg.relay && !changes_routes())
        return cmd_refuse(
            usage.command, "there is nothing to set: say --relay yes or no, --route or --no-route");
    (void)snprintf(path, sizeof(path), "/v1/networks/%s/objects/Node/%s", arg.network, arg.name);
    status = admin_call(&arg.target, usage.command, "GET", path, NULL, &before);
    if (status == CMD_OK)
        status = change(before.body, &routes);
    /* It has the resourceVersion that was read, so the hub refuses it if the node has changed
     * since. */
    if (status == CMD_OK)
        status = admin_call(&arg.target, usage.command, "PUT", path, before.body, &after);
    if (status == CMD_OK)
        print_done(&routes);
    return status;
}
