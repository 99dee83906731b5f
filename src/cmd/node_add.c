/*
 * node_add.c - weft node add: a stock WireGuard becomes a node.
 *
 * Either its machine keeps its private key, and the hub is told the public one;
 * or the pair is made here, for a phone or a router that takes a whole file. Then
 * the private key is in what is printed and nowhere else, so when that cannot be
 * printed, the node is of no use and is removed again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "api/client/client.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/str.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/mesh_options.h"
#include "cmd/options.h"
#include "cmd/qr.h"
#include "cmd/stock.h"
#include "crypto/x25519.h"
#include "mesh/object/object.h"
#include "mesh/object/subnets.h"
#include "mesh/render/wg_quick.h"
#include "mesh/snapshot/snapshot.h"
#include "os/rng_kernel.h"

static struct {
    struct admin_target target;
    const char *name;
    const char *network;
    const char *public_key;
    struct option_list labels;
    struct subnets routes;
    struct stock_wish wish;
    bool new_key;
    bool qr;
    const char *png;
    bool json;
} arg;

static const struct option options[] = {
    {"NAME", NULL, option_name, &arg.name, NULL, "of the node", .need = OPTION_REQUIRED},
    {"--public-key", "KEY", option_text, &arg.public_key, NULL,
        "the node's, as \"wg pubkey\" prints it; its private key stays on its machine"},
    {"--new-key", NULL, option_flag, &arg.new_key, NULL,
        "make the key pair here; the private key is in the file that is printed, and nowhere else"},
    {"--qr", NULL, option_flag, &arg.qr, NULL,
        "the same, and print the file as a QR code for a phone"},
    {"--png", "FILE", option_text, &arg.png, NULL,
        "the same, and write that code into a new image file, for terminals that it does not fit"},
    {"--label", "KEY=VALUE", option_append, &arg.labels, NULL, "describe the node", .many = true},
    OPTION_SUBNETS_ROUTE(arg.routes),
    {"--network", "NAME", option_name, &arg.network, "default", "where it is to be a member"},
    STOCK_OPTIONS(arg.wish),
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON, with the file in it"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "node add",
    .summary = "Make a stock WireGuard a node, and print its file for wg-quick.",
    .options = options,
};

/** The keys of the node. */
struct key_pair {
    struct x25519_public public;
    struct x25519_secret secret; /* none: it stays on its machine */
};

static bool is_new(const struct key_pair *keys)
{
    return !x25519_secret_is_none(&keys->secret);
}

/* Is the file wanted as a QR code? */
static bool is_code(void)
{
    return arg.qr || arg.png;
}

static int take_keys(struct key_pair *ret, struct err *e)
{
    struct rng rng = rng_kernel();

    if (!arg.public_key == !(arg.new_key || is_code()))
        return err_set(e, -1,
            arg.public_key
                ? "--public-key and a key that is made here (--new-key, --qr, --png) exclude each "
                  "other"
                : "give --public-key KEY; or --new-key or --qr, to have the key pair made here");
    if (is_code() && arg.json)
        return err_set(e, -1, "%s and --json exclude each other", arg.qr ? "--qr" : "--png");
    if (arg.public_key)
        return x25519_public_parse(&ret->public, arg.public_key, e);
    x25519_secret_make(&ret->secret, &rng);
    if (!x25519_derive_public(&ret->secret, &ret->public))
        return err_set(e, -1, "no memory for a key pair");
    return 0;
}

/* ---- the hub -------------------------------------------------------------------------------- */

static json_t *encode_labels(const struct label *labels, size_t n)
{
    json_t *json = json_object();

    for (size_t i = 0; i < n; i++)
        (void)json_object_set_new(json, labels[i].key, json_string(labels[i].value));
    return json;
}

/* Has the hub add the node. @ret: client_answer_deinit() it; its body is the node's snapshot. */
static int register_node(
    struct client_answer *ret, const struct key_pair *keys, const struct label *labels)
{
    char key[X25519_BASE64_MAX];
    char path[192];
    int status;
    json_t *body = json_pack("{s:s, s:s, s:o, s:o}", "name", arg.name, "publicKey",
        x25519_public_format(&keys->public, key), "labels", encode_labels(labels, arg.labels.n),
        "routes", subnets_encode(&arg.routes));

    (void)snprintf(path, sizeof(path), "/v1/networks/%s/nodes", arg.network);
    status = admin_call(&arg.target, usage.command, "POST", path, body, ret);
    json_decref(body);
    return status;
}

/* Removes the node again: nobody has its private key. */
static void take_back(void)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "/v1/networks/%s/nodes/%s", arg.network, arg.name);
    if (admin_delete(&arg.target, usage.command, path) == CMD_OK)
        (void)cmd_fail(usage.command, "so node %s is not added", arg.name);
    else
        (void)cmd_fail(usage.command,
            "node %s is in network %s without its private key: \"weft node rm %s\" removes it",
            arg.name, arg.network, arg.name);
}

/* ---- printing ------------------------------------------------------------------------------- */

