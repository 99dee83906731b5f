/* service_process.c - see service_process.h. */
#include "measure/service_process.h"

#include <errno.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "measure/service_wire.h"
#include "os/sandbox.h"

#define IN_CAP (64u << 10)

/* What the agent has sent so far. */
struct told {
    int fd;                         /* borrowed */
    struct service *service;        /* owns; NULL until the configuration has come */
    struct service_wire config;     /* @service pins its texts */
    struct ip_addr own;             /* this node's address, from the list that is coming in */
    struct service_member *members; /* owns; room for @n_wanted */
    size_t n_wanted;                /* members in the list that is coming in; 0: there is none */
    size_t n;                       /* how many of these have arrived */
    size_t len;                     /* bytes used in @in */
    uint8_t in[IN_CAP];
};

/* ---- the sandbox ---------------------------------------------------------------------------- */

/* Leaves accessible what facts.h and the resolver read, and the folder of the unix socket, where
 * the socket is made and removed. All other files become inaccessible. */
static int confine(const char *socket_path, struct err *e)
{
    char folder[SERVICE_WIRE_PATH_CAP];
    struct sandbox_path paths[] = {
        {"/usr", SANDBOX_READ},
        {"/bin", SANDBOX_READ},
        {"/lib", SANDBOX_READ},
        {"/lib32", SANDBOX_READ},
        {"/lib64", SANDBOX_READ},
        {"/opt", SANDBOX_READ},
        {"/etc", SANDBOX_READ},
        {"/run", SANDBOX_READ},
        {"/proc", SANDBOX_READ},
        {"/sys", SANDBOX_READ},
        {"/dev/null", SANDBOX_READ | SANDBOX_WRITE},
        {"/var/lib/sss", SANDBOX_READ},
        {folder, SANDBOX_READ | SANDBOX_WRITE},
    };
    struct sandbox sandbox = {.kind = SANDBOX_MEASURE,
        .uid = geteuid(),
        .gid = getegid(),
        .paths = paths,
        .n_paths = sizeof(paths) / sizeof(*paths)};

    memcpy(folder, socket_path, strlen(socket_path) + 1);
    paths[sandbox.n_paths - 1].path = dirname(folder);
    if (socket_path[0] == '\0')
        sandbox.n_paths--;
    return sandbox_enter(&sandbox, NULL, e);
}

/* ---- messages ------------------------------------------------------------------------------- */

static int begin(struct told *t, const struct service_wire *m, struct err *e)
{
    struct service_config config = {.port = m->port};
    int r;

    t->config = *m;
    if (m->interface[0] != '\0')
        config.interface = t->config.interface;
    if (m->socket_path[0] != '\0')
        config.socket_path = t->config.socket_path;
    r = confine(m->socket_path, e);
    return r < 0 ? r : service_new(&t->service, &config, e);
}

static void finish_list(struct told *t)
{
    service_set_members(t->service, &t->own, t->members, t->n);
    free(t->members);
    t->members = NULL;
    t->n_wanted = t->n = 0;
}

static int begin_list(struct told *t, const struct service_wire *m, struct err *e)
{
    t->members = calloc((size_t)m->n + 1, sizeof(*t->members));
    if (!t->members)
        return err_set(e, -ENOMEM, "no memory for %u members", (unsigned)m->n);
    t->own = m->own;
    t->n_wanted = m->n;
    if (m->n == 0)
        finish_list(t);
    return 0;
}

static int take(struct told *t, const struct service_wire *m, struct err *e)
{
    bool wants_config = !t->service;
    bool wants_member = t->n_wanted > 0;

    if ((m->type == SERVICE_WIRE_CONFIG) != wants_config ||
        (m->type == SERVICE_WIRE_MEMBER) != wants_member)
        return err_set(e, -EPROTO, "the agent says %u out of turn", (unsigned)m->type);
    if (m->type == SERVICE_WIRE_CONFIG)
        return begin(t, m, e);
    if (m->type == SERVICE_WIRE_LIST)
        return begin_list(t, m, e);
    if (m->type == SERVICE_WIRE_LOOK) {
        service_recheck(t->service);
        return 0;
    }
    t->members[t->n++] = m->member;
    if (t->n == t->n_wanted)
        finish_list(t);
    return 0;
}

/* Carries out all messages that have arrived completely. */
static int take_messages(struct told *t, struct err *e)
{
    size_t off = 0;
    int r = 0;

    while (r == 0) {
        struct service_wire m;
        size_t used = 0;

        r = service_wire_decode(&m, t->in + off, t->len - off, &used);
        if (r == SERVICE_WIRE_E_SHORT)
            break;
        r = r != 0 ? err_set(e, -EPROTO, "the agent says what is no message") : take(t, &m, e);
        off += used;
    }
    memmove(t->in, t->in + off, t->len - off);
    t->len -= off;
    return r < 0 ? r : 0;
}

int service_process_run(int fd, struct err *e)
{
    struct told *t = calloc(1, sizeof(*t));
    ssize_t n = 1;
    int r = 0;

    if (!t)
        return err_set(e, -ENOMEM, "no memory for the measuring service");
    t->fd = fd;
    while (r == 0 && n != 0) {
        n = recv(t->fd, t->in + t->len, IN_CAP - t->len, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        t->len += (size_t)n;
        r = take_messages(t, e);
    }
    (void)service_free(t->service);
    free(t->members);
    free(t);
    return r;
}
