/* node.c - weft nodes, weft node add, set and rm: who is in a network, and what a node may do. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "api/client/client.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/secret.h"
#include "base/text.h"
#include "base/traffic.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/mesh_options.h"
#include "cmd/options.h"
#include "cmd/qr.h"
#include "cmd/stock.h"
#include "crypto/x25519.h"
#include "mesh/object/fields.h"
#include "mesh/object/object.h"
#include "mesh/object/subnets.h"
#include "mesh/render/render.h"
#include "mesh/snapshot/snapshot.h"
#include "os/clock.h"

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
    return admin_show(&arg.target, list_usage.command, "GET", path, NULL, arg.json, print_nodes);
}

static const struct option rm_options[] = {
    {"NAME", NULL, option_name, &arg.name, NULL, "of the node", .is_required = true},
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

    (void)snprintf(path, sizeof(path), "/v1/networks/%s/nodes/%s", arg.network, arg.name);
    status = admin_delete(&arg.target, rm_usage.command, path, NULL, NULL);
    if (status == CMD_OK)
        (void)printf("node %s is removed from network %s\n", arg.name, arg.network);
    return status;
}

/* ==== what a node may do: weft node set ====================================================== */

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
} set_arg;

static int option_no_route(const struct option *o, const char *text, struct err *e)
{
    if (strcmp(text, "all") != 0)
        return option_subnets(o, text, e);
    set_arg.removes_all = true;
    return 0;
}

static const struct option set_options[] = {
    {"NAME", NULL, option_name, &set_arg.name, NULL, "of the node", .is_required = true},
    {"--network", "NAME", option_name, &set_arg.network, "default", "where it is a member"},
    {"--relay", "YES", option_word, &set_arg.relay, NULL,
        "yes: it may relay for others, if it wants to; no: it may not", .words = "yes, no"},
    OPTION_SUBNETS_ROUTE(set_arg.add),
    {"--no-route", "CIDR", option_no_route, &set_arg.remove, NULL,
        "this one not any more; all: none of them", .many = true},
    {"--rate", "RATE", option_text, &set_arg.rate, NULL,
        "it sends no faster, as in 95Mbit: a little below its uplink; found: as fast as its uplink "
        "is found to carry, as without a rate; none: as fast as it can"},
    {"--class-rate", "CLASS=RATE", option_append, &set_arg.class_rates, NULL,
        "it sends this class no faster, as in bulk=20Mbit; the classes are control, priority, "
        "normal and bulk; CLASS=none: as fast as it can",
        .many = true},
    {"--show-dscp", "YES", option_word, &set_arg.show_dscp, NULL,
        "yes: its datagrams carry the DSCP of the packets in them, for networks that go by it; no: "
        "they hide it, unless the network has its nodes show it",
        .words = "yes, no"},
    ADMIN_OPTIONS(set_arg.target),
    OPTIONS_END,
};

static const struct option_usage set_usage = {
    .command = "node set",
    .summary = "Say what a node may do.",
    .options = set_options,
};

static bool changes_routes(void)
{
    return set_arg.add.n > 0 || set_arg.remove.n > 0 || set_arg.removes_all;
}

/* Changes @routes from what the node has to what it shall have. CMD_OK, or a message was printed.
 */
static int change_routes(struct subnets *routes)
{
    char text[SUBNETS_TEXT_MAX];
    char block[IP_PREFIX_TEXT_MAX];
    struct err e = ERR_NULL;

    if (set_arg.removes_all)
        routes->n = 0;
    for (unsigned i = 0; i < set_arg.remove.n; i++) {
        const struct ip_prefix *p = &set_arg.remove.items[i];

        if (!subnets_has(routes, p))
            return cmd_fail(set_usage.command, "node %s is not the way to %s; it has %s",
                set_arg.name, ip_prefix_format(p, block),
                routes->n ? subnets_format(routes, text) : "no routes");
    }
    *routes = subnets_without(routes, &set_arg.remove);
    for (unsigned i = 0; i < set_arg.add.n; i++)
        if (subnets_add(routes, &set_arg.add.items[i], &e) < 0)
            return cmd_fail(set_usage.command, "%s", err_text(&e));
    return CMD_OK;
}

