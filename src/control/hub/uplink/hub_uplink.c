/* hub_uplink.c - see hub_uplink.h. */
#include "hub/uplink/hub_uplink.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/content/body.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/traffic.h"
#include "hub/model/model.h"
#include "measure/order.h"
#include "measure/train_process.h"
#include "os/file.h"
#include "os/log.h"
#include "os/process.h"
#include "relay/line.h"

/* A process takes some seconds. */
#define PROCESS_MAX (90 * NSEC_PER_SEC)
/* It says one line. */
#define SAID_MAX 4096

/* While so much is relayed, and a quarter of the line at least, a train would measure what that
 * leaves, and be in its way, bit/s. */
#define BUSY_FROM UINT64_C(10000000)

void hub_uplink_init(struct hub_uplink *hu, hub_uplink_place_fn place, uint32_t random, nsec_t now)
{
    *hu = (struct hub_uplink){.place = place, .fd = -1};
    uplink_plan_init(&hu->plan, random, now);
}

/* ---- whom to ask ----------------------------------------------------------------------------- */

static bool is_busy(const struct hub_uplink *hu, const struct relay_line *line)
{
    return line->rate >= BUSY_FROM && line->rate >= hu->found / 4;
}

static bool is_fit(
    const struct hub_uplink *hu, const struct model_node *node, nsec_t now, struct ip_addr *ret)
{
    return node_has_agent(&node->spec) && !node->served->leaving && hu->place(node, now, ret);
}

/* All that may be asked. */
static void offer_nodes(
    struct hub_uplink *hu, const struct model_network *net, nsec_t now, int64_t wall_s)
{
    char key[X25519_BASE64_MAX];
    struct ip_addr at;

    for (size_t i = 0; i < net->nodes.n; i++) {
        const struct model_node *node = model_node_at(net, i);

        if (is_fit(hu, node, now, &at))
            uplink_plan_offer(&hu->plan, &hu->trains, x25519_public_format(&node->spec.key, key),
                false, now, wall_s);
    }
}

static bool is_served(const struct model_network *net)
{
    return net->served->is_up && net->has_key && !net->leaving;
}

static const struct model_node *find_node(const struct model *model, const char *key)
{
    struct x25519_public public;

    if (x25519_public_parse(&public, key, NULL) < 0)
        return NULL;
    for (size_t i = 0; i < model->networks.n; i++) {
        const struct model_node *node = model_find_key(model_network_at(model, i), &public);

        if (node)
            return node;
    }
    return NULL;
}

static const struct model_node *choose(struct hub_uplink *hu, const struct model *model,
    const struct relay_line *line, nsec_t now, int64_t wall_s)
{
    const char *key;

    for (size_t i = 0; i < model->networks.n && !is_busy(hu, line); i++)
        if (is_served(model_network_at(model, i)))
            offer_nodes(hu, model_network_at(model, i), now, wall_s);
    key = uplink_plan_choose(&hu->plan, uplink_estimate(&hu->trains, wall_s).state, now);
    if (!key)
        return NULL;
    (void)snprintf(hu->peer, sizeof(hu->peer), "%s", key);
    return find_node(model, key);
}

/* ---- the process ----------------------------------------------------------------------------- */

/* Says to the process at @fd to whom to send. So short a line goes whole. */
static bool say_task(int fd, const struct train_task *t)
{
    json_t *json = train_task_encode(t);
    _cleanup_(str_deinit) struct str line = STR_NULL;
    char *text = json ? body_format(json) : NULL;
    bool is_said = false;

    if (text) {
        str_addf(&line, "%s\n", text);
        secret_wipe(text, strlen(text));
        is_said = !line.failed &&
                  send(fd, line.text, line.len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)line.len;
        secret_wipe(line.text, line.len);
    }
    free(text);
    body_wipe_text(json, "key");
    json_decref(json);
    return is_said;
}

static int start(struct hub_uplink *hu, const struct train_task *t, struct err *e)
{
    const char *const argv[] = {hu->program ? hu->program : "/proc/self/exe", "trains", NULL};
    int fds[2];
    int r;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return err_set(e, -errno, "no socket: %s", strerror(errno));
    r = process_link(argv, fds[1], &hu->pid, e);
    if (r == 0 && !say_task(fds[0], t))
        r = err_set(e, -ENOMEM, "no memory");
    closep(&fds[1]);
    hu->fd = TAKE_FD(fds[0]);
    return r;
}

