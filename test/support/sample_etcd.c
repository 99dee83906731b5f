/* sample_etcd.c - see sample_etcd.h. */
#include "test/support/sample_etcd.h"

#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/secret.h"
#include "os/thread.h"

/* How long a cluster may take to answer. */
#define START_S 60

/* So many ports a process has for its members; then it begins again. */
#define PORTS_EACH 40

struct sample_etcd {
    struct sample_etcd_options opt;
    char dir[64];
    char cluster[400]; /* --initial-cluster */
    char servers[SAMPLE_ETCD_MAX][40];
    unsigned client_ports[SAMPLE_ETCD_MAX];
    unsigned peer_ports[SAMPLE_ETCD_MAX];
    pid_t pids[SAMPLE_ETCD_MAX]; /* 0: it does not run */
    pthread_t thread;            /* that disturbs */
    bool is_disturbed;
    int stop_fd; /* readable: the disturbance ends */
    uint64_t seed;
};

bool sample_etcd_is_there(void)
{
    bool is_there = access("/usr/bin/etcd", X_OK) == 0;

    if (!is_there)
        (void)printf("skipped: there is no /usr/bin/etcd (Debian's etcd-server)\n");
    return is_there;
}

/* ---- members -------------------------------------------------------------------------------- */

/* Outside of the range that connections get theirs from, and of each process another one. */
static unsigned next_port(void)
{
    static unsigned n;

    return 10000 + (unsigned)getpid() % 500 * PORTS_EACH + n++ % PORTS_EACH;
}

/* In the child. */
static void become(const struct sample_etcd *c, unsigned i)
{
    const char *scheme = c->opt.tls_dir ? "https" : "http";
    char name[8];
    char data[96];
    char client[64];
    char peer[64];
    char log[96];
    char files[3][160];
    const char *argv[40] = {"etcd", "--name", name, "--data-dir", data, "--listen-client-urls",
        client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
        "--initial-advertise-peer-urls", peer, "--initial-cluster", c->cluster, "--unsafe-no-fsync",
        "--heartbeat-interval=50", "--election-timeout=300", "--logger=zap", "--log-level=warn"};
    size_t n = 20;
    int fd;

    (void)snprintf(name, sizeof(name), "m%u", i);
    (void)snprintf(data, sizeof(data), "%s/%s", c->dir, name);
    (void)snprintf(client, sizeof(client), "%s://%s", scheme, c->servers[i]);
    (void)snprintf(peer, sizeof(peer), "http://127.0.0.1:%u", c->peer_ports[i]);
    (void)snprintf(log, sizeof(log), "%s/%s.log", c->dir, name);
    if (c->opt.tls_dir) {
        (void)snprintf(files[0], sizeof(files[0]), "--cert-file=%s/server.pem", c->opt.tls_dir);
        (void)snprintf(files[1], sizeof(files[1]), "--key-file=%s/server.key", c->opt.tls_dir);
        (void)snprintf(files[2], sizeof(files[2]), "--trusted-ca-file=%s/ca.pem", c->opt.tls_dir);
        for (size_t k = 0; k < 3; k++)
            argv[n++] = files[k];
        argv[n++] = "--client-cert-auth";
    }
    if (c->opt.token_ttl) {
        argv[n++] = "--auth-token-ttl";
        argv[n++] = c->opt.token_ttl;
    }
    fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    (void)dup2(fd, 1);
    (void)dup2(fd, 2);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)execv("/usr/bin/etcd", (char **)argv);
    _exit(127);
}

void sample_etcd_revive(struct sample_etcd *c, unsigned i)
{
    assert(c->pids[i] == 0);
    c->pids[i] = fork();
    if (c->pids[i] == 0)
        become(c, i);
}

void sample_etcd_kill(struct sample_etcd *c, unsigned i)
{
    if (c->pids[i] <= 0)
        return;
    (void)kill(c->pids[i], SIGKILL);
    (void)waitpid(c->pids[i], NULL, 0);
    c->pids[i] = 0;
}

void sample_etcd_pause(struct sample_etcd *c, unsigned i)
{
    if (c->pids[i] > 0)
        (void)kill(c->pids[i], SIGSTOP);
}

void sample_etcd_resume(struct sample_etcd *c, unsigned i)
{
    if (c->pids[i] > 0)
        (void)kill(c->pids[i], SIGCONT);
}

const char *sample_etcd_server(const struct sample_etcd *c, unsigned i)
{
    return c->servers[i];
}

int sample_etcd_ctl(const struct sample_etcd *c, const char *words)
{
    char command[2048];

    (void)snprintf(command, sizeof(command),
        "ETCDCTL_API=3 etcdctl --endpoints=%s://%s --command-timeout=3s --dial-timeout=1s %s%s%s "
        "%s "
        ">>%s/ctl.log 2>&1",
        c->opt.tls_dir ? "https" : "http", c->servers[0], c->opt.tls_dir ? "--cacert=" : "",
        c->opt.tls_dir ? c->opt.tls_dir : "", c->opt.tls_dir ? "/ca.pem" : "", words, c->dir);
    return system(command);
}