static bool changes_rates(void)
{
    return set_arg.rate || set_arg.class_rates.n > 0;
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
    if (mesh_options_set_rate(classes, traffic_class_names[class], equals + 1) < 0)
        return err_set(e, -EINVAL, "--class-rate \"%.60s\" is not text", text);
    return 0;
}

/* @text: a rate, "none" or "found". */
static int set_rate(json_t *spec, const char *text, struct err *e)
{
    bool is_none = strcmp(text, "none") == 0;
    int r = 0;

    if (is_none)
        r = json_object_set_new(spec, "findRate", json_false());
    else
        (void)json_object_del(spec, "findRate");
    if (r == 0)
        r = mesh_options_set_rate(spec, "rate", strcmp(text, "found") == 0 ? "none" : text);
    return r == 0 ? 0 : err_set(e, -EINVAL, "--rate \"%.60s\" is not text", text);
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
    for (size_t i = 0; r == 0 && i < set_arg.class_rates.n; i++)
        r = set_class_rate(classes, set_arg.class_rates.items[i], &e);
    if (r == 0 && set_arg.rate)
        r = set_rate(spec, set_arg.rate, &e);
    if (json_object_size(classes) == 0)
        (void)json_object_del(spec, "classRates");
    return r == 0 ? CMD_OK : cmd_fail(set_usage.command, "%s", err_text(&e));
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
        return cmd_fail(set_usage.command, "%s", err_text(&e));
    status = change_routes(routes);
    if (status != CMD_OK)
        return status;
    /* A hub of a version without routes refuses the field, even when the list is empty. */
    if ((changes_routes() && json_object_set_new(spec, "routes", subnets_encode(routes)) < 0) ||
        (set_arg.relay && json_object_set_new(
                              spec, "relay", json_boolean(strcmp(set_arg.relay, "yes") == 0)) < 0))
        return cmd_fail(set_usage.command, "out of memory");
    if (set_arg.show_dscp && strcmp(set_arg.show_dscp, "no") == 0)
        (void)json_object_del(spec, "showDscp");
    else if (set_arg.show_dscp && json_object_set_new(spec, "showDscp", json_true()) < 0)
        return cmd_fail(set_usage.command, "out of memory");
    return changes_rates() ? change_rates(spec) : CMD_OK;
}

/* @node: the object as the hub has it now. */
static void print_rates(const json_t *node)
{
    const json_t *spec = json_object_get(node, "spec");
    const char *all = admin_field(spec, NULL, "rate");
    const char *class;
    json_t *rate;

    (void)printf("node %s of network %s sends %s%s", set_arg.name, set_arg.network,
        all[0]                                             ? "at most "
        : json_is_false(json_object_get(spec, "findRate")) ? "as fast as it can"
                                                           : "as fast as its uplink is found to "
                                                             "carry",
        all);
    json_object_foreach(json_object_get(spec, "classRates"), class, rate)
        (void)printf(", %s at most %s", class, admin_text(rate));
    (void)printf("\n");
}

static void print_done(const struct subnets *routes, const json_t *node)
{
    char text[SUBNETS_TEXT_MAX];

    if (set_arg.relay)
        (void)printf("node %s of network %s %s relay for others\n", set_arg.name, set_arg.network,
            strcmp(set_arg.relay, "yes") == 0 ? "may" : "may not");
    if (changes_routes())
        (void)printf("node %s of network %s is the way to %s\n", set_arg.name, set_arg.network,
            routes->n ? subnets_format(routes, text) : "no subnet");
    if (changes_rates())
        print_rates(node);
    if (set_arg.show_dscp)
        (void)printf("node %s of network %s %s\n", set_arg.name, set_arg.network,
            strcmp(set_arg.show_dscp, "yes") == 0 ? "shows the DSCP of what it sends"
                                                  : "hides the DSCP of what it sends, unless the "
                                                    "network has its nodes show it");
    /* A kernel's engine cannot do it; the object has it all the same. */
    if ((changes_rates() || set_arg.show_dscp) &&
        strcmp(admin_field(node, "status", "engine"), "kernel") == 0)
        (void)fprintf(stderr,
            "weft node set: node %s runs the kernel's WireGuard, which keeps no rates and shows no "
            "DSCP; with \"weft join --engine userspace\" it is done\n",
            set_arg.name);
}

