/* bundle.c - see bundle.h. */
#include "agent/bundle.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "agent/agent_ask.h"
#include "agent/state/state.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/secret.h"
#include "base/text.h"
#include "base/version.h"
#include "os/file.h"
#include "os/process.h"

#define ASK_MS 10000
/* A program that prints what is asked takes less than this. */
#define PROGRAM_MS 10000
/* Most bytes of one file, and of the end of a log. */
#define FILE_MAX (4u << 20)
#define LOG_MAX  (256 << 10)
/* Peers of which all paths are in it. */
#define PATHS_MAX 256
/* Shorter texts are too common to be struck out, and no secret. */
#define SECRET_LEAST 6
#define STRUCK       "[secret]"

/* ---- what is struck out ---------------------------------------------------------------------- */

void secrets_deinit(struct secrets *s)
{
    for (size_t i = 0; i < s->n; i++) {
        secret_wipe(s->items[i], strlen(s->items[i]));
        free(s->items[i]);
    }
    free(s->items);
    *s = (struct secrets){.n = 0};
}

static bool is_secret_name(const char *name)
{
    static const char *const words[] = {
        "private", "preshared", "psk", "secret", "token", "password", "proxy", "bearer"};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strcasestr(name, words[i]))
            return true;
    return false;
}

static void add_secret(struct secrets *s, const char *text)
{
    char **items;

    if (strlen(text) < SECRET_LEAST)
        return;
    items = realloc(s->items, (s->n + 1) * sizeof(*items));
    if (!items)
        return;
    s->items = items;
    s->items[s->n] = strdup(text);
    s->n += s->items[s->n] ? 1 : 0;
}

void secrets_take(struct secrets *s, const json_t *json)
{
    const char *name;
    json_t *item;
    size_t i;

    json_array_foreach(json, i, item)
        secrets_take(s, item);
    if (!json_is_object(json))
        return;
    json_object_foreach((json_t *)json, name, item) {
        if (json_is_string(item) && is_secret_name(name))
            add_secret(s, json_string_value(item));
        secrets_take(s, item);
    }
}

/* How many bytes at @text are one of them; 0: none begins there. */
static size_t match_known(const struct secrets *s, const char *text, size_t len)
{
    for (size_t i = 0; i < s->n; i++) {
        size_t n = strlen(s->items[i]);

        if (n <= len && memcmp(text, s->items[i], n) == 0)
            return n;
    }
    return 0;
}

static size_t span_of(const char *text, size_t len, size_t from, const char *others)
{
    size_t n = from;

    while (n < len && (isalnum((unsigned char)text[n]) || (text[n] && strchr(others, text[n]))))
        n++;
    return n;
}

/* What looks like one: how many bytes at @text stay (@ret_keeps) and how many behind them go. */
static size_t match_form(const char *text, size_t len, size_t *ret_keeps)
{
    static const char *const tokens[] = {"weft1.", "weft-admin1."};
    static const char *const keys[] = {
        "PrivateKey", "PresharedKey", "private_key", "preshared_key", "private key", "Bearer"};

    for (size_t i = 0; i < sizeof(tokens) / sizeof(*tokens); i++) {
        size_t n = strlen(tokens[i]);

        *ret_keeps = n;
        if (n < len && memcmp(text, tokens[i], n) == 0)
            return span_of(text, len, n, "-_") - n;
    }
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        size_t n = strlen(keys[i]);

        if (n >= len || strncasecmp(text, keys[i], n) != 0)
            continue;
        while (n < len && strchr(" \t=:\"", text[n]) && text[n])
            n++;
        *ret_keeps = n;
        return span_of(text, len, n, "+/=-_.") - n;
    }
    /* "http://USER:PASSWORD@HOST" */
    *ret_keeps = 3;
    if (len > 3 && memcmp(text, "://", 3) == 0) {
        size_t n = 3;

        while (n < len && text[n] != '@' && text[n] != '/' && !isspace((unsigned char)text[n]) &&
               text[n] != '"')
            n++;
        return n < len && text[n] == '@' ? n - 3 : 0;
    }
    return 0;
}

static void strike_known(const struct secrets *s, const char *text, size_t len, struct str *out)
{
    for (size_t i = 0; i < len;) {
        size_t n = match_known(s, text + i, len - i);

        if (n > 0)
            str_add(out, STRUCK);
        else
            str_add_bytes(out, text + i, 1);
        i += n > 0 ? n : 1;
    }
}

