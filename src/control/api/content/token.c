/* token.c - see token.h. */
#include "token.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/content/body.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "mesh/object/fields.h"

#define PREFIX "weft1."
#define PREFIX_LEN (sizeof(PREFIX) - 1)

/* Room for the JSON inside the longest token. */
#define JSON_TEXT_MAX (TOKEN_TEXT_MAX * 3 / 4)

void token_wipe(struct token *t)
{
    secret_wipe(t, sizeof(*t));
}

/* The first @n of the further hubs; NULL where there are none. */
static json_t *encode_others(const struct token *t, unsigned n)
{
    json_t *others = n > 0 ? json_array() : NULL;
    char pin[BASE64_SIZE(sizeof(t->pin.b))];
    char key[X25519_BASE64_MAX];

    for (unsigned i = 0; i < n; i++) {
        const struct token_other *o = &t->others[i];
        json_t *api = json_array();

        for (unsigned k = 0; k < o->n_api; k++)
            json_array_append_new(api, json_string(o->api[k]));
        base64_encode(o->pin.b, sizeof(o->pin.b), pin);
        json_array_append_new(others, json_pack("{s:o, s:s, s:s}", "a", api, "t", pin, "k",
                                          x25519_public_format(&o->key, key)));
    }
    return others;
}

/* The JSON text inside a token, with @n_others of the further hubs; wiped and freed by the caller.
 */
static char *encode_json(const struct token *t, unsigned n_others)
{
    char key[X25519_BASE64_MAX];
    char pin[BASE64_SIZE(sizeof(t->pin.b))];
    char secret[BASE64_SIZE(sizeof(t->secret.b))];
    char at[ENDPOINT_TEXT_MAX];
    json_t *api = json_array();
    json_t *udp = json_array();
    json_t *json;
    char *text;

    for (unsigned i = 0; i < t->n_udp; i++)
        json_array_append_new(udp, json_string(endpoint_format(&t->udp[i], at)));
    for (unsigned i = 0; i < t->n_api; i++)
        json_array_append_new(api, json_string(t->api[i]));
    base64_encode(t->pin.b, sizeof(t->pin.b), pin);
    base64url_encode(t->secret.b, sizeof(t->secret.b), secret);
    json = json_pack("{s:s, s:o, s:o, s:s, s:s, s:s, s:I, s:o*}", "n", t->network, "u", udp, "a",
        api, "t", pin, "k", x25519_public_format(&t->hub_key, key), "s", secret, "e",
        (json_int_t)t->expires_at, "h", encode_others(t, n_others));
    secret_wipe(secret, sizeof(secret));
    text = body_format(json);
    if (json)
        body_wipe_text(json, "s");
    json_decref(json);
    return text;
}

/* The JSON text with as many of the further hubs as fit. */
static char *encode_fitting(const struct token *t)
{
    unsigned n = t->n_others;
    char *json = encode_json(t, n);

    while (n > 0 && json && strlen(json) > JSON_TEXT_MAX - PREFIX_LEN) {
        secret_wipe(json, strlen(json));
        free(json);
        json = encode_json(t, --n);
    }
    return json;
}

int token_encode(const struct token *t, char **ret, struct err *e)
{
    char *json = encode_fitting(t);
    size_t len = json ? strlen(json) : 0;
    char *text = malloc(PREFIX_LEN + BASE64_SIZE(len));
    int r = 0;

    if (!json || !text) {
        r = err_set(e, -ENOMEM, "no memory for a token");
    } else if (len > JSON_TEXT_MAX - PREFIX_LEN) {
        r = err_set(e, -EINVAL, "the hub has too many or too long addresses for a token");
    } else {
        memcpy(text, PREFIX, PREFIX_LEN);
        base64url_encode(json, len, text + PREFIX_LEN);
        *ret = TAKE_PTR(text);
    }
    if (json)
        secret_wipe(json, len);
    free(json);
    free(text);
    return r;
}

/* Has @take check and store each text of the array @name. */
static void read_endpoints(struct fields *f, const char *name, struct token *t,
    int (*take)(struct token *t, unsigned i, const char *text, struct err *e))
{
    const json_t *array = fields_array(f, name, FIELDS_REQUIRED, 1, TOKEN_ENDPOINTS_MAX);
    const json_t *item;
    size_t i;

    json_array_foreach(array, i, item) {
        const char *text = json_string_value(item);
        struct err e = ERR_NULL;

        if (!text)
            fields_fail(f, "\"%s\" holds something else than texts", name);
        else if (take(t, (unsigned)i, text, &e) != 0)
            fields_fail(f, "%s", err_text(&e));
    }
}

static int take_udp(struct token *t, unsigned i, const char *text, struct err *e)
{
    int r = endpoint_parse(&t->udp[i], text, e);

    if (r == 0 && t->udp[i].scope != 0)
        r = err_set(e, -EINVAL, "\"%.60s\" means nothing on another machine", text);
    t->n_udp = i + 1;
    return r;
}

static int take_api(struct token *t, unsigned i, const char *text, struct err *e)
{
    int r = host_port_check(text, e);

    if (r == 0) {
        t->n_api = i + 1;
        (void)snprintf(t->api[i], sizeof(t->api[i]), "%s", text);
    }
    return r;
}

