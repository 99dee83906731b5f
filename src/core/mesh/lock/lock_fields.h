/*
 * lock_fields.h - what is signed of an object as text, field by field: for people, and for saying
 * in which one an object differs from what is signed.
 *
 * Texts are for reading. Whether two objects are the same, lock_body_equal() says.
 *
 * Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct lock_settings;
struct lock_signers;
struct lock_token;
struct mesh_edge;
struct node;
struct object;
struct str;

/** A field of an object of one type. */
struct lock_field {
    const char *name; /* in words; NULL: behind the last one */
    void (*format)(const void *object, struct str *out);
};

extern const struct lock_field lock_node_fields[];     /* of struct node */
extern const struct lock_field lock_edge_fields[];     /* of struct mesh_edge */
extern const struct lock_field lock_rule_fields[];     /* of struct object */
extern const struct lock_field lock_settings_fields[]; /* of struct lock_settings */
extern const struct lock_field lock_signers_fields[];  /* of struct lock_signers */
extern const struct lock_field lock_token_fields[];    /* of struct lock_token */

/**
 * lock_field_differing() - the next field in which two objects differ
 * @fields:	of both; where to begin
 * @ret_a:	gets the text of @a's; empty before, and when NULL is returned
 * @ret_b:	that of @b's
 *
 * Return: the row; NULL: there is none.
 */
const struct lock_field *lock_field_differing(const struct lock_field *fields, const void *a,
    const void *b, struct str *ret_a, struct str *ret_b);

/** lock_time_format() - "2026-11-30 08:15:00 UTC", of s since 1970 up to LOCK_TIME_MAX. */
void lock_time_format(uint64_t at, struct str *out);
