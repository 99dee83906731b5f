/*
 * table.h - writes a struct as a JSON object and reads it back, by a table of its fields.
 *
 * A row says how a field is called, which member of the struct it is, and what its bounds are: what
 * another machine sends is checked against them, and nowhere else. The structs are those of
 * order.h, result.h, facts.h and service_process.h.
 *
 * Pure: no socket, no clock.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fields;

enum row_type {
    ROW_END,
    ROW_U32,
    ROW_U64, /* also of a time that is never negative */
    ROW_I64,
    ROW_BOOL,
    ROW_TEXT,    /* char[] */
    ROW_ENUM,    /* one of @names */
    ROW_IPV4,    /* struct ip_addr */
    ROW_ADDRESS, /* struct ip_addr of any family, or none */
    ROW_NAME,    /* char[NAME_MAX_LEN + 1], as parse_name() takes it */
    ROW_HEX,     /* bytes */
    ROW_PAIR,    /* two numbers in an array: the member, and the one behind it */
    ROW_OBJECT,  /* a struct that @rows describes */
};

struct row {
    const char *name;
    enum row_type type;
    size_t offset;
    size_t size;              /* of the member, bytes */
    uint64_t min;             /* U32, U64: bounds of the number; TEXT: least bytes */
    uint64_t max;             /* U32, U64; ENUM: how many @names */
    const char *const *names; /* ENUM: the index is the value */
    const struct row *rows;   /* OBJECT */
    size_t has;               /* HEX, BOOL: offset of the flag without which it is not written;
                                 0: it always is */
    unsigned kinds;           /* bits of those of which it is a field; 0: of all */
    bool is_optional;         /* where it is not said, the member stays as it was */
};

/** ROW() - the beginning of a row: of which type and member it is. */
#define ROW(type_, name_, struct_, member_)                                                        \
    .name = name_, .type = ROW_##type_, .offset = offsetof(struct_, member_),                      \
    .size = sizeof(((struct_ *)0)->member_)

/**
 * table_encode() - write the fields of @kind into an object
 * @json:	taken; NULL: no memory
 * @kind:	one bit, or 0 where rows do not differ by kind
 *
 * Return: @json; NULL: no memory.
 */
json_t *table_encode(json_t *json, const struct row *rows, unsigned kind, const void *from);

/** table_decode() - read the fields of @kind; @f says whether that has failed. */
void table_decode(struct fields *f, const struct row *rows, unsigned kind, void *ret);

/** table_encode_list() - an array of @n structs of @size bytes. NULL: no memory. */
json_t *table_encode_list(const struct row *rows, const void *from, size_t n, size_t size);

/** table_decode_list() - all of @list into @ret, which has room for them; each is a @where. */
void table_decode_list(struct fields *f, const json_t *list, const char *where,
    const struct row *rows, void *ret, size_t size);
