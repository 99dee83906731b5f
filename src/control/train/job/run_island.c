/* run_island.c - see run_island.h. */
#include "train/job/run_island.h"

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "agent/agent_ask.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "net/netlink/netlink.h"
#include "net/netlink/rtnl.h"
#include "os/statefile.h"
#include "train/job/island_lan.h"
#include "train/job/run.h"

#define ASK_TIMEOUT_MS 5000

#define HOSTS          "/etc/hosts"
#define HOSTS_MAX      (16 << 20) /* bytes; larger is no hosts file */
#define NODES_FILE     "island-nodes"
#define JOB_HOSTS_FILE "hosts"

/* ---- who is reached, and by which interface ------------------------------------------------- */

/* The interface by which packets to @to leave. False: there is no way to it. */
static bool way_to(struct netlink *nl, const struct ip_addr *to, char ret[static IF_NAMESIZE])
{
    const struct rtnl_flow flow = {.to = {.addr = *to}};
    unsigned number;

    return rtnl_way_out(nl, &flow, &number) == 0 && if_indextoname(number, ret);
}

/* Keeps the nodes that are reached by the interface of the first one; @ret: its name. */
static void keep_reached(struct island_lan *l, char ret[static IF_NAMESIZE])
{
    struct netlink nl = NETLINK_NULL;
    char interface[IF_NAMESIZE];
    size_t n = 0;

    ret[0] = '\0';
    if (netlink_open(&nl, NETLINK_ROUTE) == 0)
        for (size_t i = 0; i < l->n; i++) {
            if (!way_to(&nl, &l->mates[i].lan, interface) || (n > 0 && strcmp(interface, ret) != 0))
                continue;
            memcpy(ret, interface, IF_NAMESIZE);
            l->mates[n++] = l->mates[i];
        }
    l->n = n;
    netlink_close(&nl);
}

/* Asks the agent. False: it does not answer. */
static bool find_nodes(
    const char *socket_path, struct island_lan *ret, char ret_interface[static IF_NAMESIZE])
{
    json_t *status = NULL;
    bool found = agent_ask(socket_path, "GET", "/v1/status", ASK_TIMEOUT_MS, &status, NULL) == 0 &&
                 island_lan_of_status(ret, status) == 0;

    json_decref(status);
    if (found)
        keep_reached(ret, ret_interface);
    return found;
}

void run_find_island(struct run *run)
{
    _cleanup_(island_lan_deinit) struct island_lan l = ISLAND_LAN_NULL;

    if (!find_nodes(run->socket_path, &l, run->island_interface))
        run->island_interface[0] = '\0';
}

/* ---- the files ------------------------------------------------------------------------------ */

/* Makes @path hold @text. */
static int write_text(const char *path, const struct str *text, struct err *e)
{
    if (text->failed)
        return err_set(e, -ENOMEM, "no memory for %.200s", path);
    return statefile_replace(path, str_text(text), text->len, 0644, e);
}

static void name_file(const struct run *run, const char *name, char ret[static PATH_MAX])
{
    (void)snprintf(ret, PATH_MAX, "%s/%s", run->dir, name);
}

static int write_nodes(struct run *run, const struct island_lan *l, struct err *e)
{
    _cleanup_(str_deinit) struct str text = STR_NULL;
    char path[PATH_MAX];
    int r = run_make_dir(run, e);

    if (r < 0)
        return r;
    island_lan_format(l, &text);
    name_file(run, NODES_FILE, path);
    r = write_text(path, &text, e);
    if (r == 0)
        run_give(run, "WEFT_ISLAND_LAN", path);
    return r;
}

static bool is_ours(const char *hosts)
{
    return strncmp(hosts, ISLAND_LAN_MARK, strlen(ISLAND_LAN_MARK)) == 0;
}

/* Reads the machine's own file. One that lies over it is taken away before. */
static int read_hosts(char **ret, size_t *ret_len, struct err *e)
{
    char *text = NULL;
    int r = statefile_read(HOSTS, HOSTS_MAX, &text, ret_len, e);

    if (r == 0 && is_ours(text)) {
        free(text);
        text = NULL;
        if (umount2(HOSTS, MNT_DETACH) < 0)
            return err_set(e, -errno, "%s: %s", HOSTS, strerror(errno));
        r = statefile_read(HOSTS, HOSTS_MAX, &text, ret_len, e);
    }
    if (r == 0)
        *ret = text;
    return r;
}

static int lay_hosts(const struct run *run, const struct island_lan *l, struct err *e)
{
    _cleanup_(str_deinit) struct str text = STR_NULL;
    char path[PATH_MAX];
    char *old = NULL;
    size_t len;
    int r = read_hosts(&old, &len, e);

    if (r != 0)
        return r;
    island_lan_hosts(l, &text, old, len);
    free(old);
    name_file(run, JOB_HOSTS_FILE, path);
    r = write_text(path, &text, e);
    if (r == 0 && mount(path, HOSTS, NULL, MS_BIND, NULL) < 0)
        r = err_set(e, -errno, "%s: %s", HOSTS, strerror(errno));
    return r;
}

/* A mount namespace of this process's own: what is mounted in it is seen by the command alone. */
static int take_namespace(struct err *e)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return err_set(e, -errno, "%s", strerror(errno));
    return 0;
}

void run_take_island(struct run *run, struct str *notes)
{
    _cleanup_(island_lan_deinit) struct island_lan l = ISLAND_LAN_NULL;
    char interface[IF_NAMESIZE];
    struct err e = ERR_NULL;

    if (run->island_interface[0] == '\0')
        return;
    if (!find_nodes(run->socket_path, &l, interface))
        (void)err_set(&e, -ENOTCONN, "the agent does not answer");
    if (e.code != 0 || write_nodes(run, &l, &e) < 0) {
        str_addf(notes, "--island-lan: the job is not told the island's nodes: %s\n", err_text(&e));
        run_give(run, "WEFT_ISLAND_LAN", "");
        run_leave_island();
        return;
    }
    if (take_namespace(&e) < 0 || lay_hosts(run, &l, &e) != 0)
        str_addf(notes,
            "--island-lan: names of the island's nodes lead onto the overlay, as it takes root to "
            "lay a hosts file of the job's own: %s\n",
            err_text(&e));
    else
        run->has_island_hosts = true;
}

void run_leave_island(void)
{
    char *text = NULL;
    size_t len;

    if (statefile_read(HOSTS, HOSTS_MAX, &text, &len, NULL) != 0)
        return;
    /* In one more namespace: who started this process may see the same file, and keeps it. */
    if (is_ours(text) && take_namespace(NULL) == 0)
        (void)umount2(HOSTS, MNT_DETACH);
    free(text);
}

void run_keep_island(const struct run *run)
{
    _cleanup_(island_lan_deinit) struct island_lan l = ISLAND_LAN_NULL;
    char interface[IF_NAMESIZE];
    char *text = NULL;
    size_t len;

    if (statefile_read(HOSTS, HOSTS_MAX, &text, &len, NULL) != 0)
        return;
    if (!is_ours(text) && find_nodes(run->socket_path, &l, interface))
        (void)lay_hosts(run, &l, NULL);
    free(text);
}
