/* control.c - commands to a running emulator; see control.h. */
#include "control.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "emulator.h"
#include "params.h"

#define COMMAND_MAX 1024
#define WORDS_MAX   32

/* A command cut into words, and the answer to it. */
struct request {
    char *words[WORDS_MAX]; /* borrowed from the buffer that was received */
    int n_words;
    char reply[COMMAND_MAX];
};

static void answer(struct request *req, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void answer(struct request *req, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(req->reply, sizeof(req->reply), format, args);
    va_end(args);
}

int control_listen(const char *path, int *ret_fd)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path));

    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    (void)unlink(path); /* bind() reports what matters */
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 16) < 0) {
        int r = -errno;
        close(fd);
        return r;
    }
    *ret_fd = fd;
    return 0;
}

/*
 * Read words[first...] on top of the parameters of the two lanes: all of them, or none if one is
 * wrong, which is then the answer.
 */
static bool parse_words(struct request *req, int first, struct lane_params params[DIRECTION_N])
{
    struct lane_params out = params[DIRECTION_OUT];
    struct lane_params in = params[DIRECTION_IN];

    for (int i = first; i < req->n_words; i++) {
        const char *error;

        if (!params_parse(req->words[i], &out, &in, &error)) {
            answer(req, "error: %.64s is not understood; %s", req->words[i], error);
            return false;
        }
    }
    params[DIRECTION_OUT] = out;
    params[DIRECTION_IN] = in;
    return true;
}

static void do_add(struct emulator *em, struct request *req)
{
    struct lane_params params[DIRECTION_N] = {LANE_PARAMS_PERFECT, LANE_PARAMS_PERFECT};
    int r;

    if (req->n_words < 4) {
        answer(req, "error: add needs a link name and two interface names");
        return;
    }
    if (!parse_words(req, 4, params))
        return;
    r = emulator_add_link(em, req->words[1], req->words[2], req->words[3], params);
    if (r < 0)
        answer(req, "error: cannot add link %.64s: %s", req->words[1], strerror(-r));
    else
        answer(req, "ok");
}

static void do_set(struct request *req, struct link *link)
{
    struct lane_params params[DIRECTION_N];

    for (int d = 0; d < DIRECTION_N; d++)
        params[d] = link->lane[d].params;
    if (!parse_words(req, 2, params))
        return;
    for (int d = 0; d < DIRECTION_N; d++)
        link->lane[d].params = params[d];
    answer(req, "ok");
}

static void set_cut(struct request *req, struct link *link, bool is_cut)
{
    for (int d = 0; d < DIRECTION_N; d++)
        lane_set_cut(&link->lane[d], is_cut);
    answer(req, "ok");
}

static void do_down(struct request *req, struct link *link)
{
    set_cut(req, link, true);
}

static void do_up(struct request *req, struct link *link)
{
    set_cut(req, link, false);
}

static void do_show(struct request *req, struct link *link)
{
    static const char *const names[DIRECTION_N] = {"out", "in"};
    size_t len = (size_t)snprintf(req->reply, sizeof(req->reply), "ok");

    for (int d = 0; d < DIRECTION_N; d++) {
        const struct lane *lane = &link->lane[d];
        /* Nine numbers of at most 20 digits a line, so two lines always fit. */
        len += (size_t)snprintf(req->reply + len, sizeof(req->reply) - len,
            "\n%s entered=%lu left=%lu in-flight=%zu refused=%lu", names[d], lane->n_entered,
            lane->n_left, lane->in_flight.n, link->n_refused[d]);
        for (enum lane_fate fate = LANE_FATE_DROP_CUT; fate < LANE_FATE_N; fate++)
            len += (size_t)snprintf(req->reply + len, sizeof(req->reply) - len, " %s=%lu",
                lane_fate_name(fate), lane->n_fate[fate]);
    }
}

static const struct command {
    const char *name;
    void (*act)(struct request *req, struct link *link);
} commands[] = {
    {"set", do_set},
    {"down", do_down},
    {"up", do_up},
    {"show", do_show},
};

static void execute(struct emulator *em, struct request *req)
{
    if (req->n_words >= 1 && strcmp(req->words[0], "add") == 0) {
        do_add(em, req);
        return;
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (req->n_words < 2 || strcmp(req->words[0], commands[i].name) != 0)
            continue;
        struct link *link = emulator_find_link(em, req->words[1]);
        if (link)
            commands[i].act(req, link);
        else
            answer(req, "error: there is no link %.64s", req->words[1]);
        return;
    }
    answer(req, "error: the commands are add, set, down, up and show, each with a LINK");
}

/* Return false if there are more words than a command can have. */
static bool split_words(char *text, struct request *req)
{
    char *rest = text;
    char *word;

    while ((word = strsep(&rest, " \n"))) {
        if (*word == '\0')
            continue;
        if (req->n_words == WORDS_MAX)
            return false;
        req->words[req->n_words++] = word;
    }
    return true;
}

void control_serve(struct emulator *em, int fd)
{
    char text[COMMAND_MAX + 1];
    ssize_t len = recv(fd, text, sizeof(text), 0);

    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (len <= 0) {
        close(fd);
        return;
    }

    struct request req = {0};
    if (len > COMMAND_MAX) {
        answer(&req, "error: a command has at most %d bytes", COMMAND_MAX);
    } else {
        text[len] = '\0';
        if (split_words(text, &req))
            execute(em, &req);
        else
            answer(&req, "error: a command has at most %d words", WORDS_MAX);
    }
    /* A client that does not read its answer loses it. */
    (void)send(fd, req.reply, strlen(req.reply), MSG_NOSIGNAL | MSG_DONTWAIT);
}
