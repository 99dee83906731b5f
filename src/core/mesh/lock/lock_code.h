/*
 * lock_code.h - codes of recovery: who has lost the signers' keys makes others signers with one.
 *
 * A code is printed once, when signers are set, and is kept on paper. It is the seed of a key,
 * whose public half is in the lock. As text it has the alphabet of Crockford's Base32, in which no
 * two letters look the same.
 *
 * Spec: docs/wire/lock.md. Pure.
 */
#pragma once

#include <stdint.h>

#include "crypto/ed25519.h"

struct err;
struct rng;

#define LOCK_CODE_SIZE 20 /* bytes */

/** Room for a code as text: eight groups of four, with dashes between and a zero. */
#define LOCK_CODE_TEXT_MAX 40

/** A code: as secret as a key. secret_wipe() after use. */
struct lock_code {
    uint8_t b[LOCK_CODE_SIZE];
};

/** lock_code_make() - a new one. */
void lock_code_make(struct lock_code *ret, const struct rng *rng);

/** lock_code_write() - as text, for paper: "7ZQ4-..."; returns @buf. Wipe it after use. */
const char *lock_code_write(const struct lock_code *code, char buf[static LOCK_CODE_TEXT_MAX]);

/**
 * lock_code_parse() - from text, as somebody has typed it
 *
 * Dashes and blanks may be anywhere; letters may be small; O is taken for 0, and I and L for 1.
 *
 * Return: 0; -EINVAL with words, which never hold the code.
 */
int lock_code_parse(struct lock_code *ret, const char *text, struct err *e);

/** lock_code_secret() - the key that the code stands for; secret_wipe() after use. */
void lock_code_secret(const struct lock_code *code, struct ed25519_secret *ret);
