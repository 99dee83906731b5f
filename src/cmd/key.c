/* key.c - weft key: keys that change. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/client/client.h"
#include "base/err.h"
#include "base/text.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "mesh/keys/key_node.h"
#include "mesh/object/fields.h"
#include "mesh/object/object.h"

static struct {
    struct admin_target target;
    const char *network;
    const char *name;
    bool all;
    bool force;
    bool json;
} arg;

static const struct option rotate_options[] = {
    {"NODE", NULL, option_name, &arg.name, NULL, "the node whose key is to change"},
    {"--all", NULL, option_flag, &arg.all, NULL, "all nodes that run an agent"},
    {"--force", NULL, option_flag, &arg.force, NULL,
        "wait for nobody: who has not heard of the next key is cut off until it does"},
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    {"--network", "NAME", option_name, &arg.network, "default", "whose nodes"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage rotate_usage = {
    .command = "key rotate",
    .summary = "Have nodes change their keys, while everybody goes on talking to everybody.",
    .options = rotate_options,
    .notes = "It returns when the nodes are asked; \"weft key ls\" shows how far they are.",
};

static const struct option ls_options[] = {
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    {"--network", "NAME", option_name, &arg.network, "default", "whose nodes"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage ls_usage = {
    .command = "key ls",
    .summary =
        "List the keys of a network's nodes, since when they have them, and who changes his.",
    .options = ls_options,
};

/* ---- ls -------------------------------------------------------------------------------------- */

/* "prepared, waits for gpu-3 and 4 more". */
static void add_course(struct str *out, const struct node *node, const json_t *json)
{
    const json_t *change = json_object_get(json_object_get(json, "status"), "keyChange");
    const json_t *names = json_object_get(change, "waitsFor");
    json_int_t n = json_integer_value(json_object_get(change, "waits"));
    const char *why = json_string_value(json_object_get(change, "why"));
    const char *first = json_string_value(json_array_get(names, 0));

    if (!key_node_next(node)) {
        bool is_asked = node->keys && node->keys->wanted_serial > key_node_serial(node);

        str_add(out, is_asked ? "asked" : "-");
        return;
    }
    str_add(out, change ? fields_text_of(change, "stage") : "changing");
    if (first && n > 0)
        str_addf(out, ", waits for %s", first);
    if (first && n > 1)
        str_addf(out, " and %" JSON_INTEGER_FORMAT " more", n - 1);
    if (why)
        str_addf(out, ", %s", why);
}

static int print_list(const json_t *body)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    const json_t *json;
    size_t i;

    str_addf(&out, "%-20s %-44s %6s  %-20s %s\n", "NODE", "KEY", "SERIAL", "SINCE", "CHANGES");
    json_array_foreach(json_object_get(body, "items"), i, json) {
        struct object o = OBJECT_NULL;
        struct key_statement last = {.serial = 0};
        json_t *made;
        char key[X25519_BASE64_MAX];
        char since[ADMIN_TIME_MAX];
        struct err e = ERR_NULL;

        if (object_decode(&o, json, OBJECT_LENIENT, &e) != 0)
            return cmd_fail(
                ls_usage.command, "the hub's answer is not understood: %s", err_text(&e));
        if (!o.node.hub) {
            (void)key_node_last(&o.node, &last);
            made = json_pack("{s:I}", "at", (json_int_t)last.made_at);
            str_addf(&out, "%-20s %-44s %6" PRIu64 "  %-20s ", o.node.meta.name,
                x25519_public_format(&o.node.key, key), last.serial,
                last.serial ? admin_time(made, "at", since) : "-");
            json_decref(made);
            add_course(&out, &o.node, json);
            str_add(&out, "\n");
        }
        object_deinit(&o);
    }
    return admin_print(ls_usage.command, false, NULL, &out);
}

static int key_ls(int argc, char **argv)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    char path[256];
    int status;

    (void)snprintf(path, sizeof(path), "/v1/networks/%s/objects/Node", arg.network);
    status = admin_call(&arg.target, ls_usage.command, "GET", path, NULL, &answer);
    if (status != CMD_OK)
        return status;
    return arg.json ? admin_print_json(ls_usage.command, answer.body) : print_list(answer.body);
}

/* ---- rotate ---------------------------------------------------------------------------------- */

/* @ret: the hub's answer is added to the array. Return: as admin_call(). */
static int rotate_one(const char *name, json_t *ret)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    json_t *body = arg.force ? json_pack("{s:b}", "force", 1) : json_object();
    char path[256];
    int status;

    (void)snprintf(path, sizeof(path), "/v1/networks/%s/nodes/%s/key", arg.network, name);
    status = admin_call(&arg.target, rotate_usage.command, "POST", path, body, &answer);
    json_decref(body);
    if (status != CMD_OK)
        return status;
    if (!arg.json && json_is_true(json_object_get(answer.body, "changing")))
        (void)printf("%s is changing its key already\n", name);
    else if (!arg.json)
        (void)printf("%s is asked to change its key\n", name);
    (void)json_array_append(ret, answer.body);
    return CMD_OK;
}

/* One that cannot does not keep the others from it. */
static int rotate_all(json_t *ret)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    const json_t *json;
    char path[256];
    int status;
    size_t i;

    (void)snprintf(path, sizeof(path), "/v1/networks/%s/objects/Node", arg.network);
    status = admin_call(&arg.target, rotate_usage.command, "GET", path, NULL, &answer);
    json_array_foreach(json_object_get(answer.body, "items"), i, json) {
        const json_t *spec = json_object_get(json, "spec");
        const char *name = fields_text_of(json_object_get(json, "metadata"), "name");

        if (json_object_get(spec, "hub") || json_is_true(json_object_get(spec, "stock")) ||
            node_check_name(name, NULL) != 0)
            continue;
        if (rotate_one(name, ret) != CMD_OK)
            status = CMD_FAILED;
    }
    return status;
}

static int key_rotate(int argc, char **argv)
{
    json_t *all = json_array();
    int status;

    if (arg.all == (arg.name != NULL)) {
        json_decref(all);
        return cmd_refuse(rotate_usage.command, "say either a node or --all");
    }
    status = arg.all ? rotate_all(all) : rotate_one(arg.name, all);
    if (arg.json && status == CMD_OK)
        status = admin_print_json(rotate_usage.command, all);
    json_decref(all);
    return status;
}

int cmd_key(int argc, char **argv)
{
    static const struct option_subcommand table[] = {
        {"ls", key_ls, "list the keys of nodes, and who changes his", &ls_usage},
        {"rotate", key_rotate, "have nodes change their keys", &rotate_usage},
        {NULL},
    };

    return options_dispatch("key", table, argc, argv);
}
