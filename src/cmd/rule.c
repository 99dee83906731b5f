/* rule.c - weft rule: who may reach which ports of whom. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/client/client.h"
#include "base/err.h"
#include "base/text.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "mesh/object/fields.h"
#include "mesh/object/object.h"
#include "mesh/object/rule.h"
#include "mesh/object/subnets.h"

/* Pairs that a first rule would cut, as many as are named. */
#define CUT_SHOWN 8

static struct {
    struct admin_target target;
    const char *network;
    const char *name;
    const char *from;
    const char *to;
    const char *allow;
    const char *source;
    const char *destination;
    bool yes;
    bool json;
} arg;

static const struct option add_options[] = {
    {"NAME", NULL, option_name, &arg.name, NULL, "of the rule", .is_required = true},
    {"--from", "LIST", option_text, &arg.from, NULL,
        "who may: members, hub, node:NAME, island:NAME or a label KEY=VALUE, with commas between",
        .is_required = true},
    {"--to", "LIST", option_text, &arg.to, NULL,
        "may reach whom: the same, or a block of addresses behind a node", .is_required = true},
    {"--allow", "LIST", option_text, &arg.allow, NULL,
        "at what: any, icmp, tcp, udp, tcp/22, udp/5000-5999", .is_required = true},
    {"--yes", NULL, option_flag, &arg.yes, NULL,
        "add the first rule of a network, which cuts what it does not allow"},
    {"--network", "NAME", option_name, &arg.network, "default", "where it holds"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage add_usage = {
    .command = "rule add",
    .summary = "Allow some nodes to reach others; from the first rule on all else is refused.",
    .options = add_options,
};

static const struct option ls_options[] = {
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    {"--network", "NAME", option_name, &arg.network, "default", "whose"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage ls_usage = {.command = "rule ls",
    .summary = "List the rules of a network, and what they have let in and refused.",
    .options = ls_options,
    .notes = "LET IN: packets that have begun something, since the hub's start. REFUSED: packets "
             "between nodes that the rule names, at ports that no rule allows."};

static const struct option rm_options[] = {
    {"NAME", NULL, option_name, &arg.name, NULL, "of the rule", .is_required = true},
    {"--network", "NAME", option_name, &arg.network, "default", "where it holds"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage rm_usage = {.command = "rule rm",
    .summary = "Remove a rule. Without its last rule a network is open again, unless its isolation "
               "is strict.",
    .options = rm_options};

static const struct option test_options[] = {
    {"FROM", NULL, option_text, &arg.source, NULL, "a node", .is_required = true},
    {"TO", NULL, option_text, &arg.destination, NULL,
        "a node, or an address behind one; with :PORT, and udp/ before the port for UDP",
        .is_required = true},
    {"--network", "NAME", option_name, &arg.network, "default", "where both are"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage test_usage = {.command = "rule test",
    .summary = "Say whether a connection is allowed, and by which rule.",
    .options = test_options,
    .notes =
        "\"weft rule test gpu-1 gpu-2:22\" asks for TCP port 22, \"gpu-2:udp/53\" for UDP, and "
        "\"gpu-2\" for ICMP. Exit status: 0 allowed, 3 refused, 1 that could not be found out."};

#define STATUS_REFUSED 3

/* ---- what the hub has ------------------------------------------------------------------------ */

/* All objects of a kind. */
struct list {
    struct object *items; /* owns */
    size_t n;
};

static void list_free(struct list *l)
{
    for (size_t i = 0; i < l->n; i++)
        object_deinit(&l->items[i]);
    free(l->items);
    *l = (struct list){.n = 0};
}

/* CMD_OK, or what the command ends with, after a sentence. */
static int read_list(const char *command, const struct object_kind *kind, struct list *ret)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    const json_t *items;
    struct err e = ERR_NULL;
    char path[256];
    int status;

    (void)snprintf(path, sizeof(path), "/v1/networks/%s/objects/%s", arg.network, kind->name);
    status = admin_call(&arg.target, command, "GET", path, NULL, &answer);
    if (status != CMD_OK)
        return status;
    items = json_object_get(answer.body, "items");
    ret->items = calloc(json_array_size(items) + 1, sizeof(*ret->items));
    for (size_t i = 0; ret->items && i < json_array_size(items); i++) {
        if (object_decode(&ret->items[ret->n], json_array_get(items, i), OBJECT_LENIENT, &e) != 0)
            return cmd_fail(command, "the hub's answer is not understood: %s", err_text(&e));
        ret->n++;
    }
    return ret->items ? CMD_OK : cmd_fail(command, "no memory");
}

static const struct node *find_node(const struct list *nodes, const char *name)
{
    for (size_t i = 0; i < nodes->n; i++)
        if (strcmp(nodes->items[i].meta.name, name) == 0)
            return &nodes->items[i].node;
    return NULL;
}

/* ---- add ------------------------------------------------------------------------------------- */

/* A text with commas, as a list. A new reference; NULL: no memory. */
static json_t *split(const char *text)
{
    json_t *list = json_array();

    while (list && text) {
        const char *comma = strchr(text, ',');
        size_t len = comma ? (size_t)(comma - text) : strlen(text);

        if (json_array_append_new(list, json_stringn(text, len)) < 0)
            list = (json_decref(list), NULL);
        text = comma ? comma + 1 : NULL;
    }
    return list;
}

static bool allows_some(const struct rule *r, const struct node *from, const struct node *to)
{
    return rule_is_about(r->from, r->n_from, &(struct rule_end){.node = from}) &&
           rule_is_about(r->to, r->n_to, &(struct rule_end){.node = to});
}

/* Says which members could not begin anything with which any more; returns how many pairs. */
static size_t say_cut(const struct rule *r, const struct list *nodes)
{
    size_t n = 0;

    for (size_t i = 0; i < nodes->n; i++)
        for (size_t k = 0; k < nodes->n; k++) {
            const struct node *from = &nodes->items[i].node;
            const struct node *to = &nodes->items[k].node;

            if (i == k || from->hub || to->hub || allows_some(r, from, to))
                continue;
            if (n++ < CUT_SHOWN)
                (void)fprintf(stderr, "  %s > %s\n", from->meta.name, to->meta.name);
        }
    if (n > CUT_SHOWN)
        (void)fprintf(stderr, "  and %zu more\n", n - CUT_SHOWN);
    return n;
}

/* Is one among them that is no job's? */
static bool has_plain(const struct list *rules)
{
    bool has = false;

    for (size_t i = 0; i < rules->n; i++)
        has |= rule_of(&rules->items[i])->job[0] == '\0';
    return has;
}

/* The first rule of a network is one to think about. CMD_OK: go on. */
static int check_first(const struct object *rule)
{
    struct list rules = {.n = 0};
    struct list nodes = {.n = 0};
    int status = read_list(add_usage.command, &rule_kind, &rules);
    bool is_first = !has_plain(&rules);

    if (status == CMD_OK && is_first)
        status = read_list(add_usage.command, &node_kind, &nodes);
    if (status == CMD_OK && is_first && !arg.yes) {
        (void)fprintf(stderr,
            "This is the first rule of network \"%s\". From it on what no rule allows "
            "is refused, and these could begin nothing with those any more:\n",
            arg.network);
        if (say_cut(rule_of(rule), &nodes) == 0)
            (void)fprintf(stderr, "  nobody; other ports than those of the rule are shut\n");
        status = cmd_refuse(add_usage.command, "say --yes, and it is added");
    }
    list_free(&rules);
    list_free(&nodes);
    return status;
}

static int rule_add(int argc, char **argv)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    json_auto_t *json = json_pack("{s:s, s:{s:s, s:s}, s:{s:o, s:o, s:o}}", "kind", rule_kind.name,
        "metadata", "name", arg.name, "network", arg.network, "spec", "from", split(arg.from), "to",
        split(arg.to), "allow", split(arg.allow));
    struct object rule = OBJECT_NULL;
    struct err e = ERR_NULL;
    char path[256];
    int status;

    if (!json || object_decode(&rule, json, OBJECT_STRICT, &e) != 0)
        return cmd_refuse(
            add_usage.command, "%s", json ? err_text(&e) : "it is not text, or too long");
    status = check_first(&rule);
    object_deinit(&rule);
    if (status != CMD_OK)
        return status;
    (void)snprintf(
        path, sizeof(path), "/v1/networks/%s/objects/%s/%s", arg.network, rule_kind.name, arg.name);
    status = admin_call(&arg.target, add_usage.command, "PUT", path, json, &answer);
    if (status == CMD_OK)
        (void)printf("%s %s: applied\n", rule_kind.name, arg.name);
    return status;
}

/* ---- ls, rm ---------------------------------------------------------------------------------- */

static void add_peers(struct str *s, const struct rule_peer *peers, unsigned n)
{
    char text[RULE_TEXT_MAX];

    for (unsigned i = 0; i < n; i++)
        str_addf(s, "%s%s", i > 0 ? "," : "", rule_peer_format(&peers[i], text));
}

/* What the hub has counted; an older one has no such call, and there is no body. */
static int read_counts(struct client_answer *ret)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "/v1/networks/%s/rules", arg.network);
    return admin_try(&arg.target, ls_usage.command, "GET", path, NULL, 404, ret);
}

/* A column of the rule @name: "passed" or "refused"; "-": not known. */
static void add_count(struct table *t, const json_t *counts, const char *name, const char *field)
{
    const json_t *rule;
    size_t i;

    json_array_foreach(json_object_get(counts, "rules"), i, rule) {
        const json_t *n = json_object_get(rule, field);

        if (strcmp(fields_text_of(rule, "name"), name) != 0 || !json_is_integer(n))
            continue;
        table_add(t, "%lld", (long long)json_integer_value(n));
        return;
    }
    table_add(t, "-");
}

static void add_rule(struct table *t, const struct object *o, const json_t *counts)
{
    const struct rule *r = rule_of(o);
    _cleanup_(str_deinit) struct str from = STR_NULL;
    _cleanup_(str_deinit) struct str to = STR_NULL;
    _cleanup_(str_deinit) struct str allow = STR_NULL;
    char text[RULE_TEXT_MAX];

    add_peers(&from, r->from, r->n_from);
    add_peers(&to, r->to, r->n_to);
    for (unsigned k = 0; k < r->n_services; k++)
        str_addf(&allow, "%s%s", k > 0 ? "," : "", rule_service_format(&r->services[k], text));
    table_add(t, "%s", o->meta.name);
    table_add(t, "%s", str_text(&from));
    table_add(t, "%s", str_text(&to));
    table_add(t, "%s", str_text(&allow));
    table_add(t, "%s", r->job[0] != '\0' ? r->job : "-");
    add_count(t, counts, o->meta.name, "passed");
    add_count(t, counts, o->meta.name, "refused");
}

static void print_rules(const struct list *rules, const json_t *counts, struct str *out)
{
    static const char *const head[] = {"NAME", "FROM", "TO", "ALLOW", "JOB", "LET IN", "REFUSED"};
    json_int_t refused = json_integer_value(json_object_get(counts, "refused"));
    struct table t = {.n_columns = sizeof(head) / sizeof(*head)};

    for (size_t i = 0; i < t.n_columns; i++)
        table_add(&t, "%s", head[i]);
    for (size_t i = 0; i < rules->n; i++)
        add_rule(&t, &rules->items[i], counts);
    if (rules->n > 0)
        table_format(&t, out);
    else
        str_add(out, "there are no rules: all members reach each other, unless the network's "
                     "isolation is strict\n");
    if (refused > 0)
        str_addf(out, "refused between others, which no rule names: %lld packet%s\n",
            (long long)refused, refused == 1 ? "" : "s");
    table_deinit(&t);
}

static int rule_ls(int argc, char **argv)
{
    _cleanup_(client_answer_deinit) struct client_answer counts = CLIENT_ANSWER_NULL;
    struct list rules = {.n = 0};
    json_t *all = json_array();
    struct str out = STR_NULL;
    int status = read_list(ls_usage.command, &rule_kind, &rules);

    if (status == CMD_OK)
        status = read_counts(&counts);
    for (size_t i = 0; status == CMD_OK && i < rules.n; i++)
        (void)json_array_append_new(all, object_encode(&rules.items[i]));
    if (status == CMD_OK)
        print_rules(&rules, counts.body, &out);
    list_free(&rules);
    if (status == CMD_OK)
        status = admin_print(ls_usage.command, arg.json,
            json_pack("{s:O, s:O*}", "rules", all, "counts", counts.body), &out);
    json_decref(all);
    str_deinit(&out);
    return status;
}

static int rule_rm(int argc, char **argv)
{
    char path[256];
    int status;

    (void)snprintf(
        path, sizeof(path), "/v1/networks/%s/objects/%s/%s", arg.network, rule_kind.name, arg.name);
    status = admin_delete(&arg.target, rm_usage.command, path, NULL, NULL);
    if (status == CMD_OK)
        (void)printf("%s %s: removed\n", rule_kind.name, arg.name);
    return status;
}

/* ---- test ------------------------------------------------------------------------------------ */

/* "gpu-2:22", "gpu-2:udp/53", "gpu-2", "10.9.0.7:80", "[fd09::7]:80" into the packet and the name
 * of the node, or "" with an address. 0, or -EINVAL with words. */
static int parse_destination(
    struct rule_packet *p, char name[static NAME_MAX_LEN + 1], const char *text, struct err *e)
{
    const char *colon = strrchr(text, ':');
    bool is_v6 = strchr(text, ':') != colon && text[0] != '[';
    const char *port = colon && !is_v6 ? colon + 1 : NULL;
    size_t len = port ? (size_t)(colon - text) : strlen(text);
    char host[128];
    char service[64];

    if (text[0] == '[' && len > 2 && text[len - 1] == ']') {
        text++;
        len -= 2;
    }
    if (len >= sizeof(host) || (port && strlen(port) > 40))
        return err_set(e, -EINVAL, "\"%.80s\" is no node and no address", text);
    (void)snprintf(host, sizeof(host), "%.*s", (int)len, text);
    (void)snprintf(service, sizeof(service), "%s%.40s",
        !port               ? "icmp"
        : strchr(port, '/') ? ""
                            : "tcp/",
        port ? port : "");
    name[0] = '\0';
    if (ip_addr_parse(&p->to.address, host, NULL) != 0) {
        if (parse_name(host, "node", e) != 0)
            return -EINVAL;
        (void)snprintf(name, NAME_MAX_LEN + 1, "%.*s", NAME_MAX_LEN, host);
    }
    return rule_service_parse(&p->service, service, e);
}

static bool is_strict(struct list *networks)
{
    for (size_t i = 0; i < networks->n; i++)
        if (networks->items[i].network.isolation == ISOLATION_STRICT)
            return true;
    return false;
}

/* The node that is the way to the address; NULL: none is. */
static const struct node *find_way(const struct list *nodes, const struct ip_addr *address)
{
    for (size_t i = 0; i < nodes->n; i++) {
        const struct node *node = &nodes->items[i].node;

        for (unsigned k = 0; node->routes && k < node->routes->n; k++)
            if (ip_prefix_has(&node->routes->items[k], address))
                return node;
    }
    return NULL;
}

/* Who refuses what no rule allows from the one to the other. @to: NULL: nobody is the way there. */
static void say_where(const struct node *from, const struct node *to)
{
    bool is_at_end = to && !to->stock;

    if (!from->stock && is_at_end)
        (void)printf("enforced by %s, where it is sent, and by %s, where it arrives\n",
            from->meta.name, to->meta.name);
    else if (!from->stock)
        (void)printf("enforced by %s alone, where it is sent\n", from->meta.name);
    else if (is_at_end)
        (void)printf("enforced by %s alone, where it arrives: no agent runs on %s\n", to->meta.name,
            from->meta.name);
    else
        (void)printf(
            "enforced by the relay of a hub alone, which reads no ports: it goes by the pair, "
            "and not on a direct path\n");
}

/* Whether a port is the job's, its node alone knows. */
static void say_job(const struct object *rule, const struct node *to)
{
    const char *job = rule_of(rule)->job;

    if (to && to->hub)
        (void)printf("refused all the same by the rule %s: it is the port of the job %s\n",
            rule->meta.name, job);
    else
        (void)printf("refused all the same by the rule %s while the job %s listens there\n",
            rule->meta.name, job);
}

static int say_answer(const struct list *rules, const struct rule_packet *p, bool strict)
{
    const struct object **all = calloc(rules->n + 1, sizeof(*all));
    struct rule_answer answer;

    if (!all)
        return cmd_fail(test_usage.command, "no memory");
    for (size_t i = 0; i < rules->n; i++)
        all[i] = &rules->items[i];
    answer = rules_decide(all, rules->n, strict, p);
    if (answer.rule)
        (void)printf("allowed by the rule %s\n", answer.rule->meta.name);
    else if (answer.is_allowed)
        (void)printf(
            "allowed: the network has no rules%s\n", rules->n > 0 ? " but those of jobs" : "");
    else if (rules->n == 0)
        (void)printf("refused: the network's isolation is strict, and it has no rules\n");
    else
        (void)printf("refused: none of the %zu rules allows it\n", rules->n);
    if (answer.is_allowed && answer.job)
        say_job(answer.job, p->to.node);
    free(all);
    return answer.is_allowed ? CMD_OK : STATUS_REFUSED;
}

static int rule_test(int argc, char **argv)
{
    struct list nodes = {.n = 0};
    struct list rules = {.n = 0};
    struct list networks = {.n = 0};
    struct rule_packet p = {.from.node = NULL};
    char name[NAME_MAX_LEN + 1];
    struct err e = ERR_NULL;
    int status;

    if (parse_destination(&p, name, arg.destination, &e) != 0)
        return cmd_refuse(test_usage.command, "%s", err_text(&e));
    status = read_list(test_usage.command, &node_kind, &nodes);
    if (status == CMD_OK)
        status = read_list(test_usage.command, &rule_kind, &rules);
    if (status == CMD_OK)
        status = read_list(test_usage.command, &network_kind, &networks);
    p.from.node = find_node(&nodes, arg.source);
    p.to.node = name[0] != '\0' ? find_node(&nodes, name) : NULL;
    if (status == CMD_OK && !p.from.node)
        status = cmd_fail(
            test_usage.command, "network \"%s\" has no node \"%.80s\"", arg.network, arg.source);
    else if (status == CMD_OK && name[0] != '\0' && !p.to.node)
        status =
            cmd_fail(test_usage.command, "network \"%s\" has no node \"%s\"", arg.network, name);
    if (status == CMD_OK)
        status = say_answer(&rules, &p, is_strict(&networks));
    if (p.from.node && (has_plain(&rules) || is_strict(&networks)) &&
        (status == CMD_OK || status == STATUS_REFUSED))
        say_where(p.from.node, p.to.node ? p.to.node : find_way(&nodes, &p.to.address));
    list_free(&nodes);
    list_free(&rules);
    list_free(&networks);
    return status;
}

int cmd_rule(int argc, char **argv)
{
    static const struct option_subcommand table[] = {
        {"add", rule_add, "allow some nodes to reach others", &add_usage},
        {"ls", rule_ls, "list the rules", &ls_usage},
        {"rm", rule_rm, "remove a rule", &rm_usage},
        {"test", rule_test, "say whether a connection is allowed, and by which rule", &test_usage},
        {NULL},
    };

    return options_dispatch("rule", table, argc, argv);
}
