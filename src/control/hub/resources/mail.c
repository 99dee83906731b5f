/* mail.c - see mail.h. */
#include "mail.h"

#include <stdio.h>
#include <stdlib.h>

void mail_queue_init(struct mail_queue *q)
{
    (void)pthread_mutex_init(&q->lock, NULL);
    list_init(&q->mails);
}

void mail_queue_deinit(struct mail_queue *q)
{
    struct mail *m;

    while ((m = mail_take(q)))
        mail_free(m);
    (void)pthread_mutex_destroy(&q->lock);
}

struct mail *mail_new(enum mail_what what, const struct object_kind *kind, const char *name)
{
    struct mail *m = calloc(1, sizeof(*m));

    if (!m)
        return NULL;
    m->what = what;
    m->kind = kind;
    (void)snprintf(m->name, sizeof(m->name), "%s", name ? name : "");
    list_init(&m->link);
    return m;
}

void mail_free(struct mail *m)
{
    if (!m)
        return;
    json_decref(m->json);
    free(m->text);
    free(m);
}

void mail_put(struct mail_queue *q, struct mail *m)
{
    (void)pthread_mutex_lock(&q->lock);
    list_add_tail(&q->mails, &m->link);
    (void)pthread_mutex_unlock(&q->lock);
}

struct mail *mail_take(struct mail_queue *q)
{
    struct mail *m;

    (void)pthread_mutex_lock(&q->lock);
    m = list_first(&q->mails, struct mail, link);
    if (m)
        list_remove(&m->link);
    (void)pthread_mutex_unlock(&q->lock);
    return m;
}
