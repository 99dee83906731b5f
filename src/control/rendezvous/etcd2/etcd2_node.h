/*
 * etcd2_node.h - the nodes of an etcd tree: in memory, in the quota, saved as blobs, and as JSON.
 *
 * What each operation of etcd does to them is in etcd2_tree.h.
 *
 * Time is an argument. It has two clocks: a time to live ends by the monotonic one, and answers
 * show the wall's. A restart begins every time to live anew.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "base/containers.h"
#include "rendezvous/shared/rdzv_quota.h"
#include "store/keys.h"

/*
 * JSON that is written in two passes: the first measures its length, the second
 * writes the text into one block of memory of that length. Pure.
 *
 * The values of an etcd tree may be any bytes, and an answer may have millions of them. So the
 * quota is asked before an answer is made, and no value is copied twice.
 */

/** A text being written, or only measured. */
struct etcd2_json {
    char *text; /* borrowed, with room for all of it; NULL: it is only measured */
    size_t len; /* bytes so far */
    size_t max; /* writers may stop once @len is more than that */
};

/** etcd2_json_raw() - append a text as it is. */
void etcd2_json_raw(struct etcd2_json *j, const char *text);

/** etcd2_json_string() - append a string with its quotes; bytes that are not UTF-8 become U+FFFD,
 * as in Go. */
void etcd2_json_string(struct etcd2_json *j, const char *p, size_t len);

/** etcd2_json_number() - append a number in decimal. */
void etcd2_json_number(struct etcd2_json *j, uint64_t v);

/** Longest value, bytes. */
#define ETCD2_VALUE_MAX (256u << 10)

/**
 * What is loaded lives so much longer. A client whose hub has vanished waits for its answer until
 * its own time is over, 60 s with torch's (python-etcd, read_timeout), and only then asks the hub
 * that has taken over; till then it refreshes nothing, though it is alive.
 */
#define ETCD2_RELOAD_GRACE (75 * NSEC_PER_SEC)

/** Bytes. Borrowed. */
struct etcd2_text {
    const char *p;
    size_t len;
};

/** When something happens. */
struct etcd2_when {
    nsec_t now;  /* monotonic */
    nsec_t wall; /* since 1970 */
};

/** What a request for a change says besides its path. */
struct etcd2_change {
    bool is_dir;
    bool has_ttl;
    bool is_refresh;      /* the value stays, and watchers are not told */
    bool is_recursive;    /* a directory is removed with all below it */
    uint32_t ttl_seconds; /* with @has_ttl */
    bool has_prev_value;  /* @prev_value has to be the value now */
    struct etcd2_text prev_value;
    uint64_t prev_index;     /* has to be the modified index now; 0: not compared */
    struct etcd2_text value; /* of a file; "" for a directory */
    struct etcd2_when when;
};

/** A file or a directory. */
struct etcd2_node {
    struct keyed keyed;        /* in its parent's children, by the whole path; "/" of the root */
    struct etcd2_node *parent; /* pins; NULL: the root */
    bool is_dir;
    struct keys children;   /* owns struct etcd2_node; of a directory */
    struct rdzv_buf *value; /* counted; of a file; NULL while empty */
    uint64_t created;       /* index of its creation */
    uint64_t modified;      /* index of its last change */
    struct heap_link ttl;   /* in etcd2_nodes.ttls; armed when it has a time to live */
    uint32_t ttl_seconds;   /* as the request said; valid while @ttl is armed */
    nsec_t expires_at;      /* since 1970, as shown; valid while @ttl is armed */
    size_t saved;           /* length of its blob; 0: it is not saved */
};

/** All nodes of a tree. */
struct etcd2_nodes {
    struct rdzv_saver saver;  /* is told what has to be saved */
    struct rdzv_quota *quota; /* pins */
    struct etcd2_node *root;  /* owns; NULL: there was no memory for it */
    struct heap ttls;         /* of the nodes that have a time to live */
};

/** etcd2_text_of() - a text that ends with a zero. */
static inline struct etcd2_text etcd2_text_of(const char *text)
{
    return (struct etcd2_text){.p = text, .len = strlen(text)};
}

static inline struct etcd2_node *etcd2_node_of(struct keyed *k)
{
    return container_of(k, struct etcd2_node, keyed);
}

/**
 * etcd2_node_add() - a new node below @parent
 * @path:	clean; its last part is the new node's
 * @index:	of the change that makes it
 *
 * Return: lends it; NULL when the quota has no room for it, or there is no memory.
 */