const char *sample_etcd_url(const struct sample_etcd *c, const char *prefix, char *buf, size_t size)
{
    size_t len = (size_t)snprintf(buf, size, "etcd%s://", c->opt.tls_dir ? "s" : "");

    for (unsigned i = 0; i < c->opt.n; i++)
        len += (size_t)snprintf(buf + len, size - len, "%s%s", i > 0 ? "," : "", c->servers[i]);
    (void)snprintf(buf + len, size - len, "?prefix=%s", prefix);
    return buf;
}

/* ---- life ----------------------------------------------------------------------------------- */

/* Does each member know of a leader? It says so on a page for machines that watch it. */
static bool is_healthy(const struct sample_etcd *c)
{
    char command[256];

    for (unsigned i = 0; i < c->opt.n; i++) {
        char tls[200] = "";

        if (c->opt.tls_dir)
            (void)snprintf(tls, sizeof(tls),
                "--cacert %s/ca.pem --cert %s/client.pem --key "
                "%s/client.key",
                c->opt.tls_dir, c->opt.tls_dir, c->opt.tls_dir);
        (void)snprintf(command, sizeof(command),
            "curl -sf -m 2 %s http%s://%s/health | grep -q true", tls, c->opt.tls_dir ? "s" : "",
            c->servers[i]);
        if (system(command) != 0)
            return false;
    }
    return true;
}

struct sample_etcd *sample_etcd_start(const struct sample_etcd_options *opt)
{
    struct sample_etcd *c = calloc(1, sizeof(*c));
    char command[128];
    size_t len = 0;

    c->opt = *opt;
    c->stop_fd = wakeup_open();
    (void)snprintf(c->dir, sizeof(c->dir), "/tmp/weft-test-etcd.XXXXXX");
    if (!mkdtemp(c->dir))
        abort();
    for (unsigned i = 0; i < opt->n; i++) {
        c->client_ports[i] = next_port();
        c->peer_ports[i] = next_port();
        (void)snprintf(c->servers[i], sizeof(c->servers[i]), "127.0.0.1:%u", c->client_ports[i]);
        len += (size_t)snprintf(c->cluster + len, sizeof(c->cluster) - len,
            "%sm%u=http://127.0.0.1:%u", i > 0 ? "," : "", i, c->peer_ports[i]);
    }
    for (unsigned i = 0; i < opt->n; i++)
        sample_etcd_revive(c, i);
    for (unsigned i = 0; i < 10 * START_S; i++) {
        if (is_healthy(c))
            return c;
        (void)poll(NULL, 0, 100);
    }
    (void)snprintf(command, sizeof(command), "cat %s/*.log", c->dir);
    (void)!system(command);
    return sample_etcd_free(c);
}

struct sample_etcd *sample_etcd_free(struct sample_etcd *c)
{
    char command[128];

    if (!c)
        return NULL;
    sample_etcd_calm(c);
    for (unsigned i = 0; i < c->opt.n; i++)
        sample_etcd_kill(c, i);
    (void)snprintf(command, sizeof(command), "rm -rf %s", c->dir);
    (void)!system(command);
    (void)close(c->stop_fd);
    free(c);
    return NULL;
}

/* ---- disturbance ---------------------------------------------------------------------------- */

/* True: it is to end. */
static bool rest(struct sample_etcd *c, unsigned ms)
{
    struct pollfd p = {.fd = c->stop_fd, .events = POLLIN};

    return poll(&p, 1, (int)ms) > 0;
}

/* A member dies, and meanwhile perhaps another one stands still for a moment: then no commit is
 * possible. */
static void *disturb(void *arg)
{
    struct sample_etcd *c = arg;
    struct rng rng = rng_seeded(&c->seed);
    bool is_over = false;

    while (!is_over) {
        unsigned dead = rng_u32(&rng) % c->opt.n;
        unsigned still = (dead + 1 + rng_u32(&rng) % (c->opt.n - 1)) % c->opt.n;

        is_over = rest(c, 300 + rng_u32(&rng) % 700);
        sample_etcd_kill(c, dead);
        is_over = is_over || rest(c, rng_u32(&rng) % 300);
        sample_etcd_pause(c, still);
        is_over = is_over || rest(c, rng_u32(&rng) % 500);
        if (rng_u32(&rng) % 2) {
            sample_etcd_resume(c, still);
            is_over = is_over || rest(c, rng_u32(&rng) % 500);
        }
        sample_etcd_revive(c, dead);
        is_over = is_over || rest(c, rng_u32(&rng) % 500);
        sample_etcd_resume(c, still);
        is_over = is_over || rest(c, 1000);
    }
    return NULL;
}

void sample_etcd_disturb(struct sample_etcd *c, uint64_t seed)
{
    assert(!c->is_disturbed && c->opt.n >= 2);
    c->seed = seed;
    (void)wakeup_clear(c->stop_fd);
    c->is_disturbed = pthread_create(&c->thread, NULL, disturb, c) == 0;
}

void sample_etcd_calm(struct sample_etcd *c)
{
    if (!c->is_disturbed)
        return;
    wakeup_signal(c->stop_fd);
    (void)pthread_join(c->thread, NULL);
    c->is_disturbed = false;
}
