/* uapi_client.c - see uapi_client.h. */
#include "engine/uapi_client.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/secret.h"
#include "base/text.h"
#include "crypto/x25519.h"
#include "mesh/config/diff.h"
#include "mesh/config/wg_config.h"
#include "net/tun/offload.h"
#include "relay/line.h"

#define ERRNO_MAX 4095

/* ---- writing -------------------------------------------------------------------------------- */

static void add_peer(struct str *out, const struct diff_peer *change)
{
    const struct wg_peer *p = &change->peer;
    char hex[X25519_HEX_MAX];
    char psk[2 * sizeof(p->psk.b) + 1];
    char endpoint[ENDPOINT_TEXT_MAX];
    char block[IP_PREFIX_TEXT_MAX];
    char cipher[NOISE_CHOICE_TEXT_MAX];

    str_addf(out, "public_key=%s\n", x25519_public_format_hex(&p->key, hex));
    if (change->op == DIFF_OP_REMOVE) {
        str_add(out, "remove=true\n");
        return;
    }
    if (change->is_replaced)
        str_addf(out, "replaces=%s\n", x25519_public_format_hex(&change->replaces, hex));
    if (change->op == DIFF_OP_UPDATE)
        str_add(out, "update_only=true\n");
    if (change->set_next_key)
        str_addf(out, "next_public_key=%s\n", x25519_public_format_hex(&p->next_key, hex));
    if (change->set_initiate_with_current)
        str_addf(out, "initiate_with_current=%s\n", p->initiate_with_current ? "true" : "false");
    if (change->set_psk) {
        hex_encode(p->psk.b, sizeof(p->psk.b), psk);
        str_addf(out, "preshared_key=%s\n", psk);
        secret_wipe(psk, sizeof(psk));
    }
    if (change->set_endpoint)
        str_addf(out, "endpoint=%s\n", endpoint_format(&p->endpoint, endpoint));
    if (change->set_keepalive)
        str_addf(out, "persistent_keepalive_interval=%u\n", p->keepalive);
    if (change->set_pin)
        str_addf(out, "pinned_endpoint=%s\n", pin_names[p->pin]);
    if (change->set_relayed)
        str_addf(out, "relayed=%s\n", p->is_relayed ? "true" : "false");
    if (change->set_mtu)
        str_addf(out, "mtu=%u\n", p->mtu);
    if (change->set_rate)
        str_addf(out, "peer_rate=%" PRIu64 "\n", p->rate);
    if (change->set_cipher)
        str_addf(out, "cipher=%s\n", noise_choice_format(p->cipher, cipher));
    if (!change->set_allowed)
        return;
    str_add(out, "replace_allowed_ips=true\n");
    for (size_t i = 0; i < p->n_allowed; i++)
        str_addf(out, "allowed_ip=%s\n", ip_prefix_format(&p->allowed[i], block));
}

static void add_secret(struct str *out, const char *key, const struct x25519_secret *secret)
{
    char hex[X25519_HEX_MAX];

    x25519_secret_write_hex(secret, hex);
    str_addf(out, "%s=%s\n", key, hex);
    secret_wipe(hex, sizeof(hex));
}

void uapi_client_encode(const struct diff *d, const struct x25519_secret *secret, struct str *out)
{
    const struct x25519_secret none = {{0}};

    str_add(out, "set=1\n");
    if (d->set_key)
        add_secret(out, "private_key", secret);
    if (d->set_next_key)
        add_secret(out, "next_private_key", d->next_secret ? d->next_secret : &none);
    if (d->set_initiate_with_next)
        str_addf(out, "initiate_with_next=%s\n", d->initiate_with_next ? "true" : "false");
    if (d->set_listen_port)
        str_addf(out, "listen_port=%u\n", d->listen_port);
    if (d->set_fwmark)
        str_addf(out, "fwmark=%u\n", d->fwmark);
    if (d->set_relay)
        str_addf(out, "relay=%s\n", d->is_relay ? "true" : "false");
    if (d->set_rate)
        str_addf(out, "rate=%" PRIu64 "\n", d->rates.all);
    for (unsigned i = 0; i < TRAFFIC_CLASS_N; i++)
        if (d->set_class_rates[i])
            str_addf(
                out, "class_rate=%s:%" PRIu64 "\n", traffic_class_names[i], d->rates.classes[i]);
    if (d->set_shows_dscp)
        str_addf(out, "show_dscp=%s\n", d->shows_dscp ? "true" : "false");
    for (size_t i = 0; i < d->n_peers; i++)
        add_peer(out, &d->peers[i]);
    str_add(out, "\n");
}

