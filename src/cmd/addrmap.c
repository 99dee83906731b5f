/* addrmap.c - weft addrmap: translate the nodes' private addresses to their public ones,
 * unencrypted. */
#include "mesh/names/addrmap.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_ask.h"
#include "agent/state/state.h"
#include "base/err.h"
#include "base/text.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "mesh/snapshot/snapshot.h"
#include "net/netlink/nft.h"
#include "os/file.h"
#include "os/interrupt.h"
#include "os/log.h"

/* Family and name of Weft's table in nftables. */
#define FAMILY "ip"
#define TABLE  "weft_addrmap"

#define ASK_TIMEOUT_MS 5000

static struct {
    const char *socket;
    nsec_t period;
    bool print;
    bool json;
    bool remove;
} arg;

static const struct option options[] = {
    {"--print", NULL, option_flag, &arg.print, NULL,
        "print what would be translated, and change nothing"},
    {"--json", NULL, option_flag, &arg.json, NULL, "the same as JSON"},
    {"--remove", NULL, option_flag, &arg.remove, NULL,
        "remove what one that was killed has left behind"},
    {"--period", "DURATION", option_duration, &arg.period, "5s",
        "how often it looks for other addresses", .min = NSEC_PER_SEC, .max = 3600 * NSEC_PER_SEC},
    {"--socket", "PATH", option_socket, &arg.socket, STATE_SOCKET_DEFAULT, "of the agent"},
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "addrmap",
    .summary = "Translate the nodes' private addresses to their public ones, without a tunnel.",
    .options = options,
    .notes =
        "NOTHING IS ENCRYPTED OR AUTHENTICATED on that way: only for links that you trust.\n"
        "Run it on every node; it keeps the translation until it is ended, and removes it then.",
};

static const char *const warning =
    "packets to these addresses leave this machine UNENCRYPTED and UNAUTHENTICATED, outside of the "
    "overlay: who is on the way can read and change gradients, weights and the rendezvous, and who "
    "reaches the workers' ports can join in; use it only between networks whose link you trust, "
    "behind a firewall that admits the job's own nodes alone";

static int print_json(const struct addrmap *m)
{
    json_auto_t *all = json_pack("{s:[], s:[]}", "map", "leftOut");
    char from[IP_ADDR_TEXT_MAX];
    char to[IP_ADDR_TEXT_MAX];

    for (size_t i = 0; i < m->n; i++)
        (void)json_array_append_new(json_object_get(all, "map"),
            json_pack("{s:s, s:s, s:s}", "node", m->entries[i].node, "private",
                ip_addr_format(&m->entries[i].private, from), "public",
                ip_addr_format(&m->entries[i].public, to)));
    for (size_t i = 0; i < m->n_gaps; i++)
        (void)json_array_append_new(json_object_get(all, "leftOut"),
            json_pack("{s:s, s:s}", "node", m->gaps[i].node, "why", m->gaps[i].why));
    return admin_print_json(usage.command, all);
}

/* The map, of the agent's present snapshot. */
static int read_map(struct addrmap *ret, struct err *e)
{
    _cleanup_(snapshot_deinit) struct snapshot s = SNAPSHOT_NULL;
    json_auto_t *json = NULL;
    int r = agent_ask(arg.socket, "GET", "/v1/snapshot", ASK_TIMEOUT_MS, &json, e);

    if (r == 0)
        r = snapshot_decode(&s, json, NULL, e);
    if (r == 0 && addrmap_make(ret, &s) < 0)
        r = err_set(e, -ENOMEM, "no memory for the map");
    return r;
}

static int print_map(void)
{
    _cleanup_(addrmap_deinit) struct addrmap m = ADDRMAP_NULL;
    _cleanup_(str_deinit) struct str out = STR_NULL;
    struct err e = ERR_NULL;

    if (read_map(&m, &e) != 0)
        return cmd_fail("addrmap", "%s", err_text(&e));
    if (arg.json)
        return print_json(&m);
    addrmap_add_chain(&out, &m);
    (void)printf("table " FAMILY " " TABLE " {\n%s\n}\n", str_text(&out));
    for (size_t i = 0; i < m.n_gaps; i++)
        (void)printf("# left out: %s: %s\n", m.gaps[i].node, m.gaps[i].why);
    return CMD_OK;
}

static void log_map(const struct addrmap *m)
{
    char from[IP_ADDR_TEXT_MAX];
    char to[IP_ADDR_TEXT_MAX];

    for (size_t i = 0; i < m->n; i++)
        log_info("%s: %s leads to %s, unencrypted", m->entries[i].node,
            ip_addr_format(&m->entries[i].private, from),
            ip_addr_format(&m->entries[i].public, to));
    for (size_t i = 0; i < m->n_gaps; i++)
        log_info("%s is left out: %s", m->gaps[i].node, m->gaps[i].why);
}

/* Reads the map from the agent and applies it if it has changed. While the agent is away the last
 * map stays; only the @first reading may fail for that. 0, or non-zero with words. */
static int follow(struct addrmap *have, bool first, struct err *e)
{
    _cleanup_(str_deinit) struct str chain = STR_NULL;
    struct addrmap want = ADDRMAP_NULL;
    int r = read_map(&want, e);

    if (r != 0)
        return first ? r : 0;
    if (!first && addrmap_equal(have, &want) && have->n_gaps == want.n_gaps) {
        addrmap_deinit(&want);
        return 0;
    }
    addrmap_add_chain(&chain, &want);
    r = chain.failed ? err_set(e, -ENOMEM, "no memory for the map")
                     : nft_replace_table(FAMILY, TABLE, str_text(&chain), e);
    if (r == 0)
        log_map(&want);
    addrmap_deinit(have);
    *have = want;
    return r;
}

/* Translates until a signal ends this process. 0, or non-zero with words. */
static int keep(struct err *e)
{
    _cleanup_(addrmap_deinit) struct addrmap m = ADDRMAP_NULL;
    _cleanup_(closep) int signal_fd = end_signals_open();
    struct pollfd pfd = {.fd = signal_fd, .events = POLLIN};
    int removed;
    int r;

    if (signal_fd < 0)
        return err_set(e, signal_fd, "cannot wait for signals: %s", strerror(-signal_fd));
    r = follow(&m, true, e);
    if (r != 0)
        return r;
    log_warning("%s", warning);
    while (r == 0 && poll(&pfd, 1, (int)(arg.period / NSEC_PER_MSEC)) == 0)
        r = follow(&m, false, e);
    /* After a failure as well: no process would remove the translation later. */
    removed = nft_replace_table(FAMILY, TABLE, NULL, r == 0 ? e : NULL);
    return r == 0 ? removed : r;
}

int cmd_addrmap(int argc, char **argv)
{
    struct err e = ERR_NULL;
    int status;
    int r;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    if (arg.remove && (arg.print || arg.json))
        return cmd_refuse("addrmap", "--remove prints nothing: give it without --print and --json");
    if (arg.print || arg.json)
        return print_map();
    if (geteuid() != 0)
        return cmd_fail("addrmap", "only root can change the packet filter");
    log_init("addrmap", LOG_LEVEL_INFO);
    r = arg.remove ? nft_replace_table(FAMILY, TABLE, NULL, &e) : keep(&e);
    if (r != 0)
        return cmd_fail("addrmap", "%s", err_text(&e));
    if (!arg.remove)
        log_info("removed: the private addresses lead to the local network again");
    return CMD_OK;
}
