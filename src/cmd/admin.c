/* admin.c - see admin.h. */
#include "cmd/admin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "admin.h"
#include "api/client/client.h"
#include "api/content/token.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "net/socket/unix_socket.h"
#include "os/file.h"

#define ADMIN_TIMEOUT_MS 15000
#define ADMIN_TOKEN_MAX  256
/* Of a hub's API, where --hub says none. */
#define ADMIN_HUB_PORT 8443

/* The texts that a target borrows. */
struct target_texts {
    char token[ADMIN_TOKEN_MAX];
    char users[UNIX_SOCKET_CHOICE_CAP];
    char hub[HOST_PORT_MAX + 1];
};

/* Reads the first line of the token file. */
static int read_token(char token[static ADMIN_TOKEN_MAX], const char *path, struct err *e)
{
    _cleanup_(fclosep) FILE *f = fopen(path, "re");

    if (!f)
        return err_set(e, -errno, "admin token file %s: %s", path, strerror(errno));
    token[0] = '\0';
    if (!fgets(token, ADMIN_TOKEN_MAX, f) && ferror(f))
        return err_set(e, -errno, "admin token file %s: %s", path, strerror(errno));
    token[strcspn(token, "\r\n")] = '\0';
    if (token[0] == '\0')
        return err_set(e, -EINVAL, "admin token file %s has no token in its first line", path);
    return 0;
}

static int make_target(struct client_target *ret, const struct admin_target *t,
    struct target_texts *texts, struct err *e)
{
    if (!t->hub && (t->token_file || t->pin))
        return err_set(e, -EINVAL, "%s is for a hub elsewhere: say which, with --hub HOST:PORT",
            t->token_file ? "--admin-token-file" : "--pin");
    if (!t->hub) {
        *ret = (struct client_target){
            .access = CLIENT_ACCESS_UNIX, .address = unix_socket_choose(t->socket, texts->users)};
        return 0;
    }
    if (t->says_socket)
        return err_set(e, -EINVAL,
            "--socket is of a hub on this machine, and --hub names one elsewhere: give either");
    if (host_port_complete(texts->hub, t->hub, ADMIN_HUB_PORT, NULL) < 0)
        return err_set(e, -EINVAL, "--hub \"%.80s\" is neither HOST nor HOST:PORT", t->hub);
    if (!t->token_file || !t->pin)
        return err_set(e, -EINVAL, "--hub %s needs --admin-token-file and --pin as well", t->hub);
    *ret = (struct client_target){
        .access = CLIENT_ACCESS_HTTPS, .address = texts->hub, .bearer = texts->token};
    if (!base64_decode(t->pin, ret->pin.b, sizeof(ret->pin.b)))
        return err_set(e, -EINVAL, "--pin \"%.60s\" is not 32 bytes in base64", t->pin);
    return read_token(texts->token, t->token_file, e);
}

int admin_check(const struct admin_target *t, struct err *e)
{
    struct client_target unused;
    struct target_texts texts = {.token = ""};
    int r = make_target(&unused, t, &texts, e);

    secret_wipe(texts.token, sizeof(texts.token));
    return r;
}

const char *admin_option_given(const struct admin_target *t)
{
    if (t->hub)
        return "--hub";
    if (t->token_file)
        return "--admin-token-file";
    return t->pin ? "--pin" : t->says_socket;
}

/* Why @result came, with the words of @said. @is_lost: the hub has the request and says nothing to
 * it: it is there, or was until then. Returns @result. */
static int explain(int result, bool is_lost, const struct admin_target *t, const char *method,
    const struct err *said, struct err *e)
{
    bool is_read = strcmp(method, "GET") == 0;
    const char *unknown =
        is_lost && !is_read ? "; whether it has done what was asked is not known" : "";

    if (t->hub || result != CLIENT_E_UNREACHABLE)
        return err_set(e, result, "%s%s", err_text(said), unknown);
    if (is_lost)
        return err_set(e, result,
            "the hub at %s was asked, and no answer came: it stands still, it has ended meanwhile, "
            "or the machine has too much to do (journalctl -u weft-hub; systemctl restart "
            "weft-hub)%s",
            t->socket, unknown);
    /* The group has a socket of its own, on which one may look and change nothing. */
    if (access(t->socket, W_OK) < 0 && errno == EACCES)
        return err_set(e, result, "the hub's socket %s is not for this user: it needs root%s",
            t->socket, is_read ? ", or the group weft" : "");
    return err_set(e, result,
        "no hub answers at %s: on the hub's machine start it with \"weft hub up\", elsewhere "
        "name it with --hub, or its socket with --socket",
        t->socket);
}

