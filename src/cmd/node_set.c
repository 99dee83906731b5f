/* node_set.c - weft node set: say what a node may do. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/client/client.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/traffic.h"
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
    const char *rate;
    struct option_list class_rates;
    const char *show_dscp;
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
    {"--rate", "RATE", option_text, &arg.rate, NULL,
        "it sends no faster, as in 95Mbit: a little below its uplink; none: as fast as it can"},
    {"--class-rate", "CLASS=RATE", option_append, &arg.class_rates, NULL,
        "it sends this class no faster, as in bulk=20Mbit; the classes are control, priority, "
        "normal and bulk; CLASS=none: as fast as it can",
        .many = true},
    {"--show-dscp", "YES", option_word, &arg.show_dscp, NULL,
        "yes: its datagrams carry the DSCP of the packets in them, for networks that go by it; no: "
        "they hide it, unless the network has its nodes show it",
        .words = "yes, no"},
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

static bool changes_rates(void)
{
    return arg.rate || arg.class_rates.n > 0;
}

/* Sets one rate to what was typed, which is the hub's to judge; "none" removes it. 0, or -1: no
 * memory, or the text is no UTF-8. */
static int set_rate(json_t *rates, const char *name, const char *text)
{
    if (strcmp(text, "none") != 0)
        return json_object_set_new(rates, name, json_string(text));
    (void)json_object_del(rates, name);
    return 0;
}

/* "bulk=20Mbit" */
static int set_class_rate(json_t *classes, const char *text, struct err *e)
{
    const char *equals = strchr(text, '=');
    enum traffic_class class;

    if (!equals || !traffic_class_parse(&class, text, (size_t)(equals - text)))
        return err_set(e, -EINVAL,
            "--class-rate \"%.60s\" is not CLASS=RATE with control, priority, normal or bulk as "
            "the "
            "class, as in bulk=20Mbit",
            text);
    if (set_rate(classes, traffic_class_name(class), equals + 1) < 0)
        return err_set(e, -EINVAL, "--class-rate \"%.60s\" is not text", text);
    return 0;
}

/* A hub of a version without rates refuses the fields. CMD_OK, or a message was printed. */
static int change_rates(json_t *spec)
{
    json_t *classes = json_object_get(spec, "classRates");
    struct err e = ERR_NULL;
    int r = 0;

    if (!classes) {
        classes = json_object();
        r = json_object_set_new(spec, "classRates", classes);
    }
    for (size_t i = 0; r == 0 && i < arg.class_rates.n; i++)
        r = set_class_rate(classes, arg.class_rates.items[i], &e);
    if (r == 0 && arg.rate && set_rate(spec, "rate", arg.rate) < 0)
        r = err_set(&e, -EINVAL, "--rate \"%.60s\" is not text", arg.rate);
    if (json_object_size(classes) == 0)
        (void)json_object_del(spec, "classRates");
    return r == 0 ? CMD_OK : cmd_fail(usage.command, "%s", err_text(&e));
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
    if (arg.show_dscp && strcmp(arg.show_dscp, "no") == 0)
        (void)json_object_del(spec, "showDscp");
    else if (arg.show_dscp && json_object_set_new(spec, "showDscp", json_true()) < 0)
        return cmd_fail(usage.command, "out of memory");
    return changes_rates() ? change_rates(spec) : CMD_OK;
}

/* @node: the object as the hub has it now. */
static void print_rates(const json_t *node)
{
    const json_t *spec = json_object_get(node, "spec");
    const char *all = admin_field(spec, NULL, "rate");
    const char *class;
    json_t *rate;

    (void)printf("node %s of network %s sends %s%s", arg.name, arg.network,
        all[0] ? "at most " : "as fast as it can", all);
    json_object_foreach(json_object_get(spec, "classRates"), class, rate)
        (void)printf(", %s at most %s", class, admin_text(rate));
    (void)printf("\n");
}

/* What a node with the kernel's engine cannot do: the object has it all the same. */
static void warn_of_kernel(const json_t *node)
{
    if (strcmp(admin_field(node, "status", "engine"), "kernel") == 0)
        (void)fprintf(stderr,
            "weft node set: node %s runs the kernel's WireGuard, which keeps no rates and shows no "
            "DSCP; with \"weft join --engine userspace\" it is done\n",
            arg.name);
}

static void print_done(const struct subnets *routes, const json_t *node)
{
    char text[SUBNETS_TEXT_MAX];

    if (arg.relay)
        (void)printf("node %s of network %s %s relay for others\n", arg.name, arg.network,
            strcmp(arg.relay, "yes") == 0 ? "may" : "may not");
    if (changes_routes())
        (void)printf("node %s of network %s is the way to %s\n", arg.name, arg.network,
            routes->n ? subnets_format(routes, text) : "no subnet");
    if (changes_rates())
        print_rates(node);
    if (arg.show_dscp)
        (void)printf("node %s of network %s %s\n", arg.name, arg.network,
            strcmp(arg.show_dscp, "yes") == 0 ? "shows the DSCP of what it sends"
                                              : "hides the DSCP of what it sends, unless the "
                                                "network has its nodes show it");
    if (changes_rates() || arg.show_dscp)
        warn_of_kernel(node);
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
    if (!arg.relay && !changes_routes() && !changes_rates() && !arg.show_dscp)
        return cmd_refuse(usage.command,
            "there is nothing to set: say --relay yes or no, --route, --no-route, --rate, "
            "--class-rate or --show-dscp yes or no");
    (void)snprintf(path, sizeof(path), "/v1/networks/%s/objects/Node/%s", arg.network, arg.name);
    status = admin_call(&arg.target, usage.command, "GET", path, NULL, &before);
    if (status == CMD_OK)
        status = change(before.body, &routes);
    /* It has the resourceVersion that was read, so the hub refuses it if the node has changed
     * since. */
    if (status == CMD_OK)
        status = admin_call(&arg.target, usage.command, "PUT", path, before.body, &after);
    if (status == CMD_OK)
        print_done(&routes, after.body);
    free(arg.class_rates.items);
    return status;
}
