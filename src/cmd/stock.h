/*
 * stock.h - a node's file for a stock WireGuard, as `weft render` and `weft node add` print it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cmd/options.h"

struct snapshot;
struct x25519_secret;

/** What a command was asked about the file. */
struct stock_options {
    struct option_list peers; /* names: only these and the hub; none: all */
    const char *key_file;     /* where the node keeps its private key */
    uint64_t listen_port;     /* of the node; 0: any */
};

/* The rows of an option table that fill in a struct stock_options. */
#define STOCK_OPTIONS(w)                                                                           \
    {"--peer", "NODE", option_append, &(w).peers, NULL,                                            \
        "only this node, and the hub, are in the file", .many = true},                             \
        {"--private-key-file", "FILE", option_text, &(w).key_file, WG_QUICK_KEY_FILE,              \
            "where the node keeps its private key, which is not printed"},                         \
    {                                                                                              \
        "--listen-port", "PORT", option_u64, &(w).listen_port, NULL,                               \
            "of the node; any without it", .min = 1, .max = 65535                                  \
    }

/**
 * stock_take() - decode a snapshot for a file that a person carries to a node
 *
 * An agent passes over objects that it cannot read. Here they are an error, since the file would
 * lack them without a word.
 *
 * Return: 0 or negative errno with words.
 */
int stock_take(struct snapshot *ret, const json_t *json, struct err *e);

/**
 * stock_format() - the text of the file
 * @s:		loses the nodes that are not wanted in it
 * @secret:	to be written into the file; NULL: the file names @opt->key_file
 * @is_compact:	leave out what a QR code has no room for
 *
 * Return: gives it, free() it; NULL with words.
 */
char *stock_format(struct snapshot *s, const struct stock_options *opt,
    const struct x25519_secret *secret, bool is_compact, struct err *e);
