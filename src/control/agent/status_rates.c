/* status_rates.c - see status_rates.h. */
#include "agent/status_rates.h"

#include <stdio.h>

#include "base/str.h"
#include "base/traffic.h"

/* So many peers' rates are named at most. */
#define NAMED_MAX 10

json_t *status_rates_encode_one(uint64_t bits_per_s)
{
    return bits_per_s ? json_integer((json_int_t)bits_per_s) : json_null();
}

json_t *status_rates_encode(const struct traffic_rates *rates, bool shows_dscp, const char *why)
{
    json_t *classes = json_object();

    for (unsigned i = 0; classes && i < TRAFFIC_CLASS_N; i++)
        if (rates->classes[i] &&
            json_object_set_new(classes, traffic_class_name((enum traffic_class)i),
                status_rates_encode_one(rates->classes[i])) < 0)
            classes = (json_decref(classes), NULL);
    return json_pack("{s:o, s:o, s:b, s:s}", "bitsPerSecond", status_rates_encode_one(rates->all),
        "classes", classes, "showsDscp", (int)shows_dscp, "why", why ? why : "");
}

/* "rates: 100Mbit", "; to b 20Mbit" */
static void add(struct str *out, unsigned *n, const char *what, const json_t *rate)
{
    char text[TRAFFIC_RATE_TEXT_MAX];

    if (!json_is_integer(rate))
        return;
    str_addf(out, "%s%s%s", (*n)++ == 0 ? "rates that are kept: " : ", ", what,
        traffic_rate_format((uint64_t)json_integer_value(rate), text));
}

static void add_peers(struct str *out, unsigned *n, const json_t *peers)
{
    unsigned n_peers = 0;
    const json_t *peer;
    size_t i;

    json_array_foreach(peers, i, peer) {
        const json_t *rate = json_object_get(peer, "rateBitsPerSecond");
        const char *name = json_string_value(json_object_get(peer, "name"));
        char what[80];

        if (!json_is_integer(rate) || n_peers++ >= NAMED_MAX)
            continue;
        (void)snprintf(what, sizeof(what), "to %.63s ", name ? name : "?");
        add(out, n, what, rate);
    }
    if (n_peers > NAMED_MAX)
        str_addf(out, ", and to %u others", n_peers - NAMED_MAX);
}

void status_rates_format(const json_t *status, struct str *out)
{
    json_t *rates = json_object_get(json_object_get(status, "self"), "rates");
    const char *why = json_string_value(json_object_get(rates, "why"));
    const char *class;
    unsigned n = 0;
    json_t *rate;

    add(out, &n, "all ", json_object_get(rates, "bitsPerSecond"));
    json_object_foreach(json_object_get(rates, "classes"), class, rate) {
        char what[32];

        (void)snprintf(what, sizeof(what), "%.20s ", class);
        add(out, &n, what, rate);
    }
    add_peers(out, &n, json_object_get(status, "peers"));
    if (n > 0)
        str_add(out, "\n");
    if (json_is_true(json_object_get(rates, "showsDscp")))
        str_add(out, "what is sent shows its DSCP outside the tunnel\n");
    if (why && why[0] != '\0')
        str_addf(out, "rates are not kept: %s\n", why);
}

void status_rates_format_path(const json_t *paths, struct str *out)
{
    const json_t *rate = json_object_get(paths, "rateBitsPerSecond");
    char text[TRAFFIC_RATE_TEXT_MAX];

    if (json_is_integer(rate))
        str_addf(out, "what is sent to it is kept to %s\n",
            traffic_rate_format((uint64_t)json_integer_value(rate), text));
}
