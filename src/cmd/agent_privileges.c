/* agent_privileges.c - see agent_privileges.h. */
#include "cmd/agent_privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/hosts_helper.h"
#include "agent/paths/socket/echo_socket.h"
#include "agent/state/blocks_file.h"
#include "agent/state/state.h"
#include "backends/kubernetes/kube_client.h"
#include "base/err.h"
#include "cmd/privileges.h"
#include "os/hosts_file.h"
#include "os/log.h"
#include "uapi/uapi.h"

#define TUN_DEVICE "/dev/net/tun"

/* Ports that only root, or who has the capability, can bind. */
#define PRIVILEGED_PORTS 1024

/** The texts of paths, which struct privileges borrows. */
struct path_texts {
    char measure[PATH_MAX];
    char folder[PATH_MAX];
    char uapi[sizeof(UAPI_SOCKET_DIR) + STATE_INTERFACE_MAX + 8];
    char frames[sizeof(UAPI_SOCKET_DIR) + STATE_INTERFACE_MAX + 8];
    char cluster_token[PATH_MAX];
    char edges_token[PATH_MAX];
};

/*
 * Root starts a helper that writes the hosts file. An agent that is not root looks for one that
 * runs; where there is none, it writes the file itself, if it may.
 */
static int start_helper(struct agent_config *config, const struct state *st, struct err *e)
{
    struct hosts_rules rules = blocks_file_rules(&st->snapshot);
    int r = geteuid() == 0 ? blocks_file_keep(&rules, config->state_dir, e) : 0;

    if (r < 0) {
        /* A node works without names. Nobody may write them for it on its own word. */
        log_warning("the nodes' names are not put into " HOSTS_FILE_DEFAULT ": %s", err_text(e));
        return 0;
    }
    if (r == BLOCKS_FILE_E_UNKEPT)
        log_info("the next start believes the network's blocks once more: %s", err_text(e));
    if (geteuid() == 0)
        return hosts_helper_start(&config->hosts, HOSTS_FILE_DEFAULT, &rules, e);
    if (hosts_helper_find(&config->hosts, HOSTS_HELPER_SOCKET, &rules, e) < 0)
        log_debug("%s", err_text(e));
    return 0;
}

/*
 * The capabilities that the agent keeps. Beside the kernel's WireGuard it sends path frames from
 * WireGuard's own port, which takes raw sockets (net/socket/raw_udp.h). Port 53 of the resolver is
 * below those that anybody may bind.
 */
static uint64_t capabilities(const struct state *st)
{
    uint64_t set = SANDBOX_CAP(CAP_NET_ADMIN);

    if (st->engine != ENGINE_KIND_USERSPACE)
        set |= SANDBOX_CAP(CAP_NET_RAW);
    if (st->answers_dns || (st->listen_port > 0 && st->listen_port < PRIVILEGED_PORTS))
        set |= SANDBOX_CAP(CAP_NET_BIND_SERVICE);
    return set;
}

