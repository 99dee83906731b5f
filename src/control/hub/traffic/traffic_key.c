/* traffic_key.c - see traffic_key.h. */
#include "hub/traffic/traffic_key.h"

#include <stdio.h>
#include <string.h>

#include "mesh/object/traffic.h"

const char *traffic_key_network(char buf[static RECORD_KEY_MAX], const char *network)
{
    (void)snprintf(buf, RECORD_KEY_MAX, TRAFFIC_KEY_PREFIX "%.63s/", network);
    return buf;
}

const char *traffic_key_day(char buf[static RECORD_KEY_MAX], const char *network, int32_t day)
{
    char text[TRAFFIC_DAY_TEXT_MAX];

    (void)snprintf(
        buf, RECORD_KEY_MAX, TRAFFIC_KEY_PREFIX "%.63s/%s", network, traffic_day_format(day, text));
    return buf;
}

const char *traffic_key_format(char buf[static RECORD_KEY_MAX], const struct traffic_key *key)
{
    char day[TRAFFIC_DAY_TEXT_MAX];

    (void)snprintf(buf, RECORD_KEY_MAX, TRAFFIC_KEY_PREFIX "%.63s/%s/%.63s/%.63s", key->network,
        traffic_day_format(key->day, day), key->node, key->hub);
    return buf;
}

/* The text up to the next slash, or to the end; NULL: it is empty or too long. */
static const char *take_part(const char *text, size_t cap, char *ret)
{
    size_t n = text ? strcspn(text, "/") : 0;

    if (n == 0 || n >= cap)
        return NULL;
    memcpy(ret, text, n);
    ret[n] = '\0';
    return text + n + (text[n] == '/');
}

bool traffic_key_parse(struct traffic_key *ret, const char *text)
{
    struct traffic_key key;
    char day[TRAFFIC_DAY_TEXT_MAX];
    size_t n = strlen(TRAFFIC_KEY_PREFIX);

    if (strncmp(text, TRAFFIC_KEY_PREFIX, n) != 0)
        return false;
    text = take_part(text + n, sizeof(key.network), key.network);
    text = take_part(text, sizeof(day), day);
    text = take_part(text, sizeof(key.node), key.node);
    text = take_part(text, sizeof(key.hub), key.hub);
    if (!text || text[0] || traffic_day_parse(&key.day, day, NULL) != 0)
        return false;
    *ret = key;
    return true;
}
