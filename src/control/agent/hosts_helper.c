/* hosts_helper.c - see hosts_helper.h. The agent's side and the helper's. */
#include "agent/hosts_helper.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/state/blocks_file.h"
#include "base/err.h"
#include "mesh/names/hosts.h"
#include "mesh/object/object.h"
#include "net/socket/unix_socket.h"
#include "os/file.h"
#include "os/hosts_file.h"
#include "os/sandbox.h"

/* Most bytes of lines: far more than 60,000 nodes have. */
#define BLOCK_LEN_MAX (32u << 20)

/* Time in which a service manager has to start a helper and the helper has to answer, s. */
#define START_PATIENCE_S 10

/* In the place of a length: the owner's block is to be removed. */
#define NO_BLOCK UINT32_MAX

/** What the agent sends, before @len bytes of lines. */
struct ask {
    char owner[HOSTS_OWNER_MAX];
    uint32_t len; /* host order; or NO_BLOCK */
};

/** What it is answered. */
struct answer {
    int32_t result; /* 0 or negative errno */
    bool changed;
    char why[256]; /* words; "" on success */
};

struct hosts_helper {
    int fd;    /* owns: the agent's end; -1: it has to be connected again */
    pid_t pid; /* of the helper; 0: it is no child of this process */
    /* For connecting again. */
    char socket_path[UNIX_SOCKET_PATH_MAX + 1];
    struct hosts_rules rules;
};

/* ---- bytes; both ends ignore SIGPIPE -------------------------------------------------------- */

static bool receive_all(int fd, void *data, size_t len)
{
    return file_read_all(fd, data, len) == (ssize_t)len;
}

/* ---- the helper's side ---------------------------------------------------------------------- */

/** What a helper goes by. */
struct goes_by {
    const char *path; /* borrowed: the hosts file */
    struct hosts_rules rules;
    struct err refused; /* why it takes no lines; code 0: it does */
};

/* Answers one request. Return: false when the agent has ended, or sends what no agent sends. */
static bool serve(int fd, const struct goes_by *by)
{
    _cleanup_(freep) char *block = NULL;
    struct answer answer = {0};
    struct err e = ERR_NULL;
    struct ask ask;
    int r;

    if (!receive_all(fd, &ask, sizeof(ask)))
        return false;
    ask.owner[sizeof(ask.owner) - 1] = '\0';
    if (ask.len != NO_BLOCK) {
        block = ask.len <= BLOCK_LEN_MAX ? malloc((size_t)ask.len + 1) : NULL;
        if (!block || !receive_all(fd, block, ask.len))
            return false;
        block[ask.len] = '\0';
    }
    r = hosts_check_owner(&by->rules, ask.owner, &e);
    if (r == 0 && block && by->refused.code != 0)
        r = err_set(&e, by->refused.code, "%s", err_text(&by->refused));
    if (r == 0 && block)
        r = hosts_check_block(&by->rules, block, ask.len, &e);
    answer.result = r == 0 ? hosts_file_put(by->path, ask.owner, block, &answer.changed, &e) : r;
    if (answer.result != 0)
        (void)snprintf(answer.why, sizeof(answer.why), "%s", err_text(&e));
    /* One that takes no lines ends, so that the next one looks again. */
    return file_write_all(fd, &answer, sizeof(answer)) == 0 && by->refused.code == 0;
}

/* Serves until the agent closes its end. A signal to the agent's process group does not end it. */
static _Noreturn void live(int fd, const struct goes_by *by)
{
    char real[PATH_MAX];
    char folder[PATH_MAX];
    struct sandbox_path paths[] = {{folder, SANDBOX_READ | SANDBOX_WRITE}};
    struct sandbox s = {
        .kind = SANDBOX_HOSTS, .uid = getuid(), .gid = getgid(), .paths = paths, .n_paths = 1};
    struct err e = ERR_NULL;

    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)prctl(PR_SET_NAME, "weft-hosts");
    (void)snprintf(folder, sizeof(folder), "%s", realpath(by->path, real) ? real : by->path);
    (void)dirname(folder);
    if (dup2(fd, STDIN_FILENO) < 0 || close_range(STDERR_FILENO + 1, UINT_MAX, 0) < 0 ||
        sandbox_enter(&s, NULL, &e) != 0)
        _exit(1);
    while (serve(STDIN_FILENO, by))
        ;
    _exit(0);
}

/* Are these rules, which came over a socket, valid? */
static int check_rules(struct hosts_rules *rules, struct err *e)
{
    int r;

    rules->network[sizeof(rules->network) - 1] = '\0';
    rules->node[sizeof(rules->node) - 1] = '\0';
    r = node_check_name(rules->network, e);
    if (r == 0)
        r = node_check_name(rules->node, e);
    if (r == 0 && (rules->cidr4.len > 32 || rules->cidr6.len > 128))
        r = err_set(e, -EINVAL, "prefixes of %u and %u bits are longer than 32 and 128",
            (unsigned)rules->cidr4.len, (unsigned)rules->cidr6.len);
    return r;
}

static bool is_same_block(const struct ip_prefix *a, const struct ip_prefix *b)
{
    return a->len == b->len && ip_addr_equal(&a->addr, &b->addr);
}