int admin_try(const struct admin_target *t, const char *command, const char *method,
    const char *path, const json_t *body, int may_be, struct client_answer *ret)
{
    struct client_answer answer = CLIENT_ANSWER_NULL;
    struct client_target target;
    struct err e = ERR_NULL;
    struct err why = ERR_NULL;
    struct target_texts texts = {.token = ""};
    bool is_lost;
    int r = make_target(&target, t, &texts, &e);

    if (r < 0)
        return cmd_refuse(command, "%s", err_text(&e));
    r = client_call(&target, method, path, body, ADMIN_TIMEOUT_MS, &answer, &e);
    secret_wipe(texts.token, sizeof(texts.token));
    if (r == 0) {
        *ret = answer;
        return CMD_OK;
    }
    is_lost = r == CLIENT_E_UNREACHABLE && answer.is_lost;
    if (r == CLIENT_E_REFUSED && may_be != 0 && answer.status == may_be)
        r = 0;
    ret->status = r == 0 ? may_be : ret->status;
    client_answer_deinit(&answer);
    if (r == 0)
        return CMD_OK;
    (void)explain(r, is_lost, t, method, &e, &why);
    return cmd_fail(command, "%s", err_text(&why));
}

int admin_ask(const struct admin_target *t, const char *path, json_t **ret, struct err *e)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    struct target_texts texts = {.token = ""};
    struct client_target target;
    struct err said = ERR_NULL;
    int r = make_target(&target, t, &texts, e);

    if (r < 0)
        return r;
    r = client_call(&target, "GET", path, NULL, ADMIN_TIMEOUT_MS, &answer, &said);
    secret_wipe(texts.token, sizeof(texts.token));
    if (r != 0)
        return explain(r, r == CLIENT_E_UNREACHABLE && answer.is_lost, t, "GET", &said, e);
    *ret = TAKE_PTR(answer.body);
    return 0;
}

int admin_call(const struct admin_target *t, const char *command, const char *method,
    const char *path, const json_t *body, struct client_answer *ret)
{
    return admin_try(t, command, method, path, body, 0, ret);
}

bool admin_put_json(const json_t *body, size_t flags)
{
    _cleanup_(freep) char *text = json_dumps(body, flags);
    size_t len = text ? strlen(text) : 0;

    /* JSON says in escapes what a terminal might obey. Of that jansson leaves DEL and C1 as they
     * are. */
    for (size_t i = 0, n; i < len; i += n) {
        enum text_kind kind;

        n = text_next(text + i, len - i, &kind);
        if (kind == TEXT_KIND_CONTROL && text[i] != '\n')
            (void)printf("\\u%04X", (unsigned char)text[i + n - 1]);
        else
            (void)fwrite(text + i, 1, n, stdout);
    }
    return text != NULL;
}

int admin_print_json(const char *command, const json_t *body)
{
    if (!admin_put_json(body, JSON_INDENT(2)))
        return cmd_fail(command, "no memory");
    if (putchar('\n') == EOF || fflush(stdout) != 0 || ferror(stdout))
        return cmd_fail(command, "standard output does not take it: %s", strerror(errno));
    return CMD_OK;
}

int admin_print(const char *command, bool as_json, json_t *json, const struct str *text)
{
    int r = as_json ? admin_print_json(command, json) : cmd_print(command, str_text(text));

    json_decref(json);
    return r;
}

int admin_show(const struct admin_target *target, const char *command, const char *method,
    const char *path, json_t *body, bool as_json, void (*print)(const json_t *body))
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    int status = admin_call(target, command, method, path, body, &answer);

    json_decref(body);
    if (status == CMD_OK && as_json)
        return admin_print_json(command, answer.body);
    if (status == CMD_OK)
        print(answer.body);
    return status;
}

int admin_delete(const struct admin_target *target, const char *command, const char *path,
    const char *what, const char *name)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    int status = admin_call(target, command, "DELETE", path, NULL, &answer);

    if (status == CMD_OK && what)
        (void)printf("%s %s is gone\n", what, name);
    return status;
}

const char *admin_text(const json_t *value)
{
    const char *text = json_string_value(value);

    /* jansson hands out its own writable memory as const. */
    if (text)
        text_make_plain((char *)text, '?');
    return text ? text : "";
}

const char *admin_field(const json_t *obj, const char *outer, const char *inner)
{
    const json_t *holder = outer ? json_object_get(obj, outer) : obj;

    return admin_text(json_object_get(holder, inner));
}