void uapi_client_encode_handshake(const struct x25519_public *peer, struct str *out)
{
    char hex[X25519_HEX_MAX];

    str_addf(out, "set=1\npublic_key=%s\nupdate_only=true\nhandshake=now\n\n",
        x25519_public_format_hex(peer, hex));
}

/* ---- reading -------------------------------------------------------------------------------- */

/** An answer being read. */
struct decoder {
    const char *next; /* borrowed; rest of the text */
    const char *end;
    char line[UAPI_CLIENT_LINE_MAX + 1]; /* the present one: its key, and a zero where '=' was */
    char *value;                         /* behind that zero */
    struct wg_config config;             /* what has been read */
    struct wg_peer peer;                 /* the one being read */
    bool in_peer;                        /* a public_key line has come */
};

/* The next "key=value" line; false at the empty line or the end. -EBADMSG in @ret_r. */
static bool read_line(struct decoder *dc, int *ret_r, struct err *e)
{
    const char *newline = memchr(dc->next, '\n', (size_t)(dc->end - dc->next));
    size_t len = (size_t)((newline ? newline : dc->end) - dc->next);

    *ret_r = 0;
    if (len == 0)
        return false;
    if (len > UAPI_CLIENT_LINE_MAX) {
        *ret_r = err_set(e, -EBADMSG, "the engine answered with a line of %zu bytes", len);
        return false;
    }
    memcpy(dc->line, dc->next, len);
    dc->line[len] = '\0';
    dc->next = newline ? newline + 1 : dc->end;
    dc->value = strchr(dc->line, '=');
    if (!dc->value) {
        *ret_r = err_set(e, -EBADMSG, "the engine answered with \"%.40s\"", dc->line);
        return false;
    }
    *dc->value++ = '\0';
    return true;
}

static int bad_value(const struct decoder *dc, struct err *e)
{
    return err_set(e, -EBADMSG, "the engine answered with a wrong %.40s", dc->line);
}

/* "fwmark" comes as hex or decimal, depending on the engine. */
static bool value_mark(const struct decoder *dc, uint32_t *ret)
{
    char *end;
    unsigned long v;

    if (dc->value[0] < '0' || dc->value[0] > '9')
        return false;
    v = strtoul(dc->value, &end, 0);
    *ret = (uint32_t)v;
    return *end == '\0' && v <= UINT32_MAX;
}

/* @ret: the public key that follows. */
static bool take_private_key(const struct decoder *dc, struct x25519_public *ret)
{
    struct x25519_secret secret;
    bool good = x25519_secret_parse_hex(&secret, dc->value);

    if (good && !x25519_secret_is_none(&secret))
        good = x25519_derive_public(&secret, ret);
    secret_wipe(&secret, sizeof(secret));
    return good;
}

/* "CLASS:BITS"; a class that this version does not know is passed over. */
static bool take_class_rate(struct decoder *dc)
{
    const char *colon = strchr(dc->value, ':');
    enum traffic_class class;
    uint64_t rate;

    if (!colon || parse_u64(&rate, colon + 1, 0, TRAFFIC_RATE_MAX, dc->line, NULL) < 0)
        return false;
    if (traffic_class_parse(&class, dc->value, (size_t)(colon - dc->value)))
        dc->config.rates.classes[class] = rate;
    return true;
}

/* "KEY,KEY,BITS", the keys in hex. */
static bool take_relay_pair(struct relay_line_report *line, bool is_away, char *value)
{
    struct relay_reported_pair *pair = &line->pairs[line->n_pairs];
    char *second = strchr(value, ',');
    char *rate = second ? strchr(second + 1, ',') : NULL;
    struct path_relay_notice *notice = &line->notice;

    if (!rate || line->n_pairs == RELAY_LINE_REPORTED_MAX ||
        (is_away && notice->n_away == PATH_AWAY_MAX))
        return false;
    *second++ = *rate++ = '\0';
    if (!x25519_public_parse_hex(&pair->pair.keys[0], value) ||
        !x25519_public_parse_hex(&pair->pair.keys[1], second) ||
        parse_u64(&pair->pair.rate, rate, 0, INT64_MAX, "rate", NULL) < 0)
        return false;
    pair->is_away = is_away;
    line->n_pairs++;
    if (is_away)
        notice->away[notice->n_away++] = path_pair_tag(&pair->pair.keys[0], &pair->pair.keys[1]);
    return true;
}

