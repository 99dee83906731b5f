/*
 * metadata.h - what a cloud's metadata service says of the place where this machine runs.
 *
 * A cloud tells its machines their type and, as far as it does, how near they are to each other:
 * AWS the placement group (network nodes come only from its API, which needs credentials), Google
 * the physical host and its block, Azure the placement group of a scale set. The answers are
 * texts from outside: each field is checked here, once.
 *
 * The decoders are pure. metadata_fetch() asks the link-local address and no other.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct err;

/*
 * Reads small text files below a root: this machine's, or those of a recorded machine.
 *
 * What a machine is made of is read from /sys, /proc and a few files of the distribution. The tests
 * read the same files below test/platform/machines, so that no such machine is needed.
 */

/** Bytes of an entry's name, with its zero; longer ones are passed over. */
#define TREE_NAME_MAX 64

/** Where the files are. */
struct tree {
    const char *root; /* borrowed; "" is this machine */
};

/**
 * tree_read() - the text of a file, without the white space at its end
 * @path:	from the root, begins with "/"
 * @ret:	of @cap bytes; set to "" when the file cannot be read; control bytes other than a
 *		newline become spaces, and what does not fit is cut off
 *
 * Return: false if there is no such file, or nothing in it.
 */
bool tree_read(const struct tree *t, const char *path, char *ret, size_t cap);

/** tree_has() - is there a file or a directory of that name? */
bool tree_has(const struct tree *t, const char *path);

/**
 * tree_list() - the names in a directory, sorted: "eth2" stands before "eth10"
 * @ret:	room for @max names; more are passed over
 *
 * Return: how many names; 0 when there is no such directory.
 */
size_t tree_list(const struct tree *t, const char *dir, char (*ret)[TREE_NAME_MAX], size_t max);

#define METADATA_FIELD_MAX  96   /* bytes of a field, with its zero */
#define METADATA_ANSWER_MAX 2048 /* bytes of all answers, with the zero */

enum metadata_cloud {
    METADATA_CLOUD_NONE, /* none of those below */
    METADATA_CLOUD_AWS,
    METADATA_CLOUD_GCE,
    METADATA_CLOUD_AZURE,
    METADATA_CLOUD_N,
};

/** The place of a machine in its cloud. A text is empty when it is not known. */
struct metadata_place {
    char machine[METADATA_FIELD_MAX]; /* its type, such as "p5.48xlarge" */
    char zone[METADATA_FIELD_MAX];    /* "use1-az4" (AWS: the id, not the name), "us-east4-a" */
    char group[METADATA_FIELD_MAX];   /* placement group: AWS, Azure */
    char block[METADATA_FIELD_MAX];   /* Google: "CLUSTER/BLOCK" of the physical host */
    char host[METADATA_FIELD_MAX];    /* Google: "CLUSTER/BLOCK/HOST" */
    bool asked_together; /* collocation was asked for: the machine is in a placement group */
};

/**
 * The answers of a metadata service, as they came: lines "NAME VALUE", with the names of the
 * questions. Owned by the caller.
 */
struct metadata_answers {
    enum metadata_cloud cloud;
    char text[METADATA_ANSWER_MAX];
};

/** metadata_cloud_name() - "none", "aws", "gce" or "azure". */
const char *metadata_cloud_name(enum metadata_cloud c);

/** metadata_cloud_of() - which cloud the DMI texts of a machine are of; reads three files. */
enum metadata_cloud metadata_cloud_of(const struct tree *t);

/**
 * metadata_decode() - check the answers and take them in
 * @ret:	untouched on failure
 *
 * A field that the service does not know is no failure.
 *
 * Return: 0, or -EINVAL with words that name the field and what is allowed.
 */
int metadata_decode(
    struct metadata_place *ret, const struct metadata_answers *answers, struct err *e);

/**
 * metadata_fetch() - ask the metadata service of @cloud
 * @timeout_ms:	for all of it
 *
 * Asks 169.254.169.254 by HTTP, without a proxy, and follows no redirection. AWS is asked as
 * IMDSv2, with a token for one minute. Blocks.
 *
 * Return: 0; or negative errno with words: nobody answers, or not with a success.
 */
int metadata_fetch(
    struct metadata_answers *ret, enum metadata_cloud cloud, unsigned timeout_ms, struct err *e);
