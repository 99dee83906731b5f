/*
 * err.h - failures: what they say, and what is released when a scope is left.
 */
#pragma once

#include <stddef.h>
#include <stdlib.h>

/*
 * How failures travel.
 *
 * Three kinds, never mixed:
 *
 *   0                success
 *   negative errno   unexpected: passed up unchanged, never compared
 *   positive FOO_E_  a documented outcome of this very call, handled by its caller
 *
 * Where the sentence is the product (command line, API, configuration), the
 * call also takes a `struct err` and fills in one line of text which names the
 * value and what is allowed. Packet code returns nothing: see drop.h.
 */

/** A failure in words. Caller's storage; start from ERR_NULL. */
struct err {
    int code;       /* what the call returned */
    char text[384]; /* one sentence, no newline, safe to print; "" when nothing was said */
};

#define ERR_NULL {0}

/**
 * err_set() - say what went wrong
 * @e:		where to; NULL when the caller does not want the words
 * @code:	negative errno or positive FOO_E_, never 0
 * @fmt:	one sentence; what is not plain text (text.h) is printed as '?', since it may quote
 *		what came from outside
 *
 * Overwrites an earlier text: the outermost caller knows best what was tried.
 *
 * Return: @code, so that `return err_set(e, -EINVAL, "...")` reads well.
 */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
#ifdef __clang_analyzer__
/* It sees one file at a time, and would take `return err_set(e, -errno, ...)` for a success. */
#define err_set(e, code, ...)                                                                      \
    ({                                                                                             \
        int code_ = (code);                                                                        \
        (err_set)(e, code_, __VA_ARGS__);                                                          \
        if (code_ == 0)                                                                            \
            __builtin_unreachable();                                                               \
        code_;                                                                                     \
    })
#endif

/**
 * err_prefix() - put "what: " in front of the text that is already there
 * @e:		as filled by the failed call; NULL is fine
 * @fmt:	what was being done
 *
 * Return: the code that @e holds, or -EINVAL for NULL.
 */
int err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** err_text() - the sentence, or strerror(-code) when none was given. Never NULL. */
const char *err_text(const struct err *e);

/*
 * Scope-bound destructors for set-up and control code.
 *
 * Packet and crypto code does not use these: there, one forward `goto out`
 * keeps the order of wiping and releasing visible.
 */

/** _cleanup_() - run @fn on the variable's address when it leaves scope. */
#define _cleanup_(fn) __attribute__((cleanup(fn)))

/** TAKE_PTR() - the pointer's value; the variable becomes NULL (ownership moves out). */
#define TAKE_PTR(p)                                                                                \
    ({                                                                                             \
        __auto_type take_ptr_ = (p);                                                               \
        (p) = NULL;                                                                                \
        take_ptr_;                                                                                 \
    })

/** freep() - cleanup handler for anything from malloc(). */
static inline void freep(void *p)
{
    free(*(void **)p);
}