static void strike_forms(const char *text, size_t len, struct str *out)
{
    for (size_t i = 0; i < len;) {
        size_t keeps = 0;
        size_t n = match_form(text + i, len - i, &keeps);

        str_add_bytes(out, text + i, n > 0 ? keeps : 1);
        if (n > 0)
            str_add(out, STRUCK);
        i += n > 0 ? keeps + n : 1;
    }
}

void secrets_strike(const struct secrets *s, const char *text, size_t len, struct str *out)
{
    _cleanup_(str_deinit) struct str rest = STR_NULL;

    strike_known(s, text, len, &rest);
    strike_forms(str_text(&rest), rest.len, out);
}

/* ---- the archive ----------------------------------------------------------------------------- */

#define TAR_BLOCK 512

/* The header of a file (POSIX.1-1988, "Extended tar format"). */
struct tar_header {
    char name[100];
    char mode[8];
    char uid[8];
    char gid[8];
    char size[12];
    char mtime[12];
    char checksum[8];
    char type;
    char link[100];
    char magic[6];
    char version[2];
    char rest[247];
};

_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "a block");

static void add_zeroes(struct str *tar, size_t n)
{
    static const char zeroes[2 * TAR_BLOCK];

    str_add_bytes(tar, zeroes, n);
}

void tar_add(struct str *tar, const char *name, const char *data, size_t len, int64_t at)
{
    struct tar_header h = {.type = '0', .magic = "ustar", .version = {'0', '0'}};
    unsigned sum = 0;

    (void)snprintf(h.name, sizeof(h.name), "%.*s", TAR_NAME_MAX, name);
    (void)snprintf(h.mode, sizeof(h.mode), "%07o", 0600u);
    (void)snprintf(h.uid, sizeof(h.uid), "%07o", 0u);
    (void)snprintf(h.gid, sizeof(h.gid), "%07o", 0u);
    (void)snprintf(h.size, sizeof(h.size), "%011llo", (unsigned long long)len & 077777777777ull);
    (void)snprintf(h.mtime, sizeof(h.mtime), "%011llo", (unsigned long long)at & 077777777777ull);
    /* Of the header with blanks in this field. */
    memset(h.checksum, ' ', sizeof(h.checksum));
    for (size_t i = 0; i < sizeof(h); i++)
        sum += ((const unsigned char *)&h)[i];
    (void)snprintf(h.checksum, sizeof(h.checksum), "%06o", sum & 0777777);
    str_add_bytes(tar, (const char *)&h, sizeof(h));
    str_add_bytes(tar, data, len);
    add_zeroes(tar, (TAR_BLOCK - len % TAR_BLOCK) % TAR_BLOCK);
}

void tar_end(struct str *tar)
{
    add_zeroes(tar, (size_t)2 * TAR_BLOCK);
}

/* ---- what is in it --------------------------------------------------------------------------- */

/* What is being made. */
struct bundle {
    struct str *tar;
    const struct doctor_options *opt;
    const struct doctor_report *report;
    struct secrets secrets;
    int64_t at;
};

static void add_text(struct bundle *b, const char *name, const char *text, size_t len)
{
    _cleanup_(str_deinit) struct str struck = STR_NULL;
    char path[TAR_NAME_MAX + 1];

    (void)snprintf(path, sizeof(path), "weft-doctor/%.80s", name);
    secrets_strike(&b->secrets, text, len < FILE_MAX ? len : FILE_MAX, &struck);
    tar_add(b->tar, path, str_text(&struck), struck.len, b->at);
}

/* @json: taken; NULL: there is none. */
static void add_json(struct bundle *b, const char *name, json_t *json)
{
    char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;

    if (text)
        add_text(b, name, text, strlen(text));
    free(text);
    json_decref(json);
}

/* What programs print, one after the other. One that is not there is named. */
static void add_output(struct bundle *b, const char *name, const char *const *const commands[])
{
    _cleanup_(str_deinit) struct str out = STR_NULL;

    for (size_t i = 0; commands[i]; i++) {
        struct capture_options run = {
            .argv = commands[i], .timeout_ms = PROGRAM_MS, .max = FILE_MAX, .takes_errors = true};
        struct err e = ERR_NULL;
        int status;

        str_add(&out, "$");
        for (size_t k = 0; commands[i][k]; k++)
            str_addf(&out, " %s", commands[i][k]);
        str_add(&out, "\n");
        if (capture_run(&run, &out, &status, &e) != 0)
            str_addf(&out, "%s\n", err_text(&e));
        str_add(&out, "\n");
    }
    add_text(b, name, str_text(&out), out.len);
}

