/* name_lookup.c - see name_lookup.h. */
#include "net/address/name_lookup.h"

#include <arpa/nameser.h>
#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "net/address/sockaddr.h"

#define ANSWER_MAX 4096

static bool is_ours(const struct name_query *q, const struct ip_addr *a)
{
    return ip_prefix_has(&q->ours[0], a) || ip_prefix_has(&q->ours[1], a);
}

/* The first address outside the overlay's blocks; false when there is none. */
static bool find_other(
    const struct name_query *q, const struct addrinfo *list, struct ip_addr *ret_where)
{
    for (; list; list = list->ai_next) {
        union sockaddr_inet sa = {.any.sa_family = AF_UNSPEC};
        struct endpoint ep;

        if (list->ai_addrlen <= sizeof(sa))
            memcpy(&sa, list->ai_addr, list->ai_addrlen);
        if (sockaddr_to_endpoint(&sa, &ep) && !is_ours(q, &ep.addr)) {
            *ret_where = ep.addr;
            return true;
        }
    }
    return false;
}

/*
 * One type of record. An answer with the node's own address in it comes from a
 * server that reads our hosts file; where else it might lead cannot be seen.
 */
static enum name_found ask_servers_for(
    struct __res_state *res, const struct name_query *q, int type, const void *own, size_t own_len)
{
    uint8_t answer[ANSWER_MAX];
    int len = res_nsearch(res, q->name, ns_c_in, type, answer, sizeof(answer));

    if (len > (int)sizeof(answer))
        len = (int)sizeof(answer);
    if (len > 0)
        return memmem(answer, (size_t)len, own, own_len) ? NAME_FOUND_NOBODY : NAME_FOUND_SOMEBODY;
    return res->res_h_errno == HOST_NOT_FOUND || res->res_h_errno == NO_DATA ? NAME_FOUND_NOBODY
                                                                             : NAME_FOUND_SILENT;
}

static enum name_found ask_servers(const struct name_query *q)
{
    struct __res_state res = {0};
    enum name_found found;

    if (res_ninit(&res) < 0)
        return NAME_FOUND_SILENT;
    /* An IPv4 address is the last four bytes of its mapped form. */
    found = ask_servers_for(&res, q, ns_t_a, &q->address4.b[12], 4);
    if (found == NAME_FOUND_NOBODY)
        found = ask_servers_for(&res, q, ns_t_aaaa, q->address6.b, sizeof(q->address6.b));
    res_nclose(&res);
    return found;
}

enum name_found name_lookup(const struct name_query *q, struct ip_addr *ret_where)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct ip_addr where = {0};
    struct addrinfo *list = NULL;
    enum name_found found;
    bool is_other;

    switch (getaddrinfo(q->name, NULL, &hints, &list)) {
    case 0:
        break;
    case EAI_NONAME:
    case EAI_NODATA:
        return NAME_FOUND_NOBODY;
    default:
        return NAME_FOUND_SILENT;
    }
    is_other = find_other(q, list, &where);
    freeaddrinfo(list);
    found = is_other ? NAME_FOUND_SOMEBODY : ask_servers(q);
    if (found == NAME_FOUND_SOMEBODY)
        *ret_where = where;
    return found;
}