static int node_set(int argc, char **argv)
{
    _cleanup_(client_answer_deinit) struct client_answer before = CLIENT_ANSWER_NULL;
    _cleanup_(client_answer_deinit) struct client_answer after = CLIENT_ANSWER_NULL;
    struct subnets routes = SUBNETS_NULL;
    char path[256];
    int status;

    if (!set_arg.relay && !changes_routes() && !changes_rates() && !set_arg.show_dscp)
        return cmd_refuse(set_usage.command,
            "there is nothing to set: say --relay yes or no, --route, --no-route, --rate, "
            "--class-rate or --show-dscp yes or no");
    (void)snprintf(
        path, sizeof(path), "/v1/networks/%s/objects/Node/%s", set_arg.network, set_arg.name);
    status = admin_call(&set_arg.target, set_usage.command, "GET", path, NULL, &before);
    if (status == CMD_OK)
        status = change(before.body, &routes);
    /* It has the resourceVersion that was read, so the hub refuses it if the node has changed
     * since. */
    if (status == CMD_OK)
        status = admin_call(&set_arg.target, set_usage.command, "PUT", path, before.body, &after);
    if (status == CMD_OK)
        print_done(&routes, after.body);
    free(set_arg.class_rates.items);
    return status;
}

/* ==== a stock WireGuard becomes a node: weft node add ======================================== */

/*
 * Either its machine keeps its private key, and the hub is told the public one; or the pair is made
 * here, for a phone or a router that takes a whole file. Then the private key is in what is printed
 * and nowhere else, so when that cannot be printed, the node is of no use and is removed again.
 */

static struct {
    struct admin_target target;
    const char *name;
    const char *network;
    const char *public_key;
    struct option_list labels;
    struct subnets routes;
    struct stock_options opt;
    bool new_key;
    bool qr;
    const char *png;
    bool json;
} add_arg;

static const struct option add_options[] = {
    {"NAME", NULL, option_name, &add_arg.name, NULL, "of the node", .is_required = true},
    {"--public-key", "KEY", option_text, &add_arg.public_key, NULL,
        "the node's, as \"wg pubkey\" prints it; its private key stays on its machine"},
    {"--new-key", NULL, option_flag, &add_arg.new_key, NULL,
        "make the key pair here; the private key is in the file that is printed, and nowhere else"},
    {"--qr", NULL, option_flag, &add_arg.qr, NULL,
        "the same, and print the file as a QR code for a phone"},
    {"--png", "FILE", option_text, &add_arg.png, NULL,
        "the same, and write that code into a new image file, for terminals that it does not fit"},
    {"--label", "KEY=VALUE", option_append, &add_arg.labels, NULL, "describe the node",
        .many = true},
    OPTION_SUBNETS_ROUTE(add_arg.routes),
    {"--network", "NAME", option_name, &add_arg.network, "default", "where it is to be a member"},
    STOCK_OPTIONS(add_arg.opt),
    {"--json", NULL, option_flag, &add_arg.json, NULL, "print JSON, with the file in it"},
    ADMIN_OPTIONS(add_arg.target),
    OPTIONS_END,
};

static const struct option_usage add_usage = {
    .command = "node add",
    .summary = "Make a stock WireGuard a node, and print its file for wg-quick.",
    .options = add_options,
};

/** The keys of the node. */
struct key_pair {
    struct x25519_public public;
    struct x25519_secret secret; /* none: it stays on its machine */
};

static bool is_new(const struct key_pair *keys)
{
    return !x25519_secret_is_none(&keys->secret);
}

/* Is the file wanted as a QR code? */
static bool is_code(void)
{
    return add_arg.qr || add_arg.png;
}