struct etcd2_node *etcd2_node_add(struct etcd2_nodes *t, struct etcd2_node *parent,
    const char *path, bool is_dir, uint64_t index);

/** etcd2_node_free() - remove a node without children from the tree, and drop its blob. */
void etcd2_node_free(struct etcd2_nodes *t, struct etcd2_node *n);

/** etcd2_node_value() - the value of a file; borrowed until it changes. */
struct etcd2_text etcd2_node_value(const struct etcd2_node *n);

/** etcd2_value_new() - copy a value for a node; @ret: gives it, NULL when it is empty. False: no
 * room. */
bool etcd2_value_new(struct etcd2_nodes *t, struct etcd2_text value, struct rdzv_buf **ret);

/** etcd2_node_set_value() - set the value of a file; @value is taken. */
void etcd2_node_set_value(struct etcd2_node *n, struct rdzv_buf *value);

/** etcd2_node_set_ttl() - the time to live that @change has begins; without one it has none. */
void etcd2_node_set_ttl(
    struct etcd2_nodes *t, struct etcd2_node *n, const struct etcd2_change *change);

/* ---- blobs ---- */

/** etcd2_node_save() - tell the saver how the node is now. */
void etcd2_node_save(struct etcd2_nodes *t, struct etcd2_node *n);

/** etcd2_index_save() - tell the saver the index of the tree. */
void etcd2_index_save(struct etcd2_nodes *t, uint64_t index);

/**
 * etcd2_node_load() - a blob as the saver got it
 * @hash:	of the name under which it is kept
 * @ret_index:	set to the index of the tree, if the blob has that; to 0 after a node
 *
 * Blobs come in any order: a directory above it that has not come yet is made without numbers. The
 * quota may be exceeded: what was accepted once is not lost because a limit has become smaller.
 *
 * Return: 0, -EINVAL with words, or -ENOMEM with words.
 */
int etcd2_node_load(struct etcd2_nodes *t, const void *p, size_t len, const struct rdzv_hash *hash,
    struct etcd2_when when, uint64_t *ret_index, struct err *e);

/* ---- JSON ---- */

/** Room for a time as text. */
#define ETCD2_TIME_MAX 48

/** etcd2_time_format() - as Go prints a time: RFC 3339, in UTC; @wall: since 1970. */
void etcd2_time_format(nsec_t wall, char buf[static ETCD2_TIME_MAX]);

/** What an event shows of a node, as it was at some time. */
struct etcd2_shown {
    const char *path; /* borrowed */
    bool is_dir;
    bool has_nothing;       /* it has been removed: neither value nor time to live is shown */
    struct rdzv_buf *value; /* counted */
    size_t value_len;       /* bytes of it that are shown; the buffer may have grown since */
    bool has_ttl;
    nsec_t left;       /* how much of its time to live */
    nsec_t expires_at; /* since 1970 */
    uint64_t created;
    uint64_t modified;
};

/** etcd2_node_show() - what an event shows of the node as it is now; rdzv_buf_unref() its value. */
struct etcd2_shown etcd2_node_show(const struct etcd2_node *n, struct etcd2_when when);

/** etcd2_shown_write() - write the node without its children. */
void etcd2_shown_write(struct etcd2_json *j, const struct etcd2_shown *s);

/** etcd2_node_write() - write a node as etcd shows it, with @depth levels of children. */
void etcd2_node_write(
    struct etcd2_json *j, const struct etcd2_node *n, unsigned depth, struct etcd2_when when);

/*
 * Paths of an etcd tree. Pure.
 *
 * A clean path has a slash in front of each part, and no part that is "", "." or "..". The root's
 * path is "/".
 */

/** Longest clean path, bytes; most parts of it. */
#define ETCD2_PATH_MAX  2048
#define ETCD2_DEPTH_MAX 64

/**
 * etcd2_path_clean() - a path as it is kept
 * @ret:	room for ETCD2_PATH_MAX + 1
 *
 * Return: false when it is too long or too deep.
 */
bool etcd2_path_clean(const char *path, char *ret);

/** etcd2_path_is_root() - is the clean @path the root's? */
bool etcd2_path_is_root(const char *path);

/**
 * etcd2_path_next() - the next longer prefix of a clean path that is not the root's
 * @len:	length of the prefix before; 0 at first
 * @part:	set to @path up to the end of its next part
 *
 * Return: the length of @part.
 */
size_t etcd2_path_next(const char *path, size_t len, char part[static ETCD2_PATH_MAX + 1]);

/** etcd2_path_is_below() - does the clean @path lie below @dir? Not when they are the same. */
bool etcd2_path_is_below(const char *path, const char *dir);