static bool take_level(const char *value, enum relay_line_level *ret)
{
    for (unsigned i = 0; i < RELAY_LINE_LEVEL_N; i++)
        if (strcmp(value, relay_line_level_names[i]) == 0) {
            *ret = (enum relay_line_level)i;
            return true;
        }
    return false;
}

/* What is said of the line of a relay; what this version does not know of it is passed over. */
static bool take_relay_line(struct decoder *dc)
{
    struct relay_line_report *line = dc->config.line;
    const char *name = dc->line + strlen("relay_");
    bool good = true;

    if (!line)
        line = dc->config.line = calloc(1, sizeof(*line));
    if (!line)
        return false;
    if (strcmp(name, "capacity") == 0) {
        good = parse_u64(&line->capacity, dc->value, 0, INT64_MAX, dc->line, NULL) == 0;
    } else if (strcmp(name, "rate") == 0) {
        good = parse_u64(&line->rate, dc->value, 0, INT64_MAX, dc->line, NULL) == 0;
    } else if (strcmp(name, "level") == 0) {
        good = take_level(dc->value, &line->level);
    } else if (strcmp(name, "closed") == 0) {
        line->notice.is_closed = strcmp(dc->value, "true") == 0;
    } else {
        good = take_relay_pair(line, strcmp(name, "pair_away") == 0, dc->value);
    }
    return good;
}

/** What a line says: the type of its field, or how it is taken. */
enum line_value {
    LINE_U16,
    LINE_U32,
    LINE_U64,
    LINE_BOOL,
    LINE_MARK,
    LINE_ENDPOINT,
    LINE_CIPHER,
    LINE_PIN,
    LINE_PSK,
    LINE_ALLOWED_IP,
    LINE_PRIVATE_KEY,
    LINE_PUBLIC_KEY,
    LINE_CLASS_RATE,
    LINE_RELAY,
};

struct line_kind {
    const char *name;
    size_t len; /* compared first: an answer has a dozen lines for each of thousands of peers */
    enum line_value value;
    size_t at;    /* of the field in struct wg_config or struct wg_peer */
    uint64_t max; /* the largest number; 0: it is none */
};

#define NAME(name)    name, sizeof(name) - 1
#define CONFIG(field) offsetof(struct wg_config, field)
#define PEER(field)   offsetof(struct wg_peer, field)

/* Before the first peer. */
static const struct line_kind interface_lines[] = {
    {NAME("private_key"), LINE_PRIVATE_KEY, CONFIG(public), 0},
    {NAME("next_private_key"), LINE_PRIVATE_KEY, CONFIG(next_public), 0},
    {NAME("initiate_with_next"), LINE_BOOL, CONFIG(initiate_with_next), 0},
    {NAME("listen_port"), LINE_U16, CONFIG(listen_port), UINT16_MAX},
    {NAME("listen_errno"), LINE_U32, CONFIG(listen_errno), ERRNO_MAX},
    {NAME("fwmark"), LINE_MARK, CONFIG(fwmark), 0},
    {NAME("merging_age_s"), LINE_U32, CONFIG(merging_age_s), UINT32_MAX},
    {NAME("merging_ifindex"), LINE_U32, CONFIG(merging_ifindex), INT32_MAX},
    {NAME("merging_percent"), LINE_U32, CONFIG(merging_percent), 100},
    {NAME("socket_drops"), LINE_U64, CONFIG(socket_drops), UINT64_MAX},
    {NAME("relay"), LINE_BOOL, CONFIG(is_relay), 0},
    {NAME("relay_capacity"), LINE_RELAY, 0, 0},
    {NAME("relay_closed"), LINE_RELAY, 0, 0},
    {NAME("relay_level"), LINE_RELAY, 0, 0},
    {NAME("relay_pair"), LINE_RELAY, 0, 0},
    {NAME("relay_pair_away"), LINE_RELAY, 0, 0},
    {NAME("relay_rate"), LINE_RELAY, 0, 0},
    {NAME("rate"), LINE_U64, CONFIG(rates.all), TRAFFIC_RATE_MAX},
    {NAME("class_rate"), LINE_CLASS_RATE, 0, 0},
    {NAME("show_dscp"), LINE_BOOL, CONFIG(shows_dscp), 0},
    {NULL, 0, 0, 0, 0},
};