static int take_keys(struct key_pair *ret, struct err *e)
{
    struct rng rng = rng_kernel();

    if (!add_arg.public_key == !(add_arg.new_key || is_code()))
        return err_set(e, -1,
            add_arg.public_key
                ? "--public-key and a key that is made here (--new-key, --qr, --png) exclude each "
                  "other"
                : "give --public-key KEY; or --new-key or --qr, to have the key pair made here");
    if (is_code() && add_arg.json)
        return err_set(e, -1, "%s and --json exclude each other", add_arg.qr ? "--qr" : "--png");
    if (add_arg.public_key)
        return x25519_public_parse(&ret->public, add_arg.public_key, e);
    x25519_secret_make(&ret->secret, &rng);
    if (!x25519_derive_public(&ret->secret, &ret->public))
        return err_set(e, -1, "no memory for a key pair");
    return 0;
}

/* ---- the hub -------------------------------------------------------------------------------- */

/* Has the hub add the node. @ret: client_answer_deinit() it; its body is the node's snapshot. */
static int register_node(
    struct client_answer *ret, const struct key_pair *keys, const struct label *labels)
{
    char key[X25519_BASE64_MAX];
    char path[192];
    json_auto_t *body = json_pack("{s:s, s:s, s:{}, s:o}", "name", add_arg.name, "publicKey",
        x25519_public_format(&keys->public, key), "labels", "routes",
        subnets_encode(&add_arg.routes));

    for (size_t i = 0; i < add_arg.labels.n; i++)
        (void)json_object_set_new(
            json_object_get(body, "labels"), labels[i].key, json_string(labels[i].value));
    (void)snprintf(path, sizeof(path), "/v1/networks/%s/nodes", add_arg.network);
    return admin_call(&add_arg.target, add_usage.command, "POST", path, body, ret);
}

/* Removes the node again: nobody has its private key. */
static void take_back(void)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "/v1/networks/%s/nodes/%s", add_arg.network, add_arg.name);
    if (admin_delete(&add_arg.target, add_usage.command, path, NULL, NULL) == CMD_OK)
        (void)cmd_fail(add_usage.command, "so node %s is not added", add_arg.name);
    else
        (void)cmd_fail(add_usage.command,
            "node %s is in network %s without its private key: \"weft node rm %s\" removes it",
            add_arg.name, add_arg.network, add_arg.name);
}

/* ---- printing ------------------------------------------------------------------------------- */

static int print_json(const struct snapshot *s, const char *text)
{
    const struct node *node = snapshot_self(s);
    char a4[IP_ADDR_TEXT_MAX];
    char a6[IP_ADDR_TEXT_MAX];
    char key[X25519_BASE64_MAX];
    json_auto_t *json = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "name", s->self, "network",
        s->network.meta.name, "address4", ip_addr_format(&node->address4, a4), "address6",
        ip_addr_format(&node->address6, a6), "publicKey", x25519_public_format(&node->key, key),
        "config", text);

    return json ? admin_print_json(add_usage.command, json)
                : cmd_fail(add_usage.command, "no memory");
}

static int print_qr(const char *text)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    struct winsize size = {0};
    struct err e = ERR_NULL;
    unsigned columns;

    /* Zeroes: standard output is no terminal, or does not say how large it is. */
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        size = (struct winsize){0};
    if (qr_format(&out, text, strlen(text), &columns, &e) != 0)
        return cmd_fail(add_usage.command, "%s", err_text(&e));
    if (size.ws_col > 0 && size.ws_col < columns)
        return cmd_fail(add_usage.command,
            "the QR code is %u columns wide, and this terminal has %u: --png FILE writes it as an "
            "image; or make the terminal wider or its letters smaller, or name fewer nodes with "
            "--peer",
            columns, size.ws_col);
    /* It is made of escape sequences. */
    if (fputs(str_text(&out), stdout) < 0 || fflush(stdout) != 0)
        return cmd_fail(add_usage.command, "standard output does not take it");
    if (size.ws_row > 0 && size.ws_row <= (columns + 1) / 2)
        (void)fprintf(stderr,
            "The code has %u lines, and this terminal %u: make it higher or its letters smaller "
            "until all of the code is seen. (\"weft node rm %s\" and the same with --png FILE "
            "writes it as an image.)\n",
            (columns + 1) / 2, size.ws_row, add_arg.name);
    return CMD_OK;
}

