/* hub_move.c - weft hub move: tell all nodes where the hub will be, before it moves. */
#include "cmd/hub_move.h"

#include <stdio.h>

#include "api/client/client.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/option_public.h"
#include "cmd/options.h"
#include "hub/networks/publics.h"

static struct {
    struct admin_target target;
    struct option_list publics;
    bool cancel;
    bool json;
} arg;

static const struct option options[] = {
    {"--public", "HOST[:PORT]", option_public, &arg.publics, NULL,
        "where nodes will reach the hub; best first", .many = true},
    {"--cancel", NULL, option_flag, &arg.cancel, NULL, "the hub stays where it is"},
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    {"--socket", "PATH", option_text, &arg.target.socket, "/run/weft/hub.sock",
        "admin socket of the hub on this machine"},
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "hub move",
    .summary = "Tell all nodes where the hub will be, or say who has been told.",
    .options = options,
    .notes = "A hub whose nodes know it by a name needs this only where the name changes.",
};

static void print_list(const char *what, const json_t *list)
{
    const json_t *item;
    size_t i;

    (void)printf("%s", what);
    json_array_foreach(list, i, item)
        (void)printf("%s%s", i == 0 ? " " : ", ", json_string_value(item));
    (void)printf("\n");
}

static int print_answer(const json_t *answer)
{
    const json_t *next = json_object_get(answer, "next");
    const json_t *untold = json_object_get(answer, "untold");
    long long n = json_integer_value(json_object_get(answer, "nodes"));
    long long told = json_integer_value(json_object_get(answer, "told"));

    print_list("the hub is at", json_object_get(answer, "public"));
    if (json_array_size(next) == 0) {
        (void)printf("no other place is announced\n");
        return CMD_OK;
    }
    print_list("it will be at", next);
    (void)printf("%lld of %lld nodes know it\n", told, n);
    if (told < n)
        print_list("they do not hear the hub now, or have no agent:", untold);
    return CMD_OK;
}

static json_t *encode_body(void)
{
    json_t *list = json_array();

    for (size_t i = 0; i < arg.publics.n; i++)
        json_array_append_new(list, json_string(arg.publics.items[i]));
    return json_pack("{s:o}", "public", list);
}

int hub_move(int argc, char **argv)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    json_t *body = NULL;
    int status;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    if (arg.cancel && arg.publics.n > 0)
        status = cmd_refuse(usage.command, "say one of --public and --cancel");
    else if (arg.publics.n > OBJECT_ENDPOINTS_MAX)
        status = cmd_refuse(
            usage.command, "--public is given for more than %d places", OBJECT_ENDPOINTS_MAX);
    else if (arg.cancel || arg.publics.n > 0)
        status = admin_call(
            &arg.target, usage.command, "PUT", "/v1/move", body = encode_body(), &answer);
    else
        status = admin_call(&arg.target, usage.command, "GET", "/v1/move", NULL, &answer);
    json_decref(body);
    option_list_deinit(&arg.publics);
    if (status != CMD_OK)
        return status;
    return arg.json ? admin_print_json(answer.body) : print_answer(answer.body);
}