static int drop(
    const struct agent_config *config, const struct state *st, const char *user, struct err *e)
{
    struct privileges p = {.kind = SANDBOX_AGENT,
        .user = user,
        .capabilities = capabilities(st),
        .may_start = true,
        .has_tunnel = st->engine != ENGINE_KIND_KERNEL};
    _cleanup_(kube_config_deinit) struct kube_config cluster = KUBE_CONFIG_NULL;
    _cleanup_(kube_config_deinit) struct kube_config edges = KUBE_CONFIG_NULL;
    struct path_texts texts;
    int r = 0;

    if (config->cluster)
        r = kube_access_add(&p, &cluster, config->cluster, texts.cluster_token, e);
    if (r == 0 && config->edges_to)
        r = kube_access_add(&p, &edges, config->edges_to, texts.edges_token, e);
    if (r != 0)
        return r;
    (void)snprintf(
        texts.measure, sizeof(texts.measure), "%s%s", config->socket_path, AGENT_MEASURE_SUFFIX);
    (void)snprintf(texts.uapi, sizeof(texts.uapi), UAPI_SOCKET_DIR "/%s.sock", st->interface);
    (void)snprintf(texts.frames, sizeof(texts.frames), UAPI_SOCKET_DIR "/%s.path", st->interface);
    privileges_add(&p, config->state_dir, PRIVILEGES_STATE);
    privileges_add_folder_of(&p, config->socket_path, texts.folder, PRIVILEGES_RUN);
    privileges_add(&p, config->socket_path, PRIVILEGES_SOCKET);
    privileges_add(&p, texts.measure, PRIVILEGES_SOCKET);
    if (st->engine != ENGINE_KIND_KERNEL) {
        privileges_add(&p, UAPI_SOCKET_DIR, PRIVILEGES_RUN);
        privileges_add(&p, texts.uapi, PRIVILEGES_SOCKET);
        privileges_add(&p, texts.frames, PRIVILEGES_SOCKET);
        privileges_add(&p, TUN_DEVICE, PRIVILEGES_DEVICE);
    }
    return privileges_drop(&p, e);
}

int agent_privileges_drop(struct agent_config *config, const char *user, struct err *e)
{
    _cleanup_(state_deinit) struct state st = STATE_NULL;
    int r = state_check_dir(config->state_dir, e);

    if (r == 0 && getrlimit(RLIMIT_MEMLOCK, &config->memlock) < 0)
        r = err_set(e, -errno, "the limit of locked memory cannot be read: %s", strerror(errno));
    if (r == 0)
        r = state_read(&st, config->state_dir, e);
    if (r == STATE_E_ABSENT)
        return 0;
    if (r == 0 && st.keeps_hosts)
        r = start_helper(config, &st, e);
    /* Without it the agent says so as soon as it knows a stock peer. */
    if (r == 0)
        (void)echo_socket_new(&config->pings);
    return r == 0 ? drop(config, &st, user, e) : r;
}

int agent_privileges_prepare(const char *state_dir, const char *user, struct err *e)
{
    _cleanup_(state_deinit) struct state st = STATE_NULL;
    struct hosts_rules rules;
    int r = state_check_dir(state_dir, e);

    if (r == 0)
        r = state_read(&st, state_dir, e);
    if (r == STATE_E_ABSENT)
        return 0;
    if (r == 0) {
        rules = blocks_file_rules(&st.snapshot);
        if (blocks_file_keep(&rules, state_dir, e) != 0)
            log_warning(
                "the nodes' names will not be put into " HOSTS_FILE_DEFAULT ": %s", err_text(e));
    }
    return r == 0 ? privileges_give(state_dir, user, e) : r;
}

/* ==== what reaches a Kubernetes API ========================================================== */

int kube_access_parse(const char **ret, const char *option, const char *text, struct err *e)
{
    static const char scheme[] = "kubernetes:";
    int r;

    if (strncmp(text, scheme, strlen(scheme)) != 0)
        return err_set(e, -EINVAL, "%s \"%.100s\": only \"kubernetes:\" is known", option, text);
    r = kube_config_check(text + strlen(scheme), e);
    if (r == 0)
        *ret = text + strlen(scheme);
    return r;
}

int kube_access_add(struct privileges *p, struct kube_config *c, const char *where,
    char token_folder[static PATH_MAX], struct err *e)
{
    int r = kube_config_read(c, where, e);

    if (r != 0)
        return r;
    privileges_add(p, c->file, PRIVILEGES_READ);
    /* What the kubeconfig holds inline has no path. */
    privileges_add(p, c->fds[0] < 0 ? c->ca_file : NULL, PRIVILEGES_READ);
    privileges_add(p, c->fds[1] < 0 ? c->cert_file : NULL, PRIVILEGES_READ);
    privileges_add(p, c->fds[2] < 0 ? c->key_file : NULL, PRIVILEGES_READ);
    if (c->token_file)
        privileges_add_folder_of(p, c->token_file, token_folder, PRIVILEGES_READ);
    return 0;
}