const char *admin_time(const json_t *obj, const char *name, char buf[static ADMIN_TIME_MAX])
{
    time_t when = (time_t)json_integer_value(json_object_get(obj, name));
    struct tm utc;

    if (when <= 0 || !gmtime_r(&when, &utc) ||
        strftime(buf, ADMIN_TIME_MAX, "%Y-%m-%d %H:%M:%S", &utc) == 0)
        (void)snprintf(buf, ADMIN_TIME_MAX, "-");
    return buf;
}

/* ==== admin tokens: who may administer the hub from elsewhere ================================ */

#define ADMIN_TOKEN_TTL_MAX (3650 * 86400 * NSEC_PER_SEC)

static struct {
    struct admin_target target;
    const char *name;
    const char *role;
    const char *network;
    nsec_t ttl;
    bool json;
} arg;

static const struct option new_options[] = {
    {"NAME", NULL, option_name, &arg.name, NULL, "of whom or what will use it",
        .is_required = true},
    {"--role", "ROLE", option_word, &arg.role, NULL,
        "viewer (reads), operator (and changes nodes, edges and join tokens) or admin (everything)",
        .words = "viewer, operator, admin", .is_required = true},
    {"--ttl", "DURATION", option_duration, &arg.ttl, "30d", "how long it is valid",
        .min = NSEC_PER_SEC, .max = ADMIN_TOKEN_TTL_MAX},
    {"--network", "NAME", option_name, &arg.network, NULL, "only for this network (default: all)"},
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage new_usage = {
    .command = "admin new",
    .summary = "Make an admin token, for --admin-token-file. It is printed once; the hub keeps "
               "only its hash.",
    .options = new_options,
};

static void print_secret(const json_t *body)
{
    (void)puts(admin_field(body, NULL, "token"));
}

static int admin_new(int argc, char **argv)
{
    return admin_show(&arg.target, new_usage.command, "POST", "/v1/admin-tokens",
        json_pack("{s:s, s:s, s:I, s:s*}", "name", arg.name, "role", arg.role, "ttlSeconds",
            (json_int_t)(arg.ttl / NSEC_PER_SEC), "network", arg.network),
        arg.json, print_secret);
}

static const struct option ls_options[] = {
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage ls_usage = {
    .command = "admin ls",
    .summary = "List the admin tokens.",
    .options = ls_options,
};

static void print_tokens(const json_t *body)
{
    const json_t *t;
    size_t i;

    (void)printf("%-20s %-9s %-12s %-20s %-20s %s\n", "NAME", "ROLE", "NETWORK", "EXPIRES",
        "LAST USED", "MADE BY");
    json_array_foreach(json_object_get(body, "adminTokens"), i, t) {
        const char *network = admin_field(t, NULL, "network");
        char expires[ADMIN_TIME_MAX];
        char used[ADMIN_TIME_MAX];

        (void)printf("%-20s %-9s %-12s %-20s %-20s %s\n", admin_field(t, NULL, "name"),
            admin_field(t, NULL, "role"), network[0] ? network : "all",
            admin_time(t, "expires", expires), admin_time(t, "lastUsed", used),
            admin_field(t, NULL, "createdBy"));
    }
}

static int admin_ls(int argc, char **argv)
{
    return admin_show(
        &arg.target, ls_usage.command, "GET", "/v1/admin-tokens", NULL, arg.json, print_tokens);
}

static const struct option rm_options[] = {
    {"NAME", NULL, option_name, &arg.name, NULL, "of the admin token", .is_required = true},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage rm_usage = {
    .command = "admin rm",
    .summary = "End an admin token: it opens nothing any more.",
    .options = rm_options,
};

static int admin_rm(int argc, char **argv)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "/v1/admin-tokens/%s", arg.name);
    return admin_delete(&arg.target, rm_usage.command, path, "admin token", arg.name);
}

static const struct option rotate_options[] = {
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage rotate_usage = {
    .command = "admin rotate",
    .summary = "Replace the token in the hub's admin.token file; the old one ends at once.",
    .options = rotate_options,
};

static int admin_rotate(int argc, char **argv)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    int status = admin_call(
        &arg.target, rotate_usage.command, "POST", "/v1/admin-token-file", NULL, &answer);

    if (status == CMD_OK)
        (void)printf(
            "a new token is in %s on the hub's machine\n", admin_field(answer.body, NULL, "path"));
    return status;
}

int cmd_admin(int argc, char **argv)
{
    static const struct option_subcommand table[] = {
        {"new", admin_new, "make an admin token with a role and an end", &new_usage},
        {"ls", admin_ls, "list the admin tokens", &ls_usage},
        {"rm", admin_rm, "end an admin token", &rm_usage},
        {"rotate", admin_rotate, "replace the token in the hub's admin.token file", &rotate_usage},
        {NULL},
    };

    return options_dispatch("admin", table, argc, argv);
}
