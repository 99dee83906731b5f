/*
 * role.h - who asks as administrator, and what that allows.
 *
 * A role holds all that the ones before it hold. A route names the least role that may call it
 * (route.h), and route_admits() is the one place that compares the two. Pure.
 */
#pragma once

#include "base/parse.h"

enum role {
    ROLE_NONE,     /* is no administrator */
    ROLE_VIEWER,   /* reads */
    ROLE_OPERATOR, /* reads, and changes nodes, edges and join tokens */
    ROLE_ADMIN,    /* may do everything, also with networks and admin tokens */
    ROLE_N,
};

/** What became of the admin token that came with a request. */
enum caller_verdict {
    CALLER_NONE,    /* none was sent */
    CALLER_KNOWN,   /* it is valid */
    CALLER_UNKNOWN, /* nobody has it, or it was removed */
    CALLER_EXPIRED, /* its time is over */
    CALLER_LIMITED, /* it was not checked, since that address has sent too many wrong ones */
};

/** Longest name of a caller: "admin:" and a name. */
#define CALLER_NAME_MAX (NAME_MAX_LEN + 16)

/** Who asks. */
struct caller {
    enum role role;
    enum caller_verdict verdict;
    char name[CALLER_NAME_MAX + 1]; /* "admin:ci", "uid:0"; as the audit log has it */
    int32_t pid;                    /* of a process on this machine; 0: not known */
    char network[NAME_MAX_LEN + 1]; /* the only one that it may see and change; "": all */
};

#define CALLER_NULL                                                                                \
    {                                                                                              \
        ROLE_NONE                                                                                  \
    }

/** role_name() - "viewer"; "none" for ROLE_NONE. */
const char *role_name(enum role role);

/** role_parse() - "viewer", "operator" or "admin"; anything else is ROLE_NONE. */
enum role role_parse(const char *text);
