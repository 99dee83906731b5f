/* vectors.c - see vectors.h. */
#include "vectors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"

#define FILE_MAX (1u << 20)

void vectors_open(struct vectors *v, const char *file)
{
    const char *root = getenv("WEFT_SOURCE_ROOT");
    char path[4096];
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/test/vectors/%s", root ? root : ".", file);
    f = fopen(path, "rb");
    if (!f)
        fail_msg("%s cannot be read; run from the source root or set WEFT_SOURCE_ROOT", path);
    *v = (struct vectors){.text = malloc(FILE_MAX + 1), .file = file};
    assert_non_null(v->text);
    v->len = fread(v->text, 1, FILE_MAX, f);
    (void)fclose(f);
    v->text[v->len] = '\0';
    for (size_t i = 0; i < v->len; i++)
        if (v->text[i] == '\n')
            v->text[i] = '\0';
}

void vectors_close(struct vectors *v)
{
    free(v->text);
    *v = (struct vectors){0};
}

/* The value of a "name = value" line, NULL when the line is another. */
static const char *value_of(const char *line, const char *name)
{
    size_t len = strlen(name);

    return strncmp(line, name, len) == 0 && strncmp(line + len, " = ", 3) == 0 ? line + len + 3
                                                                               : NULL;
}

bool vectors_next(struct vectors *v)
{
    bool found = false;
    size_t off = v->end;

    for (; off < v->len; off += strlen(v->text + off) + 1) {
        const char *title = value_of(v->text + off, "case");

        if (!title)
            continue;
        if (found)
            break;
        v->title = title;
        v->begin = off + strlen(v->text + off) + 1;
        found = true;
    }
    v->end = off;
    return found;
}

static const char *find(const struct vectors *v, const char *name)
{
    for (size_t off = v->begin; off < v->end; off += strlen(v->text + off) + 1) {
        const char *value = value_of(v->text + off, name);

        if (value)
            return value;
    }
    return NULL;
}

static const char *get(const struct vectors *v, const char *name)
{
    const char *value = find(v, name);

    if (!value)
        fail_msg("%s, case \"%s\": no field \"%s\"", v->file, v->title, name);
    return value;
}

bool vectors_has(const struct vectors *v, const char *name)
{
    return find(v, name) != NULL;
}

size_t vectors_bytes(const struct vectors *v, const char *name, void *ret, size_t cap)
{
    const char *value = get(v, name);
    size_t len = strcmp(value, "-") == 0 ? 0 : strlen(value) / 2;

    if (len > cap)
        fail_msg("%s, case \"%s\": \"%s\" has %zu bytes, more than %zu", v->file, v->title, name,
            len, cap);
    if (len > 0 && !hex_decode(value, ret, len))
        fail_msg("%s, case \"%s\": \"%s\" is not hex", v->file, v->title, name);
    return len;
}

void vectors_exact(const struct vectors *v, const char *name, void *ret, size_t len)
{
    size_t got = vectors_bytes(v, name, ret, len);

    if (got != len)
        fail_msg(
            "%s, case \"%s\": \"%s\" has %zu bytes, not %zu", v->file, v->title, name, got, len);
}

uint64_t vectors_u64(const struct vectors *v, const char *name)
{
    struct err e = ERR_NULL;
    uint64_t n = 0;

    if (parse_u64(&n, get(v, name), 0, UINT64_MAX, name, &e) < 0)
        fail_msg("%s, case \"%s\": %s", v->file, v->title, err_text(&e));
    return n;
}
