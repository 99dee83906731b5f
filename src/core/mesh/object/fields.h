/*
 * fields.h - reads the fields of one JSON object, each with its bounds.
 *
 * The JSON counterpart of `struct reader` in base/bytes.h: the first field that is
 * missing, of the wrong type or out of bounds fills in the sentence and makes
 * every later call do nothing, so a decoder reads all fields and asks once,
 * with fields_end(). Outputs are untouched by a read that failed; a field that
 * is optional and absent (or null) leaves its output as the caller set it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

struct x25519_public;

/** Most fields that one object may be asked for. */
#define FIELDS_SEEN_MAX 32

/** Must the field be there? */
enum fields_need {
    FIELDS_OPTIONAL,
    FIELDS_REQUIRED,
};

struct fields {
    const json_t *json; /* borrowed; the object being read */
    const char *where;  /* borrowed; what it is, for the sentence: "Node \"gpu-1\"" */
    struct err *e;      /* borrowed; may be NULL */
    int failed;         /* 0, or the first failure */
    unsigned n_seen;    /* names asked for so far */
    const char *seen[FIELDS_SEEN_MAX]; /* borrows: string literals of the decoder */
};

/** fields_make() - start on @json; anything but an object is the first failure. */
struct fields fields_make(const json_t *json, const char *where, struct err *e);

/**
 * fields_get() - the raw value of a field
 *
 * Return: borrowed; NULL when absent, null or after a failure.
 */
const json_t *fields_get(struct fields *f, const char *name, enum fields_need need);

/** fields_string() - borrowed text of @min to @max bytes without control characters; NULL if none.
 */
const char *fields_string(
    struct fields *f, const char *name, enum fields_need need, size_t min, size_t max);

/** fields_text() - the same, of @min bytes at least, copied into @ret of @cap bytes. */
void fields_text(
    struct fields *f, const char *name, enum fields_need need, size_t min, size_t cap, char *ret);

/** fields_u64() - a whole number from @min to @max. */
void fields_u64(struct fields *f, const char *name, enum fields_need need, uint64_t min,
    uint64_t max, uint64_t *ret);

/** fields_int_of_size() - the same, into an integer of @size bytes, 2, 4 or 8, that holds @max. */
void fields_int_of_size(struct fields *f, const char *name, enum fields_need need, uint64_t min,
    uint64_t max, size_t size, void *ret);

/** fields_int() - the same, of the size of what @ret points to; @max is a constant, which has to
 * fit there. */
#define fields_int(f, name, need, min, max, ret)                                                   \
    do {                                                                                           \
        _Static_assert((__typeof__(*(ret)))(max) > 0 &&                                            \
                           (uint64_t)(__typeof__(*(ret)))(max) == (uint64_t)(max),                 \
            "what is read fits where it goes");                                                    \
        fields_int_of_size(f, name, need, min, max, sizeof(*(ret)), ret);                          \
    } while (0)

/** fields_bool() - true or false. */
void fields_bool(struct fields *f, const char *name, enum fields_need need, bool *ret);

/**
 * fields_enum() - one of @names
 * @names:	@n_names words; the index is the value
 */
void fields_enum(struct fields *f, const char *name, enum fields_need need,
    const char *const names[], unsigned n_names, unsigned *ret);

/** fields_name() - a name as parse_name() wants it, into @ret of at least NAME_MAX_LEN + 1. */
void fields_name(struct fields *f, const char *name, enum fields_need need, char *ret);

/** fields_address() - an address of the family that @v4 says. */
void fields_address(
    struct fields *f, const char *name, enum fields_need need, bool v4, struct ip_addr *ret);

/** fields_block() - a network's block of addresses, as block_parse() wants it. */
void fields_block(
    struct fields *f, const char *name, enum fields_need need, bool v4, struct ip_prefix *ret);

/** fields_public_key() - base64 of 32 bytes that are not all zero. */
void fields_public_key(
    struct fields *f, const char *name, enum fields_need need, struct x25519_public *ret);

/** fields_rate() - a rate as traffic_rate_parse() wants it, in text; bit/s. */
void fields_rate(struct fields *f, const char *name, enum fields_need need, uint64_t *ret);

/**
 * fields_decimal() - a number of JSON, or a text such as "12.5" or "2e12"
 *
 * In YAML a number with a fraction is a text, so amounts of money are read like this.
 *
 * Return: NAN when @json is neither; it may be NULL.
 */
double fields_decimal(const json_t *json);

/** fields_object() - a borrowed JSON object, NULL if none. */
const json_t *fields_object(struct fields *f, const char *name, enum fields_need need);

/** fields_array() - a borrowed JSON array of @min to @max items, NULL if none. */
const json_t *fields_array(
    struct fields *f, const char *name, enum fields_need need, size_t min, size_t max);

/** fields_fail() - the decoder's own check failed: "WHERE: sentence". Keeps an earlier failure. */
void fields_fail(struct fields *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** fields_refuse_unknown() - fail on the first field that was not asked for. */
void fields_refuse_unknown(struct fields *f);

/** fields_end() - 0, or what failed first (-EINVAL). */
int fields_end(const struct fields *f);

/** fields_give() - the same; and where nothing failed, *@ret is *@read, of @size bytes. */
int fields_give(const struct fields *f, void *ret, const void *read, size_t size);

/** fields_text_of() - the text @name of @json, borrowed; "": it has none. */
const char *fields_text_of(const json_t *json, const char *name);

/** fields_list_has() - is that text an item of the array @list? */
bool fields_list_has(const json_t *list, const char *text);

/**
 * fields_set() - make @value the field @name of *@object, which owns it then
 *
 * Without memory for it, or where @value is NULL for the lack of it, *@object is released and NULL.
 * It may be NULL before, so that only the last of several calls is asked about.
 */
void fields_set(json_t **object, const char *name, json_t *value);

/** fields_append() - make @item the last of *@array; as fields_set() otherwise. */
void fields_append(json_t **array, json_t *item);

/*
 * A network's block of addresses, from text: which may be one.
 *
 * Nodes get addresses out of it, and a route to it, so it has to be unicast and
 * nobody else's by its nature: not loopback, link-local or multicast.
 */

/**
 * block_parse() - "10.77.0.0/16" or "fd5a::/64", host bits zero
 * @v4:		which family it has to be of
 * @what:	its name for the sentence ("--cidr4")
 *
 * Return: 0, or -EINVAL with words that name @text and what is allowed.
 */
int block_parse(struct ip_prefix *ret, const char *text, bool v4, const char *what, struct err *e);

/**
 * block_find_reserved() - is @a an address at which no other machine reaches this one?
 *
 * Return: the block that holds it, as loopback or link-local; NULL: it may be reached.
 */
const char *block_find_reserved(const struct ip_addr *a);

/** block_find_reserved_part() - the same for any address of @p. */
const char *block_find_reserved_part(const struct ip_prefix *p);