static int print_json(const struct snapshot *s, const char *text)
{
    const struct node *node = snapshot_self(s);
    char a4[IP_ADDR_TEXT_MAX];
    char a6[IP_ADDR_TEXT_MAX];
    char key[X25519_BASE64_MAX];
    json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "name", s->self, "network",
        s->network.meta.name, "address4", ip_addr_format(&node->address4, a4), "address6",
        ip_addr_format(&node->address6, a6), "publicKey", x25519_public_format(&node->key, key),
        "config", text);
    int status =
        json ? admin_print_json(usage.command, json) : cmd_fail(usage.command, "no memory");

    json_decref(json);
    return status;
}

/* How large the terminal on standard output is; zeroes: it is none, or does not say. */
static struct winsize terminal_size(void)
{
    struct winsize size = {0};

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size : (struct winsize){0};
}

static int print_qr(const char *text)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    const struct winsize room = terminal_size();
    struct err e = ERR_NULL;
    unsigned columns;

    if (qr_format(&out, text, strlen(text), &columns, &e) != 0)
        return cmd_fail(usage.command, "%s", err_text(&e));
    if (room.ws_col > 0 && room.ws_col < columns)
        return cmd_fail(usage.command,
            "the QR code is %u columns wide, and this terminal has %u: --png FILE writes it as an "
            "image; or make the terminal wider or its letters smaller, or name fewer nodes with "
            "--peer",
            columns, room.ws_col);
    /* It is made of escape sequences. */
    if (fputs(str_text(&out), stdout) < 0 || fflush(stdout) != 0)
        return cmd_fail(usage.command, "standard output does not take it");
    if (room.ws_row > 0 && room.ws_row <= (columns + 1) / 2)
        (void)fprintf(stderr,
            "The code has %u lines, and this terminal %u: make it higher or its letters smaller "
            "until all of the code is seen. (\"weft node rm %s\" and the same with --png FILE "
            "writes it as an image.)\n",
            (columns + 1) / 2, room.ws_row, arg.name);
    return CMD_OK;
}

/* A new file that nobody else may read: the private key is in it. */
static int write_png(const char *text)
{
    struct err e = ERR_NULL;
    uint8_t *image = NULL;
    size_t len = 0;
    ssize_t n = -1;
    int fd;

    if (qr_png(text, strlen(text), &image, &len, &e) != 0)
        return cmd_fail(usage.command, "%s", err_text(&e));
    fd = open(arg.png, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0)
        n = write(fd, image, len);
    if (n != (ssize_t)len)
        (void)err_set(&e, -1, "\"%s\" cannot be %s: %s", arg.png, fd < 0 ? "made" : "written",
            n < 0 ? strerror(errno) : strerror(ENOSPC));
    secret_wipe(image, len);
    free(image);
    if (fd >= 0 && close(fd) < 0 && e.code == 0)
        (void)err_set(&e, -1, "\"%s\" cannot be written: %s", arg.png, strerror(errno));
    if (e.code == 0) {
        (void)printf("the code is in %s; remove the image once it is scanned\n", arg.png);
        return CMD_OK;
    }
    if (fd >= 0)
        (void)unlink(arg.png);
    return cmd_fail(usage.command, "%s", err_text(&e));
}

static int print_code(const char *text)
{
    int status = CMD_OK;

    if (strlen(text) > QR_BYTES_MAX)
        return cmd_fail(usage.command,
            "the file has %zu bytes, and a QR code holds %d: name those of the nodes that %s is "
            "to reach, each with --peer, or carry the file of --new-key to it",
            strlen(text), QR_BYTES_MAX, arg.name);
    if (arg.png)
        status = write_png(text);
    return status == CMD_OK && arg.qr ? print_qr(text) : status;
}

static int print(const json_t *view, const struct key_pair *keys)
{
    _cleanup_(snapshot_deinit) struct snapshot s = SNAPSHOT_NULL;
    struct err e = ERR_NULL;
    char *text = NULL;
    int status;

    if (stock_take(&s, view, &e) == 0)
        text = stock_format(&s, &arg.wish, is_new(keys) ? &keys->secret : NULL, is_code(), &e);
    if (!text)
        return cmd_fail(usage.command, "%s", err_text(&e));
    status = is_code()  ? print_code(text)
             : arg.json ? print_json(&s, text)
                        : cmd_print(usage.command, text);
    secret_wipe(text, strlen(text));
    free(text);
    return status;
}

static int add(const struct key_pair *keys, const struct label *labels)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    int status = register_node(&answer, keys, labels);

    if (status != CMD_OK)
        return status;
    status = print(answer.body, keys);
    if (!is_new(keys))
        return status;
    if (status != CMD_OK)
        take_back();
    else
        (void)fprintf(stderr,
            "The private key of %s is in this and nowhere else: neither this machine nor the hub "
            "keeps it.\n",
            arg.name);
    return status;
}

int cmd_node_add(int argc, char **argv)
{
    _cleanup_(freep) struct label *labels = NULL;
    struct key_pair keys = {0};
    struct err e = ERR_NULL;
    int status;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    if (node_check_name(arg.name, &e) != 0 || take_keys(&keys, &e) != 0 ||
        mesh_options_parse_labels(&labels, &arg.labels, &e) != 0)
        status = cmd_refuse(usage.command, "%s", err_text(&e));
    else
        status = add(&keys, labels);
    secret_wipe(&keys, sizeof(keys));
    option_list_deinit(&arg.labels);
    option_list_deinit(&arg.wish.peers);
    return status;
}
