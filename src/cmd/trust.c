/* trust.c - weft trust: who this node's peers are since it first saw them, and what of the hub's
 * word waits to be believed. */
#include <stdio.h>
#include <string.h>

#include "agent/agent_ask.h"
#include "agent/state/state.h"
#include "base/err.h"
#include "base/text.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "mesh/keys/first_sight.h"

#define ASK_TIMEOUT_MS 10000

static struct {
    const char *name;
    const char *socket;
    bool json;
} arg;

static const struct option options[] = {
    {"NAME", NULL, option_name, &arg.name, NULL,
        "believe what the hub says of this peer; of this node itself: what its network says of "
        "trustPolicy"},
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    {"--socket", "PATH", option_socket, &arg.socket, STATE_SOCKET_DEFAULT, "of the agent"},
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "trust",
    .summary = "Show who this node's peers are since it first saw them, and trust a change.",
    .options = options,
    .notes = "Before a key is trusted, compare it with what weft status says on that machine.",
};

/* "10:20:30", of the times that are known. */
static const char *time_of(const json_t *peer, const char *name, char buf[static ADMIN_TIME_MAX])
{
    return json_is_integer(json_object_get(peer, name)) ? admin_time(peer, name, buf) : "-";
}

/* One that waits has a second line, with the key that it would have. */
static void add_offer(struct str *out, const json_t *peer)
{
    const char *key = admin_field(peer, NULL, "offeredKey");
    const char *change = admin_field(peer, NULL, "change");
    char at[ADMIN_TIME_MAX];

    if (json_is_string(json_object_get(peer, "offeredKey")))
        str_addf(out, "    the hub says: another %s, key %s%s%s\n",
            json_is_string(json_object_get(peer, "change")) ? change : "node with that address",
            key, json_object_get(peer, "believedAt") ? ", believed from " : "",
            json_object_get(peer, "believedAt") ? admin_time(peer, "believedAt", at) : "");
}

static void add_peers(struct str *out, const json_t *peers)
{
    const json_t *peer;
    size_t i;

    str_addf(
        out, "%-20s %-8s %-20s %-20s %s\n", "PEER", "STATE", "SEEN SINCE", "LAST HEARD", "KEY");
    json_array_foreach(peers, i, peer) {
        const char *state = json_is_true(json_object_get(peer, "removed"))
                                ? "removed"
                                : admin_field(peer, NULL, "state");
        char seen[ADMIN_TIME_MAX];
        char heard[ADMIN_TIME_MAX];

        str_addf(out, "%-20s %-8s %-20s %-20s %s\n", admin_field(peer, NULL, "name"), state,
            time_of(peer, "seenAt", seen), time_of(peer, "answeredAt", heard),
            json_is_string(json_object_get(peer, "publicKey"))
                ? admin_field(peer, NULL, "publicKey")
                : "-");
        add_offer(out, peer);
    }
}

int cmd_trust(int argc, char **argv)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    struct err e = ERR_NULL;
    json_t *answer = NULL;
    char path[sizeof("/v1/trust/") + NAME_MAX_LEN];
    int status;
    int r;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    (void)snprintf(
        path, sizeof(path), "/v1/trust%s%s", arg.name ? "/" : "", arg.name ? arg.name : "");
    r = agent_ask(arg.socket, arg.name ? "POST" : "GET", path, ASK_TIMEOUT_MS, &answer, &e);
    if (r != 0)
        return cmd_fail("trust", "%s", err_text(&e));
    if (arg.name)
        str_addf(&out, "What the hub says of %s is believed here.\n", arg.name);
    else
        add_peers(&out, json_object_get(answer, "peers"));
    return admin_print("trust", arg.json, answer, &out);
}
