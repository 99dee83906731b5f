/*
 * secret.h - wiping and comparing what must not leak.
 *
 * Key types live with their algorithms (crypto/). None of them has a formatter
 * that a log call could reach.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/** secret_wipe() - overwrite @len bytes at @p with zeroes, even if @p is never read again. */
void secret_wipe(void *p, size_t len);

/** secret_equal() - compare without a branch or early exit that depends on the contents. */
bool secret_equal(const void *a, const void *b, size_t len);

/** secret_is_zero() - all @len bytes are zero; constant time. */
bool secret_is_zero(const void *p, size_t len);
