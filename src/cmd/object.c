/* object.c - weft get, weft apply and weft delete: the desired state, as objects. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/client/client.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/manifest.h"
#include "cmd/mesh_options.h"
#include "cmd/options.h"
#include "mesh/object/object.h"
#include "top/top_model.h"

static struct {
    struct admin_target target;
    const char *network;
    const char *kind;
    const char *name;
    const char *other;
    const char *file;
    bool history;
    bool json;
} arg;

/* The row that somebody means who types as for kubectl: "node", "nodes", "wnode". NULL: none. */
static const struct object_kind *find_typed(const char *text)
{
    for (unsigned i = 0; object_kinds[i]; i++)
        if (strcasecmp(text, object_kinds[i]->name) == 0 ||
            strcasecmp(text, object_kinds[i]->plural) == 0 ||
            strcasecmp(text, object_kinds[i]->short_name) == 0)
            return object_kinds[i];
    return NULL;
}

/*
 * Kinds and names are checked here because they become part of a URL. What they mean is the hub's
 * to check. [const char *]
 */
static int option_kind(const struct option *o, const char *text, struct err *e)
{
    const struct object_kind *row = find_typed(text);
    char all[OBJECT_KINDS_TEXT_MAX];

    if (row)
        return option_text(o, row->name, e);
    return err_set(e, -EINVAL, "%s \"%.40s\" is none of %s", o->name, text, object_kinds_text(all));
}

/* What "weft get" shows besides objects. */
#define EDGES    "edges"
#define EVENTS   "events"
#define FINDINGS "findings"
#define NAT      "nat"

/* Also edges of which nobody says anything; a hub of an earlier version leaves them out. */
#define IDLE_TOO "?idle=1"

/* An object's kind, or one of the lists. [const char *] */
static int option_what(const struct option *o, const char *text, struct err *e)
{
    char all[OBJECT_KINDS_TEXT_MAX];

    if (strcmp(text, EDGES) == 0 || strcmp(text, EVENTS) == 0 || strcmp(text, FINDINGS) == 0 ||
        strcmp(text, NAT) == 0)
        return option_text(o, text, e);
    if (find_typed(text))
        return option_kind(o, text, e);
    return err_set(e, -EINVAL, "%s \"%.40s\" is none of %s, %s, %s, %s, %s", o->name, text,
        object_kinds_text(all), EDGES, EVENTS, FINDINGS, NAT);
}