static const struct line_kind peer_lines[] = {
    {NAME("allowed_ip"), LINE_ALLOWED_IP, 0, 0},
    {NAME("cipher"), LINE_CIPHER, PEER(cipher), 0},
    {NAME("endpoint"), LINE_ENDPOINT, PEER(endpoint), 0},
    {NAME("last_handshake_time_nsec"), LINE_U32, PEER(facts.handshake_nsec), 999999999},
    {NAME("last_handshake_time_sec"), LINE_U64, PEER(facts.handshake_sec), INT64_MAX},
    {NAME("heard_endpoint"), LINE_ENDPOINT, PEER(facts.heard), 0},
    {NAME("heard_next"), LINE_BOOL, PEER(facts.heard_next), 0},
    {NAME("session_next"), LINE_BOOL, PEER(facts.session_next), 0},
    {NAME("next_public_key"), LINE_PUBLIC_KEY, PEER(next_key), 0},
    {NAME("initiate_with_current"), LINE_BOOL, PEER(initiate_with_current), 0},
    {NAME("persistent_keepalive_interval"), LINE_U16, PEER(keepalive), UINT16_MAX},
    {NAME("mtu"), LINE_U16, PEER(mtu), UINT16_MAX},
    {NAME("pinned_endpoint"), LINE_PIN, PEER(pin), 0},
    {NAME("preshared_key"), LINE_PSK, PEER(psk), 0},
    {NAME("peer_rate"), LINE_U64, PEER(rate), TRAFFIC_RATE_MAX},
    {NAME("relayed"), LINE_BOOL, PEER(is_relayed), 0},
    {NAME("rx_bytes"), LINE_U64, PEER(facts.rx_bytes), UINT64_MAX},
    {NAME("rx_datagrams"), LINE_U64, PEER(facts.arrivals.received), UINT64_MAX},
    {NAME("rx_lost"), LINE_U64, PEER(facts.arrivals.lost), UINT64_MAX},
    {NAME("rx_reordered"), LINE_U64, PEER(facts.arrivals.reordered), UINT64_MAX},
    {NAME("rx_repeated"), LINE_U64, PEER(facts.arrivals.repeated), UINT64_MAX},
    {NAME("tx_bytes"), LINE_U64, PEER(facts.tx_bytes), UINT64_MAX},
    {NULL, 0, 0, 0, 0},
};

/* Takes a line of @kinds into @of; any other is passed over. */
static int take_line(struct decoder *dc, const struct line_kind *k, void *of, struct err *e)
{
    size_t len = (size_t)(dc->value - dc->line) - 1;
    struct ip_prefix block;
    bool good = true;
    uint64_t v = 0;
    void *at;

    while (k->name && (k->len != len || memcmp(k->name, dc->line, len) != 0))
        k++;
    if (!k->name)
        return 0;
    at = (char *)of + k->at;
    if (k->max > 0 && parse_u64(&v, dc->value, 0, k->max, dc->line, NULL) != 0)
        return bad_value(dc, e);
    switch (k->value) {
    case LINE_U16:
        *(uint16_t *)at = (uint16_t)v;
        break;
    case LINE_U32:
        *(uint32_t *)at = (uint32_t)v;
        break;
    case LINE_U64:
        *(uint64_t *)at = v;
        break;
    case LINE_BOOL:
        *(bool *)at = strcmp(dc->value, "true") == 0;
        break;
    case LINE_MARK:
        good = value_mark(dc, at);
        break;
    case LINE_ENDPOINT:
        good = endpoint_parse(at, dc->value, NULL) == 0;
        break;
    case LINE_CIPHER:
        good = noise_choice_parse(at, dc->value, NULL) == 0;
        break;
    case LINE_PIN:
        good = pin_parse(at, dc->value);
        break;
    case LINE_PSK:
        good = hex_decode(dc->value, at, sizeof(dc->peer.psk.b));
        break;
    case LINE_ALLOWED_IP:
        if (ip_prefix_parse(&block, dc->value, NULL) < 0)
            return bad_value(dc, e);
        return wg_peer_allow(&dc->peer, &block);
    case LINE_PRIVATE_KEY:
        good = take_private_key(dc, at);
        break;
    case LINE_PUBLIC_KEY:
        good = x25519_public_parse_hex(at, dc->value);
        break;
    case LINE_CLASS_RATE:
        good = take_class_rate(dc);
        break;
    case LINE_RELAY:
        good = take_relay_line(dc);
        break;
    }
    return good ? 0 : bad_value(dc, e);
}

static int finish_peer(struct decoder *dc)
{
    if (!dc->in_peer)
        return 0;
    dc->in_peer = false;
    return wg_config_add(&dc->config, &dc->peer);
}

