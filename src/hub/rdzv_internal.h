/*
 * rdzv_internal.h - rendezvous as its own files see it: jobs (rdzv.c), doors and protocols.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/list.h"
#include "hub/model.h"
#include "hub/rdzv.h"
#include "hub/rdzv_record.h"
#include "hub/rdzv_save.h"

struct rdzv {
    struct uv_loop_s *loop; /* pins */
    struct model *model;    /* pins */
    uint64_t seed;          /* for the hash tables */
    struct rdzv_save save;  /* what is not on the disk yet */
    struct list jobs;       /* of struct rdzv_job, of all networks */
    bool started;           /* between rdzv_start() and rdzv_stop() */
};

struct rdzv_job {
    struct list link;               /* in rdzv.jobs */
    struct rdzv *rz;                /* pins */
    struct model_network *net;      /* pins; NULL: not served now */
    char network[NAME_MAX_LEN + 1]; /* the network's name */
    char name[NAME_MAX_LEN + 1];    /* see parse_name() */
    struct rdzv_job_record record;  /* port and run */
    bool ended;                     /* who comes next begins a new run */
    nsec_t heard;                   /* when somebody spoke or left last */
};