static const struct option get_options[] = {
    {"KIND", NULL, option_what, &arg.kind, NULL,
        "Network, Node, MeshEdge or Rule, as JSON; or, for people, findings: what is wrong now, "
        "and "
        "what to do; edges: how they are; events: what has happened; nat: how long NATs remember, "
        "by "
        "provider",
        .is_required = true},
    {"NAME", NULL, option_object_name, &arg.name, NULL,
        "of one object; without it: all of the kind"},
    {"OTHER", NULL, option_name, &arg.other, NULL, "with --history: the pair's other node"},
    {"--history", NULL, option_flag, &arg.history, NULL,
        "of the pair of two nodes, \"edges A B\": how it has been, by hour for a week and by "
        "minute "
        "for an hour"},
    {"--network", "NAME", option_name, &arg.network, "default", "where to look"},
    {"--json", NULL, option_flag, &arg.json, NULL, "print these lists as JSON, too"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage get_usage = {
    .command = "get",
    .summary = "Print objects as JSON, what is wrong, or how the edges are.",
    .options = get_options,
};

/* The part of one end; NULL: it says nothing. */
static const json_t *part_of(const json_t *row, size_t i, const char *part)
{
    const char *node = admin_text(json_array_get(json_object_get(row, "nodes"), i));
    char owner[80];

    (void)snprintf(owner, sizeof(owner), "%s/%.63s", part, node);
    return json_object_get(json_object_get(row, "status"), owner);
}

/* The way from one end to the other: through the tunnel, and by UDP beside it. UDP that the other
 * end has heard has come that way, even if the answer is lost on the way back. */
static void add_probed(struct table *t, const json_t *said, const json_t *far)
{
    bool is_heard = json_is_true(json_object_get(far, "underlayHeard"));
    const char *udp = is_heard ? "reached" : json_string_value(json_object_get(said, "underlay"));

    /* What it said is old. */
    if (json_is_true(json_object_get(said, "stale")))
        table_add(t, "-");
    else if (said && udp && strcmp(udp, "unknown") != 0)
        table_add(t, "%s, UDP %s", admin_field(said, NULL, "tunnel"), udp);
    else
        table_add(t, "%s", said ? admin_field(said, NULL, "tunnel") : "-");
}

/* Of one end's part: "relay", and how long ago its last handshake was; "-": it says nothing. */
static void add_end(struct table *t, const json_t *row, size_t i, const char *part)
{
    const json_t *said = part_of(row, i, part);
    const json_t *age = json_object_get(said, "handshakeAgeSeconds");
    char ago[32];

    if (strcmp(part, "probe") == 0)
        add_probed(t, said, part_of(row, 1 - i, part));
    else if (!said || !json_object_get(said, "path") ||
             json_is_true(json_object_get(said, "stale")))
        table_add(t, "-");
    else if (json_is_integer(age))
        table_add(t, "%s, %s", admin_field(said, NULL, "path"),
            format_duration(json_integer_value(age) * NSEC_PER_SEC, ago));
    else
        table_add(t, "%s, never", admin_field(said, NULL, "path"));
}

static void add_percent(struct table *t, double percent)
{
    table_add(t, percent > 0 && percent < 0.1 ? "%.3f %%" : "%.1f %%", percent);
}

/* What is lost of what the other end of @i sends, by the counters of its agent. */
static void add_loss(struct table *t, const json_t *row, size_t i)
{
    const json_t *said = part_of(row, i, "agent");
    const json_t *loss = json_object_get(said, "lossIn");
    double lost = (double)json_integer_value(json_object_get(loss, "lost"));
    double packets = (double)json_integer_value(json_object_get(loss, "packets"));

    if (packets < 1 || lost > packets || json_is_true(json_object_get(said, "stale")))
        table_add(t, "-");
    else
        add_percent(t, lost * 100 / packets);
}

/* "20.5 ms, usually 19.8", as the first of both ends has measured it that says it. */
static void add_rtt(struct table *t, const json_t *row)
{
    const json_t *rtt = json_object_get(part_of(row, 0, "agent"), "rtt");
    const json_t *usual;

    rtt = rtt ? rtt : json_object_get(part_of(row, 1, "agent"), "rtt");
    usual = json_object_get(rtt, "usualMs");
    if (!rtt)
        table_add(t, "-");
    else if (json_is_number(usual))
        table_add(t, "%.1f ms, usually %.1f", json_number_value(json_object_get(rtt, "p50Ms")),
            json_number_value(usual));
    else
        table_add(t, "%.1f ms", json_number_value(json_object_get(rtt, "p50Ms")));
}

/* How long the edge has been in its state. */
static void add_since(struct table *t, const json_t *row)
{
    const json_t *for_s = json_object_get(row, "forSeconds");
    char span[32];

    if (json_is_integer(for_s))
        table_add(t, "%s", format_duration(json_integer_value(for_s) * NSEC_PER_SEC, span));
    else
        table_add(t, "-");
}

/* Releases it, too. */
static void print_table(struct table *t)
{
    struct str out = STR_NULL;

    table_format(t, &out);
    (void)cmd_write(stdout, str_text(&out));
    str_deinit(&out);
    table_deinit(t);
}

static void print_edges(const json_t *answer)
{
    static const char *const head[] = {"EDGE", "STATE", "SINCE", "AGENT A", "AGENT B", "PROBE A>B",
        "PROBE B>A", "LOSS A>B", "LOSS B>A", "RTT", "WHY"};
    json_int_t left_out = json_integer_value(json_object_get(answer, "leftOut"));
    struct table t = {.n_columns = sizeof(head) / sizeof(*head)};
    const json_t *row;
    size_t i;

    for (i = 0; i < sizeof(head) / sizeof(*head); i++)
        table_add(&t, "%s", head[i]);
    json_array_foreach(json_object_get(answer, "edges"), i, row) {
        table_add(&t, "%s", admin_field(row, NULL, "name"));
        table_add(&t, "%s", admin_field(row, NULL, "state"));
        add_since(&t, row);
        for (size_t end = 0; end < 2; end++)
            add_end(&t, row, end, "agent");
        for (size_t end = 0; end < 2; end++)
            add_end(&t, row, end, "probe");
        for (size_t end = 2; end-- > 0;)
            add_loss(&t, row, end);
        add_rtt(&t, row);
        table_add(&t, "%s", admin_field(row, NULL, "why"));
    }
    print_table(&t);
    if (left_out > 0)
        (void)printf("and %lld more, which have no room here\n", (long long)left_out);
}

static void add_ms(struct table *t, const json_t *ms)
{
    if (json_is_number(ms))
        table_add(t, "%.*f ms", json_number_value(ms) < 10 ? 2 : 1, json_number_value(ms));
    else
        table_add(t, "-");
}

/* A row for each point, of which each stands for that time. */
static void add_points(struct table *t, const json_t *points, const char *span)
{
    const json_t *point;
    size_t i;

    json_array_foreach(points, i, point) {
        const json_t *loss = json_object_get(point, "lossPercent");
        const json_t *rates = json_object_get(point, "bytesPerSecond");
        char at[ADMIN_TIME_MAX];
        char rate[TOP_CELL_MAX];

        table_add(t, "%s", admin_time(point, "at", at));
        table_add(t, "%s", span);
        add_ms(t, json_object_get(point, "rttMs"));
        add_ms(t, json_object_get(point, "jitterMs"));
        for (size_t way = 0; way < 2; way++) {
            const json_t *percent = json_array_get(loss, way);

            if (json_is_number(percent))
                add_percent(t, json_number_value(percent));
            else
                table_add(t, "-");
        }
        for (size_t way = 0; way < 2; way++)
            table_add(t, "%s",
                rates ? top_format_rate(json_number_value(json_array_get(rates, way)), rate) : "-");
        table_add(t, "%s", admin_field(point, NULL, "state"));
    }
}

/* The oldest first, so that what is now stands at the end. */
static void print_history(const json_t *answer)
{
    const json_t *nodes = json_object_get(answer, "nodes");
    const char *a = admin_text(json_array_get(nodes, 0));
    const char *b = admin_text(json_array_get(nodes, 1));
    struct table t = {.n_columns = 9};

    if (json_array_size(json_object_get(answer, "hours")) == 0 &&
        json_array_size(json_object_get(answer, "minutes")) == 0) {
        (void)printf("nothing was measured of %s and %s yet\n", a, b);
        return;
    }
    table_add(&t, "TIME");
    table_add(&t, "FOR");
    table_add(&t, "RTT");
    table_add(&t, "JITTER");
    table_add(&t, "LOSS %s>%s", a, b);
    table_add(&t, "LOSS %s>%s", b, a);
    table_add(&t, "GOODPUT %s>%s", a, b);
    table_add(&t, "GOODPUT %s>%s", b, a);
    table_add(&t, "PATH");
    add_points(&t, json_object_get(answer, "hours"), "1 h");
    add_points(&t, json_object_get(answer, "minutes"), "1 min");
    print_table(&t);
}

/* A line each, and what to do on a line below it. */
static void print_findings(const json_t *answer)
{
    static const char *const head[] = {"SEVERITY", "CODE", "SUBJECT", "SINCE", "WHAT"};
    const json_t *all = json_object_get(answer, "findings");
    json_int_t left_out = json_integer_value(json_object_get(answer, "leftOut"));
    struct table t = {.n_columns = sizeof(head) / sizeof(*head)};
    const json_t *finding;
    size_t i;

    if (json_array_size(all) == 0 && left_out == 0) {
        (void)printf("nothing is wrong, as far as is known\n");
        return;
    }
    for (i = 0; i < sizeof(head) / sizeof(*head); i++)
        table_add(&t, "%s", head[i]);
    json_array_foreach(all, i, finding) {
        json_int_t for_s = json_integer_value(json_object_get(finding, "forSeconds"));
        char ago[32];

        for (size_t k = 0; k < 3; k++)
            table_add(&t, "%s",
                admin_field(finding, NULL, (const char *[]){"severity", "code", "subject"}[k]));
        table_add(&t, "%s", format_duration(for_s * NSEC_PER_SEC, ago));
        table_add(&t, "%s", admin_field(finding, NULL, "text"));
        for (size_t k = 0; k < 4; k++)
            table_add(&t, "%s", "");
        table_add(&t, "-> %s", admin_field(finding, NULL, "fix"));
    }
    print_table(&t);
    if (left_out > 0)
        (void)printf("and %lld more, which had no room\n", (long long)left_out);
}

static void print_events(const json_t *answer)
{
    struct table t = {.n_columns = 4};
    const json_t *event;
    size_t i;

    table_add(&t, "TIME");
    table_add(&t, "TYPE");
    table_add(&t, "OBJECT");
    table_add(&t, "WHAT");
    json_array_foreach(json_object_get(answer, "events"), i, event) {
        char at[ADMIN_TIME_MAX];

        table_add(&t, "%s", admin_time(event, "time", at));
        table_add(&t, "%s", admin_field(event, NULL, "type"));
        table_add(&t, "%s", admin_field(event, NULL, "object"));
        table_add(&t, "%s", admin_field(event, NULL, "text"));
    }
    print_table(&t);
}

/* "28.5", or "24 to 28.5"; "-": nothing was measured. */
static void add_range(struct table *t, const json_t *range)
{
    double least = json_number_value(json_object_get(range, "least"));
    double most = json_number_value(json_object_get(range, "most"));

    if (!json_is_object(range))
        table_add(t, "-");
    else if (most - least < 0.05)
        table_add(t, "%.1f s", least);
    else
        table_add(t, "%.1f to %.1f s", least, most);
}

static void print_nat(const json_t *answer)
{
    static const char *const head[] = {
        "PROVIDER", "REGION", "NODES", "MEASURED", "BEHIND A NAT", "SURVIVED", "FORGOTTEN AFTER"};
    const json_t *keepalive = json_object_get(answer, "keepaliveSeconds");
    struct table t = {.n_columns = sizeof(head) / sizeof(*head)};
    const json_t *group;
    size_t i;

    for (i = 0; i < sizeof(head) / sizeof(*head); i++)
        table_add(&t, "%s", head[i]);
    json_array_foreach(json_object_get(answer, "providers"), i, group) {
        for (size_t k = 0; k < 2; k++) {
            const char *name = admin_field(group, NULL, (const char *[]){"provider", "region"}[k]);

            table_add(&t, "%s", name[0] ? name : "-");
        }
        for (size_t k = 0; k < 3; k++)
            table_add(&t, "%lld",
                (long long)json_integer_value(
                    json_object_get(group, (const char *[]){"nodes", "measured", "natted"}[k])));
        add_range(&t, json_object_get(group, "survivedSeconds"));
        add_range(&t, json_object_get(group, "forgottenSeconds"));
    }
    print_table(&t);
    if (json_is_integer(keepalive))
        (void)printf("the network's keepalive is %lld s for all\n",
            (long long)json_integer_value(keepalive));
}

/* How a pair has been. */
static int show_history(void)
{
    char name[OBJECT_NAME_MAX + 1];
    char path[384];

    if (strcmp(arg.kind, EDGES) != 0 || !arg.name || !arg.other)
        return cmd_refuse(get_usage.command,
            "--history is of a pair of two nodes: weft get " EDGES " A B --history");
    if (strstr(arg.name, "--"))
        return cmd_refuse(get_usage.command,
            "\"%s\" is a pair, and --history takes its two nodes: weft get " EDGES " A B --history",
            arg.name);
    if (strcmp(arg.name, arg.other) == 0)
        return cmd_refuse(
            get_usage.command, "a pair is of two nodes, and \"%s\" is named twice", arg.name);
    (void)snprintf(path, sizeof(path), "/v1/networks/%s/" EDGES "/%s/history", arg.network,
        edge_name(arg.name, arg.other, name));
    return admin_show(&arg.target, get_usage.command, "GET", path, NULL, arg.json, print_history);
}

int cmd_get(int argc, char **argv)
{
    void (*print)(const json_t *answer);
    char path[256];
    int status;

    if (options_parse(&get_usage, argc, argv, &status))
        return status;
    if (arg.history)
        return show_history();
    if (arg.other)
        return cmd_refuse(get_usage.command,
            "\"%s\" is one argument too many: a second node goes with --history", arg.other);
    print = strcmp(arg.kind, EDGES) == 0      ? print_edges
            : strcmp(arg.kind, EVENTS) == 0   ? print_events
            : strcmp(arg.kind, FINDINGS) == 0 ? print_findings
            : strcmp(arg.kind, NAT) == 0      ? print_nat
                                              : NULL;
    if (print) {
        if (arg.name && print != print_edges && print != print_events)
            return cmd_refuse(
                get_usage.command, "\"%s\" are all of them: no NAME goes with that", arg.kind);
        if (arg.name)
            return cmd_refuse(get_usage.command,
                "\"%s\" are all of them: no NAME goes with that, "
                "but \"weft get MeshEdge NAME\" prints one",
                arg.kind);
        (void)snprintf(path, sizeof(path), "/v1/networks/%s/%s%s", arg.network, arg.kind,
            print == print_edges ? IDLE_TOO : "");
        return admin_show(&arg.target, get_usage.command, "GET", path, NULL, arg.json, print);
    }
    (void)snprintf(path, sizeof(path), "/v1/networks/%s/objects/%s%s%s", arg.network, arg.kind,
        arg.name ? "/" : "", arg.name ? arg.name : "");
    return admin_show(&arg.target, get_usage.command, "GET", path, NULL, true, NULL);
}

static const struct option edges_options[] = {
    {"--network", "NAME", option_name, &arg.network, "default", "where to look"},
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage edges_usage = {
    .command = "edge ls",
    .summary = "Say how the edges are, as \"weft get edges\" does.",
    .options = edges_options,
};

int cmd_edges(int argc, char **argv)
{
    char path[256];
    int status;

    if (options_parse(&edges_usage, argc, argv, &status))
        return status;
    (void)snprintf(path, sizeof(path), "/v1/networks/%s/%s%s", arg.network, EDGES, IDLE_TOO);
    return admin_show(&arg.target, edges_usage.command, "GET", path, NULL, arg.json, print_edges);
}

#define OBJECT_PATH_MAX 256

/* Where an object of a file is written to, by its own kind, network and name. */
static int object_path(char ret[static OBJECT_PATH_MAX], const json_t *object, struct err *e)
{
    const char *kind = admin_field(object, NULL, "kind");
    const char *name = admin_field(object, "metadata", "name");
    const char *network = admin_field(object, "metadata", "network");
    const struct object_kind *row = object_kind_find(kind);
    char all[OBJECT_KINDS_TEXT_MAX];

    if (!*kind)
        return err_set(e, -EINVAL, "an object has no \"kind\": it is one of %s, as text",
            object_kinds_text(all));
    if (!row)
        return err_set(e, -EINVAL, "kind \"%.40s\" is none of %s", kind, object_kinds_text(all));
    if (!*network)
        network = row->is_network ? name : arg.network;
    if (mesh_options_check_name(name, "metadata.name", e) < 0 ||
        parse_name(network, "metadata.network", e) < 0)
        return -EINVAL;
    (void)snprintf(ret, OBJECT_PATH_MAX, "/v1/networks/%s/objects/%s/%s", network, kind, name);
    return 0;
}

/* Nothing is sent of a file in which an object has no place, or is there twice: which of the two is
 * meant? */
static int check_objects(const json_t *objects, struct err *e)
{
    json_auto_t *seen = json_object();
    char path[OBJECT_PATH_MAX];
    const json_t *object;
    int r = seen ? 0 : -ENOMEM;
    size_t i;

    json_array_foreach(objects, i, object) {
        if (r == 0)
            r = object_path(path, object, e);
        if (r == 0 && json_object_get(seen, path))
            r = err_set(e, -EINVAL, "%s \"%s\" is there twice", admin_field(object, NULL, "kind"),
                admin_field(object, "metadata", "name"));
        if (r == 0 && json_object_set_new(seen, path, json_true()) < 0)
            r = -ENOMEM;
    }
    return r;
}

static int put_object(const char *command, const json_t *object)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    struct err e = ERR_NULL;
    char path[OBJECT_PATH_MAX];
    int status;

    if (object_path(path, object, &e) < 0)
        return cmd_fail(command, "%s", err_text(&e));
    status = admin_call(&arg.target, command, "PUT", path, object, &answer);
    if (status == CMD_OK)
        (void)printf("%s %s: applied\n", admin_field(object, NULL, "kind"),
            admin_field(object, "metadata", "name"));
    return status;
}

static const struct option apply_options[] = {
    {"-f", "FILE", option_text, &arg.file, NULL, "YAML or JSON, one or more documents; - for input",
        .is_required = true},
    {"--network", "NAME", option_name, &arg.network, "default",
        "for objects that do not name theirs"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage apply_usage = {
    .command = "apply",
    .summary = "Make the hub's objects as the file says.",
    .options = apply_options,
    .notes = "An object with metadata.resourceVersion is applied only if it is unchanged since.",
};

int cmd_apply(int argc, char **argv)
{
    struct err e = ERR_NULL;
    json_t *objects;
    json_t *object;
    size_t i;
    int status;

    if (options_parse(&apply_usage, argc, argv, &status))
        return status;
    if (manifest_read(&objects, arg.file, &e) < 0)
        return cmd_fail(apply_usage.command, "%s", err_text(&e));
    if (check_objects(objects, &e) < 0) {
        json_decref(objects);
        return cmd_fail(apply_usage.command, "%s; nothing is applied", err_text(&e));
    }
    json_array_foreach(objects, i, object) {
        status = put_object(apply_usage.command, object);
        if (status != CMD_OK)
            break;
    }
    if (status != CMD_OK && json_array_size(objects) > 1)
        (void)fprintf(stderr,
            "weft apply: applied are %zu of %zu objects: that one is not, nor are "
            "those after it\n",
            i, json_array_size(objects));
    json_decref(objects);
    return status;
}

static const struct option delete_options[] = {
    {"KIND", NULL, option_kind, &arg.kind, NULL, "Network, Node, MeshEdge or Rule",
        .is_required = true},
    {"NAME", NULL, option_object_name, &arg.name, NULL, "of the object", .is_required = true},
    {"--network", "NAME", option_name, &arg.network, NULL,
        "where it is (default \"default\"; a Network is in itself)"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage delete_usage = {
    .command = "delete",
    .summary = "Remove an object.",
    .options = delete_options,
    .notes = "A Node is cut off everywhere. A Network goes with its nodes and keys. Without its "
             "MeshEdge a pair talks as the network's topology says.",
};

int cmd_delete(int argc, char **argv)
{
    const char *network;
    char path[256];
    int status;

    if (options_parse(&delete_usage, argc, argv, &status))
        return status;
    network = arg.network                              ? arg.network
              : object_kind_find(arg.kind)->is_network ? arg.name
                                                       : "default";
    (void)snprintf(
        path, sizeof(path), "/v1/networks/%s/objects/%s/%s", network, arg.kind, arg.name);
    status = admin_delete(&arg.target, delete_usage.command, path, NULL, NULL);
    if (status == CMD_OK)
        (void)printf("%s %s: removed\n", arg.kind, arg.name);
    return status;
}
