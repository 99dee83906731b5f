/* form.c - see form.h. */
#include "form.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <string.h>

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* jansson makes strings of UTF-8 only. */
static bool is_text(const char *p, size_t len)
{
    json_t *json = json_stringn(p, len);

    json_decref(json);
    return json != NULL;
}

/* @len bytes in place, with a zero behind, for which there is room. */
static bool decode(char *p, size_t len)
{
    size_t out = 0;

    for (size_t i = 0; i < len; i++) {
        int high = 0;
        int low = 0;

        if (p[i] == '%') {
            high = i + 2 < len ? digit_of(p[i + 1]) : -1;
            low = i + 2 < len ? digit_of(p[i + 2]) : -1;
            if (high < 0 || low < 0 || (high == 0 && low == 0))
                return false;
            p[out++] = (char)(high << 4 | low);
            i += 2;
        } else {
            p[out++] = p[i] == '+' ? ' ' : p[i];
        }
    }
    p[out] = '\0';
    return is_text(p, out);
}

int form_add(struct form *form, const char *name, const char *value)
{
    if (form->n == FORM_FIELDS_MAX)
        return -EINVAL;
    form->fields[form->n++] = (struct form_field){.name = name, .value = value};
    return 0;
}

/* One field, of @len bytes, behind which a byte may be written. */
static int parse_field(struct form *form, char *p, size_t len)
{
    char *equals = memchr(p, '=', len);
    size_t name_len = equals ? (size_t)(equals - p) : len;
    char *value = equals ? equals + 1 : p + len;

    if (len == 0)
        return 0;
    if (!decode(value, (size_t)(p + len - value)) || !decode(p, name_len))
        return -EINVAL;
    return form_add(form, p, value);
}

int form_parse(struct form *form, char *text, size_t len)
{
    if (memchr(text, '\0', len))
        return -EINVAL;
    while (len > 0) {
        char *amp = memchr(text, '&', len);
        size_t field = amp ? (size_t)(amp - text) : len;
        int r = parse_field(form, text, field);

        if (r != 0)
            return r;
        text += amp ? field + 1 : field;
        len -= amp ? field + 1 : field;
    }
    return 0;
}

const char *form_find(const struct form *form, const char *name)
{
    for (size_t i = 0; i < form->n; i++)
        if (strcmp(form->fields[i].name, name) == 0)
            return form->fields[i].value;
    return NULL;
}
