/* body.c - see body.h. */
#include "body.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/secret.h"

/* Is it nested deeper than @max levels? It looks no deeper than that itself. */
static bool is_deeper(const json_t *json, unsigned max)
{
    const char *key;
    json_t *value;
    size_t i;

    if (!json_is_object(json) && !json_is_array(json))
        return false;
    if (max == 0)
        return true;
    json_object_foreach((json_t *)json, key, value)
        if (is_deeper(value, max - 1))
            return true;
    json_array_foreach(json, i, value)
        if (is_deeper(value, max - 1))
            return true;
    return false;
}

int body_check_depth(const json_t *json, unsigned max, struct err *e)
{
    if (!is_deeper(json, max))
        return 0;
    return err_set(e, -EINVAL, "the body has more than %u objects or arrays in one another", max);
}

int body_parse(json_t **ret, const char *text, size_t len, struct err *e)
{
    json_error_t je;
    json_t *json = json_loadb(text, len, JSON_REJECT_DUPLICATES, &je);

    if (!json && json_error_code(&je) == json_error_out_of_memory)
        return err_set(e, -ENOMEM, "no memory for a body of %zu bytes", len);
    if (!json)
        return err_set(e, -EINVAL, "the body is not JSON: %s, at line %d, column %d", je.text,
            je.line, je.column);
    if (!json_is_object(json)) {
        json_decref(json);
        return err_set(e, -EINVAL, "the body is JSON, but not an object");
    }
    if (body_check_depth(json, BODY_DEPTH_MAX, e) != 0) {
        json_decref(json);
        return -EINVAL;
    }
    *ret = json;
    return 0;
}

char *body_format(const json_t *json)
{
    return json_dumps(json, JSON_COMPACT);
}

json_t *body_refusal(const char *sentence)
{
    /* What is no UTF-8 cannot be said in JSON. */
    json_t *text = json_string(sentence);

    return json_pack("{s:o}", "error", text ? text : json_string("the request was refused"));
}

const char *body_refusal_text(const json_t *json)
{
    return json_string_value(json_object_get(json, "error"));
}

void body_wipe_text(json_t *json, const char *field)
{
    const json_t *text = json_object_get(json, field);
    size_t len = json_string_length(text);

    /* jansson hands out its own writable memory as const. */
    if (len > 0)
        secret_wipe((char *)json_string_value(text), len);
}

/* ---- forms ---------------------------------------------------------------------------------- */

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

/* Decodes @len bytes in place and puts a zero behind, for which there is room. False with @words.
 */
static bool decode(char *p, size_t len, size_t *ret_len, char words[static FORM_WORDS_MAX])
{
    size_t out = 0;

    for (size_t i = 0; i < len; i++) {
        int high = 0;
        int low = 0;

        if (p[i] == '%') {
            high = i + 2 < len ? digit_of(p[i + 1]) : -1;
            low = i + 2 < len ? digit_of(p[i + 2]) : -1;
            if (high < 0 || low < 0) {
                int shown = len - i < 3 ? (int)(len - i) : 3;

                (void)snprintf(words, FORM_WORDS_MAX, "invalid URL escape \"%.*s\"", shown, p + i);
                return false;
            }
            p[out++] = (char)(high << 4 | low);
            i += 2;
        } else {
            p[out++] = p[i] == '+' ? ' ' : p[i];
        }
    }
    p[out] = '\0';
    *ret_len = out;
    return true;
}

/* Adds one field, of @len bytes. The byte behind them may be written. */
static int parse_field(struct form *form, char *p, size_t len, char words[static FORM_WORDS_MAX])
{
    char *equals = memchr(p, '=', len);
    size_t name_len = equals ? (size_t)(equals - p) : len;
    char *value = equals ? equals + 1 : p + len;
    size_t value_len = (size_t)(p + len - value);

    if (len == 0)
        return 0;
    if (memchr(p, ';', len)) {
        (void)snprintf(words, FORM_WORDS_MAX, "invalid semicolon separator in query");
        return -EINVAL;
    }
    if (!decode(p, name_len, &name_len, words) || !decode(value, value_len, &value_len, words))
        return -EINVAL;
    if (form->n < FORM_FIELDS_MAX)
        form->fields[form->n++] =
            (struct form_field){.name = p, .value = value, .value_len = value_len};
    return 0;
}

int form_parse(struct form *form, char *text, size_t len, char words[static FORM_WORDS_MAX])
{
    char others[FORM_WORDS_MAX];
    int r = 0;

    words[0] = '\0';
    while (len > 0) {
        char *amp = memchr(text, '&', len);
        size_t field = amp ? (size_t)(amp - text) : len;
        int bad = parse_field(form, text, field, r == 0 ? words : others);

        r = r == 0 ? bad : r;
        text += amp ? field + 1 : field;
        len -= amp ? field + 1 : field;
    }
    return r;
}

const struct form_field *form_find(const struct form *form, const char *name)
{
    for (size_t i = 0; i < form->n; i++)
        if (strcmp(form->fields[i].name, name) == 0)
            return &form->fields[i];
    return NULL;
}

/* ---- Content-Type --------------------------------------------------------------------------- */

/* The length of a token (RFC 2045, section 5.1). */
static size_t token(const char *p)
{
    size_t n = 0;

    while (p[n] > ' ' && p[n] < 0x7f && !strchr("()<>@,;:\\\"/[]?=", p[n]))
        n++;
    return n;
}

static const char *skip_spaces(const char *p)
{
    return p + strspn(p, " \t\r\n");
}

/* What follows the ";NAME=VALUE" at @p; NULL: there is no such parameter. */
static const char *skip_parameter(const char *p)
{
    size_t n;

    p = skip_spaces(p + 1);
    n = token(p);
    p = skip_spaces(p + n);
    if (n == 0 || *p != '=')
        return NULL;
    p = skip_spaces(p + 1);
    if (*p != '"')
        return token(p) > 0 ? p + token(p) : NULL;
    for (p++; *p && *p != '"'; p++)
        p += p[0] == '\\' && p[1];
    return *p ? p + 1 : NULL;
}

/* What is wrong with the media type, which is @len bytes before the parameters; "": nothing. */
static const char *complain_of(const char *p, size_t len)
{
    size_t n = token(p);

    if (n == 0)
        return "mime: no media type";
    if (n == len)
        return "";
    if (p[n] != '/')
        return "mime: expected slash after first token";
    if (token(p + n + 1) == 0)
        return "mime: expected token after slash";
    return n + 1 + token(p + n + 1) == len ? "" : "mime: unexpected content after media subtype";
}

bool form_type(const char *type, char words[static FORM_WORDS_MAX])
{
    static const char wanted[] = "application/x-www-form-urlencoded";
    const char *p = skip_spaces(type && *type ? type : "application/octet-stream");
    size_t len = strcspn(p, ";");
    const char *rest = p + len;

    while (len > 0 && strchr(" \t\r\n", p[len - 1]))
        len--;
    (void)snprintf(words, FORM_WORDS_MAX, "%s", complain_of(p, len));
    for (rest = skip_spaces(rest); words[0] == '\0' && *rest; rest = skip_spaces(rest)) {
        const char *next = *rest == ';' ? skip_parameter(rest) : NULL;

        if (!next && *rest == ';' && *skip_spaces(rest + 1) == '\0')
            break;
        if (next)
            rest = next;
        else
            (void)snprintf(words, FORM_WORDS_MAX, "mime: invalid media parameter");
    }
    return len == sizeof(wanted) - 1 && strncasecmp(p, wanted, len) == 0;
}