static void add_machine(struct bundle *b)
{
    static const char *const uname[] = {"uname", "-a", NULL};
    static const char *const release[] = {"cat", "/etc/os-release", NULL};
    static const char *const *const versions[] = {uname, release, NULL};
    static const char *const links[] = {"ip", "-s", "-d", "link", NULL};
    static const char *const addresses[] = {"ip", "address", NULL};
    static const char *const *const interfaces[] = {links, addresses, NULL};
    static const char *const rules[] = {"ip", "rule", NULL};
    static const char *const routes4[] = {"ip", "-4", "route", "show", "table", "all", NULL};
    static const char *const routes6[] = {"ip", "-6", "route", "show", "table", "all", NULL};
    static const char *const *const routes[] = {rules, routes4, routes6, NULL};
    static const char *const journal[] = {
        "journalctl", "-u", "weft-agent", "-n", "1000", "--no-pager", "-o", "short-iso", NULL};
    static const char *const *const logs[] = {journal, NULL};
    char text[128];

    (void)snprintf(text, sizeof(text), "weft %.100s\n", version_text);
    add_text(b, "weft-version.txt", text, strlen(text));
    add_output(b, "versions.txt", versions);
    add_output(b, "interfaces.txt", interfaces);
    add_output(b, "routes.txt", routes);
    add_output(b, "log.txt", logs);
}

/* The end of the log of an agent that was started without systemd. */
static void add_log_file(struct bundle *b)
{
    _cleanup_(closep) int fd = -1;
    _cleanup_(freep) char *text = malloc(LOG_MAX);
    char path[PATH_MAX];
    ssize_t n;

    (void)snprintf(path, sizeof(path), "%.*s/agent.log", STATE_DIR_MAX, b->opt->state_dir);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || !text)
        return;
    /* A short one has no such place, and is read from its beginning. */
    (void)lseek(fd, -LOG_MAX, SEEK_END);
    n = file_read_all(fd, text, LOG_MAX);
    if (n > 0)
        add_text(b, "agent.log", text, (size_t)n);
}

static void add_paths(struct bundle *b)
{
    const json_t *peer;
    size_t i;

    json_array_foreach(json_object_get(b->report->status, "peers"), i, peer) {
        const char *name = json_string_value(json_object_get(peer, "name"));
        char call[32 + NAME_MAX_LEN];
        char file[32 + NAME_MAX_LEN];
        json_t *paths = NULL;

        if (i >= PATHS_MAX)
            return;
        if (!name || parse_name(name, "node", NULL) != 0)
            continue;
        (void)snprintf(call, sizeof(call), "/v1/paths/%s", name);
        (void)snprintf(file, sizeof(file), "paths/%s.json", name);
        if (agent_ask(b->opt->socket, "GET", call, ASK_MS, &paths, NULL) == 0)
            add_json(b, file, paths);
    }
}

/* Those of this node, so that they are known where they are quoted. */
static void know_secrets(struct bundle *b)
{
    static const char *const files[] = {"node.json", "keys.json", "join.key", "snapshot.json"};

    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        char path[PATH_MAX];
        char *text = NULL;
        size_t len;
        json_t *json;

        (void)snprintf(path, sizeof(path), "%.*s/%s", STATE_DIR_MAX, b->opt->state_dir, files[i]);
        if (statefile_read(path, 16u << 20, &text, &len, NULL) != 0)
            continue;
        json = json_loadb(text, len, 0, NULL);
        secrets_take(&b->secrets, json);
        json_decref(json);
        /* The key of a join is all that its file holds. */
        text[strcspn(text, "\r\n")] = '\0';
        if (!json)
            add_secret(&b->secrets, text);
        secret_wipe(text, len);
        free(text);
    }
}

void bundle_make(
    struct str *tar, const struct doctor_options *opt, const struct doctor_report *r, int64_t at)
{
    struct bundle b = {.tar = tar, .opt = opt, .report = r, .at = at};

    know_secrets(&b);
    add_json(&b, "doctor.json", doctor_encode(r));
    if (r->status)
        add_json(&b, "status.json", json_incref(r->status));
    add_paths(&b);
    add_machine(&b);
    add_log_file(&b);
    secrets_deinit(&b.secrets);
    tar_end(tar);
}