/* A further hub. Fails @f with words. */
static void read_other(struct fields *f, struct token_other *o, const json_t *json)
{
    struct err e = ERR_NULL;
    struct fields of = fields_make(json, "a further hub", &e);
    const json_t *api = fields_array(&of, "a", FIELDS_REQUIRED, 1, TOKEN_OTHER_ENDPOINTS_MAX);
    const char *pin = fields_string(&of, "t", FIELDS_REQUIRED, 1, TLS_PIN_TEXT_MAX);

    if (pin && !base64_decode(pin, o->pin.b, sizeof(o->pin.b)))
        fields_fail(&of, "the pin is not the base64 of 32 bytes");
    fields_public_key(&of, "k", FIELDS_REQUIRED, &o->key);
    for (size_t i = 0; i < json_array_size(api); i++) {
        const char *text = json_string_value(json_array_get(api, i));
        struct err bad = ERR_NULL;

        if (!text)
            fields_fail(&of, "\"a\" holds something else than texts");
        else if (host_port_check(text, &bad) != 0)
            fields_fail(&of, "%s", err_text(&bad));
        else
            (void)snprintf(o->api[o->n_api++], sizeof(o->api[0]), "%s", text);
    }
    if (fields_end(&of) != 0)
        fields_fail(f, "%s", err_text(&e));
}

static int decode_json(struct token *t, const json_t *json, struct err *e)
{
    struct fields f = fields_make(json, "token", e);
    const char *pin;
    const char *text;
    size_t len;
    const json_t *array;

    fields_name(&f, "n", FIELDS_REQUIRED, t->network);
    read_endpoints(&f, "u", t, take_udp);
    read_endpoints(&f, "a", t, take_api);
    pin = fields_string(&f, "t", FIELDS_REQUIRED, 1, TLS_PIN_TEXT_MAX);
    if (pin && !base64_decode(pin, t->pin.b, sizeof(t->pin.b)))
        fields_fail(&f, "the pin is not the base64 of 32 bytes");
    fields_public_key(&f, "k", FIELDS_REQUIRED, &t->hub_key);
    text = fields_string(&f, "s", FIELDS_REQUIRED, 1, 64);
    if (text && (!base64url_decode(text, strlen(text), t->secret.b, sizeof(t->secret.b), &len) ||
                    len != sizeof(t->secret.b)))
        fields_fail(&f, "the secret is not 32 bytes");
    array = fields_array(&f, "h", FIELDS_OPTIONAL, 0, TOKEN_OTHERS_MAX);
    for (size_t i = 0; i < json_array_size(array); i++)
        read_other(&f, &t->others[t->n_others++], json_array_get(array, i));
    fields_int(&f, "e", FIELDS_REQUIRED, 0, INT64_MAX, &t->expires_at);
    return fields_end(&f);
}

#define COPY_AGAIN "copy it again, as one word, from what \"weft token new\" prints"

/* Is the word of @len characters at @text one that may be a token at all? Says what is wrong. */
static int check_word(const char *text, size_t len, struct err *e)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    size_t good;

    if (len == 0)
        return err_set(e, -EINVAL, "the join token is empty: " COPY_AGAIN);
    if (strchr("\"'`", text[0]))
        return err_set(e, -EINVAL, "there is a quotation mark before the join token: " COPY_AGAIN);
    if (strncmp(text, PREFIX, PREFIX_LEN) != 0)
        return err_set(e, -EINVAL,
            "this is not a join token, for it does not begin with \"" PREFIX "\": " COPY_AGAIN);
    if (len > TOKEN_TEXT_MAX)
        return err_set(e, -EINVAL,
            "the join token is too long, with more than %d characters: " COPY_AGAIN,
            TOKEN_TEXT_MAX);
    good = PREFIX_LEN + strspn(text + PREFIX_LEN, letters);
    if (good < len && text[good] > ' ' && text[good] < 0x7f)
        return err_set(e, -EINVAL,
            "the join token has the character %c in it, which no token has: " COPY_AGAIN,
            text[good]);
    if (good < len)
        return err_set(
            e, -EINVAL, "the join token has a character in it that no token has: " COPY_AGAIN);
    return 0;
}

/* The text inside a token is whole if it ends as all of them do. */
static int refuse_damaged(bool is_whole, struct err *e)
{
    if (!is_whole)
        return err_set(
            e, -EINVAL, "the join token is cut short, or damaged at its end: " COPY_AGAIN);
    return err_set(
        e, -EINVAL, "the join token is damaged, a character is another one: " COPY_AGAIN);
}

int token_decode(struct token *ret, const char *text, struct err *e)
{
    static const char space[] = " \t\r\n";
    const char *start = text + strspn(text, space);
    size_t len = strcspn(start, space);
    char json_text[JSON_TEXT_MAX];
    struct token t = TOKEN_NULL;
    json_t *json = NULL;
    size_t json_len = 0;
    bool is_whole;
    int r = check_word(start, len, e);

    if (r == 0 && start[len + strspn(start + len, space)] != '\0')
        r = err_set(e, -EINVAL, "the join token has white space in it: " COPY_AGAIN);
    if (r != 0)
        return r;
    if (!base64url_decode(
            start + PREFIX_LEN, len - PREFIX_LEN, json_text, sizeof(json_text), &json_len))
        return refuse_damaged(false, e);
    is_whole = json_len > 0 && json_text[json_len - 1] == '}';
    r = body_parse(&json, json_text, json_len, NULL);
    secret_wipe(json_text, sizeof(json_text));
    if (r == -ENOMEM)
        return err_set(e, r, "no memory for a token");
    if (r != 0)
        return refuse_damaged(is_whole, e);
    r = decode_json(&t, json, NULL);
    body_wipe_text(json, "s");
    json_decref(json);
    if (r == 0)
        *ret = t;
    token_wipe(&t);
    return r == 0 ? 0 : refuse_damaged(true, e);
}