/* A new file that nobody else may read: the private key is in it. */
static int write_png(const char *text)
{
    struct err e = ERR_NULL;
    uint8_t *image = NULL;
    size_t len = 0;
    ssize_t n = -1;
    int fd;

    if (qr_png(text, strlen(text), &image, &len, &e) != 0)
        return cmd_fail(add_usage.command, "%s", err_text(&e));
    fd = open(add_arg.png, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0)
        n = write(fd, image, len);
    if (n != (ssize_t)len)
        (void)err_set(&e, -1, "\"%s\" cannot be %s: %s", add_arg.png, fd < 0 ? "made" : "written",
            n < 0 ? strerror(errno) : strerror(ENOSPC));
    secret_wipe(image, len);
    free(image);
    if (fd >= 0 && close(fd) < 0 && e.code == 0)
        (void)err_set(&e, -1, "\"%s\" cannot be written: %s", add_arg.png, strerror(errno));
    if (e.code == 0) {
        (void)printf("the code is in %s; remove the image once it is scanned\n", add_arg.png);
        return CMD_OK;
    }
    if (fd >= 0)
        (void)unlink(add_arg.png);
    return cmd_fail(add_usage.command, "%s", err_text(&e));
}

static int print_code(const char *text)
{
    int status = CMD_OK;

    if (strlen(text) > QR_BYTES_MAX)
        return cmd_fail(add_usage.command,
            "the file has %zu bytes, and a QR code holds %d: name those of the nodes that %s is "
            "to reach, each with --peer, or carry the file of --new-key to it",
            strlen(text), QR_BYTES_MAX, add_arg.name);
    if (add_arg.png)
        status = write_png(text);
    return status == CMD_OK && add_arg.qr ? print_qr(text) : status;
}

static int print_added(const json_t *view, const struct key_pair *keys)
{
    _cleanup_(snapshot_deinit) struct snapshot s = SNAPSHOT_NULL;
    struct err e = ERR_NULL;
    char *text = NULL;
    int status;

    if (stock_take(&s, view, &e) == 0)
        text = stock_format(&s, &add_arg.opt, is_new(keys) ? &keys->secret : NULL, is_code(), &e);
    if (!text)
        return cmd_fail(add_usage.command, "%s", err_text(&e));
    status = is_code()      ? print_code(text)
             : add_arg.json ? print_json(&s, text)
                            : cmd_print(add_usage.command, text);
    secret_wipe(text, strlen(text));
    free(text);
    return status;
}

static int add_node(const struct key_pair *keys, const struct label *labels)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    int status = register_node(&answer, keys, labels);

    if (status != CMD_OK)
        return status;
    status = print_added(answer.body, keys);
    if (!is_new(keys))
        return status;
    if (status != CMD_OK)
        take_back();
    else
        (void)fprintf(stderr,
            "The private key of %s is in this and nowhere else: neither this machine nor the hub "
            "keeps it.\n",
            add_arg.name);
    return status;
}

static int node_add(int argc, char **argv)
{
    _cleanup_(freep) struct label *labels = NULL;
    struct key_pair keys = {0};
    struct err e = ERR_NULL;
    int status;

    if (node_check_name(add_arg.name, &e) != 0 || take_keys(&keys, &e) != 0 ||
        mesh_options_parse_labels(&labels, &add_arg.labels, &e) != 0)
        status = cmd_refuse(add_usage.command, "%s", err_text(&e));
    else
        status = add_node(&keys, labels);
    secret_wipe(&keys, sizeof(keys));
    option_list_deinit(&add_arg.labels);
    option_list_deinit(&add_arg.opt.peers);
    return status;
}

int cmd_node(int argc, char **argv)
{
    static const struct option_subcommand table[] = {
        {"add", node_add, "make a stock WireGuard a node", &add_usage},
        {"set", node_set, "say what a node may do", &set_usage},
        {"rm", node_rm, "remove a node and cut it off everywhere", &rm_usage},
        {"ls", cmd_nodes, "list the nodes; the same as \"weft nodes\""},
        {NULL},
    };

    return options_dispatch("node", table, argc, argv);
}