static int start_peer(struct decoder *dc, struct err *e)
{
    int r = finish_peer(dc);

    if (r < 0)
        return r;
    if (!x25519_public_parse_hex(&dc->peer.key, dc->value))
        return bad_value(dc, e);
    dc->in_peer = true;
    return 0;
}

/* The engine's own verdict, at the end. */
static int take_errno(const struct decoder *dc, struct err *e)
{
    /* Some engines answer it negative. */
    const char *digits = dc->value[0] == '-' ? dc->value + 1 : dc->value;
    uint64_t code;

    if (parse_u64(&code, digits, 0, ERRNO_MAX, "errno", NULL) < 0)
        return bad_value(dc, e);
    if (code == 0)
        return 0;
    return err_set(e, -(int)code, "the engine refused: %s", strerror((int)code));
}

static int decode_lines(struct decoder *dc, struct err *e)
{
    int r;

    while (read_line(dc, &r, e)) {
        if (strcmp(dc->line, "errno") == 0) {
            r = take_errno(dc, e);
            return r < 0 ? r : finish_peer(dc);
        }
        if (strcmp(dc->line, "public_key") == 0)
            r = start_peer(dc, e);
        else if (dc->in_peer)
            r = take_line(dc, peer_lines, &dc->peer, e);
        else
            r = take_line(dc, interface_lines, &dc->config, e);
        if (r < 0)
            return r;
    }
    return r < 0 ? r : err_set(e, -EBADMSG, "the engine's answer does not end with errno");
}

int uapi_client_decode(struct wg_config *ret, const char *text, size_t len, struct err *e)
{
    struct decoder dc = {.next = text, .end = text + len};
    int r = decode_lines(&dc, e);

    secret_wipe(dc.line, sizeof(dc.line));
    wg_peer_deinit(&dc.peer);
    if (r < 0) {
        wg_config_deinit(&dc.config);
        return r;
    }
    *ret = dc.config;
    return 0;
}

/* "offload_NAME=on", and "offload_NAME_why=TEXT"; other lines are passed over. */
static bool take_offload_line(const struct decoder *dc, struct offloads *o, bool *is_said)
{
    static const char prefix[] = "offload_", suffix[] = "_why";
    const char *name = dc->line + strlen(prefix);
    size_t len = strlen(dc->line);
    int which;

    if (len < strlen(prefix) || strncmp(dc->line, prefix, strlen(prefix)) != 0)
        return true;
    len -= strlen(prefix);
    which = offload_find(name, len);
    if (which >= 0) {
        is_said[which] = true;
        o->on[which] = strcmp(dc->value, "on") == 0;
        return o->on[which] || strcmp(dc->value, "off") == 0;
    }
    if (len > strlen(suffix) && strcmp(name + len - strlen(suffix), suffix) == 0)
        which = offload_find(name, len - strlen(suffix));
    if (which >= 0)
        (void)snprintf(o->why[which], sizeof(o->why[which]), "%s", dc->value);
    return true;
}

int uapi_client_decode_stats(struct offloads *ret, struct uapi_abilities *ret_can, const char *text,
    size_t len, struct err *e)
{
    struct decoder dc = {.next = text, .end = text + len};
    bool is_said[OFFLOAD_N] = {false};
    struct offloads o = {0};
    struct uapi_abilities can = {.keeps_rates = false};
    int r;

    do {
        if (!read_line(&dc, &r, e))
            return r < 0 ? r : err_set(e, -EBADMSG, "the engine's answer does not end with errno");
        if (ret && !take_offload_line(&dc, &o, is_said))
            return bad_value(&dc, e);
        if (strcmp(dc.line, "rates") == 0)
            can.keeps_rates = strcmp(dc.value, "true") == 0;
        if (strcmp(dc.line, "next_keys") == 0)
            can.has_next_keys = strcmp(dc.value, "true") == 0;
        if (strcmp(dc.line, "access") == 0)
            can.has_access = strcmp(dc.value, "true") == 0;
    } while (strcmp(dc.line, "errno") != 0);
    r = take_errno(&dc, e);
    for (int i = 0; ret && r == 0 && i < OFFLOAD_N; i++)
        if (!is_said[i])
            r = err_set(
                e, -EBADMSG, "the engine does not say whether it uses %s", offload_names[i]);
    if (r == 0 && ret)
        *ret = o;
    if (r == 0 && ret_can)
        *ret_can = can;
    return r;
}

int uapi_client_result(const char *text, size_t len, struct err *e)
{
    struct wg_config nothing = WG_CONFIG_NULL;
    int r = uapi_client_decode(&nothing, text, len, e);

    wg_config_deinit(&nothing);
    return r;
}