/* Does root say the same as the agent, which said @rules? 0; or non-zero with words. */
static int check_said(const struct hosts_rules *rules, const char *state_dir, struct err *e)
{
    struct hosts_rules have;
    char cidr4[IP_PREFIX_TEXT_MAX];
    char cidr6[IP_PREFIX_TEXT_MAX];
    int r = blocks_file_read(&have, state_dir, e);

    if (r != 0)
        return r > 0 ? -EPERM : r;
    if (strcmp(have.network, rules->network) == 0 && strcmp(have.node, rules->node) == 0 &&
        is_same_block(&have.cidr4, &rules->cidr4) && is_same_block(&have.cidr6, &rules->cidr6))
        return 0;
    return err_set(e, -EPERM,
        "names are those of %s in %s with addresses of %s and %s, as root wrote at the join; the "
        "agent says something else",
        have.node, have.network, ip_prefix_format(&have.cidr4, cidr4),
        ip_prefix_format(&have.cidr6, cidr6));
}

int hosts_helper_serve(const char *path, const char *state_dir, struct err *e)
{
    struct goes_by by = {.path = path};
    int r;

    if (!receive_all(STDIN_FILENO, &by.rules, sizeof(by.rules)))
        return err_set(e, -EPIPE, "nobody says on standard input whose names they are");
    r = check_rules(&by.rules, e);
    if (r < 0)
        return r;
    by.refused.code = check_said(&by.rules, state_dir, &by.refused);
    live(STDIN_FILENO, &by);
}

/* ---- the agent's side ----------------------------------------------------------------------- */

int hosts_helper_start(
    struct hosts_helper **ret, const char *path, const struct hosts_rules *rules, struct err *e)
{
    struct hosts_helper *h = calloc(1, sizeof(*h));
    int fds[2];

    if (!h || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0) {
        free(h);
        return err_set(e, h ? -errno : -ENOMEM, "no sockets for the helper: %s", strerror(errno));
    }
    h->fd = fds[0];
    h->pid = fork();
    if (h->pid == 0)
        live(fds[1], &(struct goes_by){.path = path, .rules = *rules});
    (void)close(fds[1]);
    if (h->pid < 0) {
        int r = err_set(e, -errno, "no process for the helper: %s", strerror(errno));

        (void)close(h->fd);
        free(h);
        return r;
    }
    *ret = h;
    return 0;
}

/* A child that has lost its connection ends, if it has not yet, and is waited for: none is left. */
static void end_child(struct hosts_helper *h)
{
    closep(&h->fd);
    while (h->pid > 0 && waitpid(h->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    h->pid = 0;
}

static int connect_to(struct hosts_helper *h, struct err *e)
{
    struct timeval patience = {.tv_sec = START_PATIENCE_S};

    closep(&h->fd);
    h->fd = unix_socket_connect(h->socket_path, SOCK_STREAM);
    if (h->fd < 0)
        return err_set(e, h->fd, "nobody who writes the hosts file listens on %s: %s",
            h->socket_path, strerror(-h->fd));
    /* The first answer comes only after the service manager has started the helper. */
    if (setsockopt(h->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
        file_write_all(h->fd, &h->rules, sizeof(h->rules)) < 0)
        return err_set(e, -EPIPE, "who listens on %s hangs up", h->socket_path);
    return 0;
}

int hosts_helper_find(struct hosts_helper **ret, const char *socket_path,
    const struct hosts_rules *rules, struct err *e)
{
    struct hosts_helper *h = calloc(1, sizeof(*h));
    int r;

    if (!h)
        return err_set(e, -ENOMEM, "no memory for the helper");
    h->fd = -1;
    h->rules = *rules;
    (void)snprintf(h->socket_path, sizeof(h->socket_path), "%s", socket_path);
    r = connect_to(h, e);
    *ret = r == 0 ? h : hosts_helper_free(h);
    return r;
}

/* Sends one request and takes its answer. Return: false when the helper has ended. */
static bool ask_helper(
    const struct hosts_helper *h, const struct ask *ask, const char *block, struct answer *ret)
{
    return h->fd >= 0 && file_write_all(h->fd, ask, sizeof(*ask)) == 0 &&
           file_write_all(h->fd, block, ask->len == NO_BLOCK ? 0 : ask->len) == 0 &&
           receive_all(h->fd, ret, sizeof(*ret));
}

/* The same, but connects again to a helper that a service manager starts. */
static int ask_until_answered(struct hosts_helper *h, const struct ask *ask, const char *block,
    struct answer *ret, struct err *e)
{
    int r;

    if (ask_helper(h, ask, block, ret))
        return 0;
    if (h->socket_path[0] == '\0') {
        end_child(h);
        return err_set(e, -EPIPE,
            "the process that writes the hosts file has ended; it comes back "
            "with the next start of the agent");
    }
    r = connect_to(h, e);
    if (r < 0)
        return r;
    if (ask_helper(h, ask, block, ret))
        return 0;
    closep(&h->fd);
    return err_set(e, -EPIPE, "the process that writes the hosts file ends without an answer");
}

int hosts_helper_put(
    struct hosts_helper *h, const char *owner, const char *block, bool *ret_changed, struct err *e)
{
    size_t len = block ? strlen(block) : 0;
    struct ask ask = {.len = block ? (uint32_t)len : NO_BLOCK};
    struct answer answer;
    int r;

    if (len > BLOCK_LEN_MAX)
        return err_set(e, -E2BIG, "%zu bytes of names are more than %u", len, BLOCK_LEN_MAX);
    (void)snprintf(ask.owner, sizeof(ask.owner), "%s", owner);
    r = ask_until_answered(h, &ask, block, &answer, e);
    if (r < 0)
        return r;
    if (answer.result != 0)
        return err_set(e, answer.result, "%.255s", answer.why);
    *ret_changed = answer.changed;
    return 0;
}

struct hosts_helper *hosts_helper_free(struct hosts_helper *h)
{
    if (!h)
        return NULL;
    end_child(h);
    free(h);
    return NULL;
}
