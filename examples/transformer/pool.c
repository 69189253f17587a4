// SPDX-License-Identifier: BSD-2-Clause
/*
 * The worker threads: two queues of jobs behind one lock.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "pool.h"

struct queue {
	struct job *first;
	struct job **last;
};

struct pool {
	pthread_mutex_t lock;
	pthread_cond_t work; /* a job came, or closing */
	pthread_cond_t done; /* the awaited job is done */
	struct queue urgent;
	struct queue other;
	const struct job *awaited;
	bool closing;
	unsigned int threads;
	pthread_t ids[];
};

static void queue_init(struct queue *q)
{
	q->first = NULL;
	q->last = &q->first;
}

static void queue_add(struct queue *q, struct job *job)
{
	job->next = NULL;
	*q->last = job;
	q->last = &job->next;
}

/* A job leaves its queue with its last piece, while earlier pieces may still run. */
static struct job *queue_take(struct queue *q, unsigned int *piece)
{
	struct job *job = q->first;

	if (!job)
		return NULL;
	*piece = job->taken++;
	if (job->taken == job->pieces) {
		q->first = job->next;
		if (!q->first)
			q->last = &q->first;
	}
	return job;
}

/* The next piece; NULL when the pool closes. The lock is held. */
static struct job *pool_take(struct pool *pool, unsigned int *piece)
{
	for (;;) {
		struct job *job = queue_take(&pool->urgent, piece);

		if (!job)
			job = queue_take(&pool->other, piece);
		if (job || pool->closing)
			return job;
		pthread_cond_wait(&pool->work, &pool->lock);
	}
}

/*
 * `left` falls to zero only after `done` has returned: from then on the job may be reused by the
 * thread that waits for it.
 */
static void piece_finish(struct pool *pool, struct job *job)
{
	if (job->left == 1 && job->done) {
		pthread_mutex_unlock(&pool->lock);
		job->done(job);
		pthread_mutex_lock(&pool->lock);
	}
	if (--job->left == 0 && pool->awaited == job)
		pthread_cond_signal(&pool->done);
}

static void *worker(void *arg)
{
	struct pool *pool = arg;
	struct job *job;
	unsigned int piece;

	pthread_mutex_lock(&pool->lock);
	while ((job = pool_take(pool, &piece))) {
		pthread_mutex_unlock(&pool->lock);
		job->run(job, piece);
		pthread_mutex_lock(&pool->lock);
		piece_finish(pool, job);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

/* Signals are for the thread that trains and answers: a worker must not be the one to take them. */
static int worker_start(pthread_t *id, struct pool *pool)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(id, NULL, worker, pool);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

int pool_open(struct pool **out, unsigned int threads)
{
	struct pool *pool;
	int err = 0;

	*out = NULL;
	pool = calloc(1, sizeof(*pool) + threads * sizeof(pool->ids[0]));
	if (!pool)
		return -ENOMEM;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->work, NULL);
	pthread_cond_init(&pool->done, NULL);
	queue_init(&pool->urgent);
	queue_init(&pool->other);

	for (unsigned int i = 0; i < threads && !err; i++) {
		err = worker_start(&pool->ids[i], pool);
		if (!err)
			pool->threads++;
	}
	if (err) {
		pool_close(pool);
		return err;
	}
	*out = pool;
	return 0;
}

void pool_close(struct pool *pool)
{
	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->closing = true;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
	for (unsigned int i = 0; i < pool->threads; i++)
		pthread_join(pool->ids[i], NULL);
	pthread_cond_destroy(&pool->done);
	pthread_cond_destroy(&pool->work);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

void pool_submit(struct pool *pool, struct job *job)
{
	job->taken = 0;
	job->left = job->pieces;
	pthread_mutex_lock(&pool->lock);
	queue_add(job->urgent ? &pool->urgent : &pool->other, job);
	if (job->pieces == 1)
		pthread_cond_signal(&pool->work);
	else
		pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
}

void pool_wait(struct pool *pool, struct job *job)
{
	pthread_mutex_lock(&pool->lock);
	pool->awaited = job;
	while (job->left)
		pthread_cond_wait(&pool->done, &pool->lock);
	pool->awaited = NULL;
	pthread_mutex_unlock(&pool->lock);
}