static void stop(struct hub_uplink *hu)
{
    if (hu->pid > 0) {
        (void)kill(hu->pid, SIGKILL);
        (void)process_has_ended(hu->pid);
    }
    closep(&hu->fd);
    str_deinit(&hu->said);
    hu->pid = 0;
}

static void begin_trains(struct hub_uplink *hu, const struct model_node *node, nsec_t now)
{
    const struct model_network *net = node->net;
    struct train_task t = {
        .port = PROBE_PORT, .own = net->address4, .peer = node->spec.address4, .known = hu->found};
    struct err e = ERR_NULL;

    (void)snprintf(t.interface, sizeof(t.interface), "%s", net->served->interface);
    if (!is_fit(hu, node, now, &t.underlay) || !measure_proof_key_make(&t.key, &net->secret,
                                                   &node->spec.key, &net->public, &node->spec.key))
        return;
    hu->started_at = now;
    if (start(hu, &t, &e) < 0) {
        log_warning("what the hub's line carries is not measured: %s", err_text(&e));
        stop(hu);
    }
    secret_wipe(&t.key, sizeof(t.key));
}

/* Takes what the process has said so far. */
static void hear(struct hub_uplink *hu)
{
    char buf[1024];
    ssize_t n = 0;

    while (hu->fd >= 0 && (n = recv(hu->fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0) {
        str_add_bytes(&hu->said, buf, (size_t)n);
        if (hu->said.len > SAID_MAX)
            closep(&hu->fd);
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR))
        closep(&hu->fd);
}

static void conclude(struct hub_uplink *hu, nsec_t now, int64_t wall_s)
{
    struct uplink_train train = {.at_s = wall_s};
    struct train_answer a;
    json_t *json = NULL;

    if (!hu->said.failed && body_parse(&json, str_text(&hu->said), hu->said.len, NULL) == 0 &&
        train_answer_decode(&a, json, NULL) == 0 && a.bits_per_s > 0) {
        memcpy(train.peer, hu->peer, sizeof(train.peer));
        train.bits_per_s = a.bits_per_s;
        train.is_line = a.is_line;
        uplink_put(&hu->trains, &train);
        uplink_plan_on_train(&hu->plan, uplink_estimate(&hu->trains, wall_s).state, now);
    }
    json_decref(json);
}

/* Has the process ended? */
static bool follow(struct hub_uplink *hu, nsec_t now, int64_t wall_s)
{
    hear(hu);
    if (now - hu->started_at > PROCESS_MAX)
        (void)kill(hu->pid, SIGKILL);
    if (!process_has_ended(hu->pid))
        return false;
    hu->pid = 0;
    hear(hu);
    conclude(hu, now, wall_s);
    stop(hu);
    return true;
}

bool hub_uplink_tick(struct hub_uplink *hu, const struct model *model,
    const struct relay_line *line, nsec_t now, int64_t wall_s)
{
    const struct model_node *node;
    struct uplink_estimate known;
    char rate[TRAFFIC_RATE_TEXT_MAX];
    uint64_t before = hu->found;

    if (hu->plan.due_at == 0 || (hu->pid != 0 && !follow(hu, now, wall_s)))
        return false;
    if (uplink_plan_is_due(&hu->plan, now)) {
        node = choose(hu, model, line, now, wall_s);
        if (node)
            begin_trains(hu, node, now);
    }
    known = uplink_estimate(&hu->trains, wall_s);
    hu->found = known.state == UPLINK_FOUND ? known.bits_per_s : 0;
    if (hu->found == before)
        return false;
    if (hu->found != 0)
        log_info("the hub's line is found to carry %s", traffic_rate_format(hu->found, rate));
    else
        log_info("what the hub's line carries is not known any more");
    return true;
}

void hub_uplink_deinit(struct hub_uplink *hu)
{
    stop(hu);
    *hu = (struct hub_uplink)HUB_UPLINK_NULL;
}
