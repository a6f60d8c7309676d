/* The limit of W1 and W2: local SGD for least squares and AFL's merge, vectorised by hand, one thread, nothing else.
 *
 * A row has WIDTH doubles: ten features, 1 for the bias, 0. Four rows at a time; the model stays in registers. Written
 * with the vector extensions of GCC and Clang, so that the same source serves AVX2, AVX-512 and NEON.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { WIDTH = 12 };
typedef double four __attribute__((vector_size(32), aligned(8)));
typedef int64_t places __attribute__((vector_size(32)));
typedef struct {
    four a, b, c;
} row;

static const double *x, *y;
static long clients, rows, epochs, batch;
static double rate, *server, *latest, *trained;
static long *client_of;
static uint32_t *order;

/* All arrays but the data; returns 0, or 1 when memory ran out. */
int set_up(const double *x_, const double *y_, long clients_, long rows_, long tickets, long epochs_, long batch_,
           double rate_) {
    x = x_, y = y_, clients = clients_, rows = rows_, epochs = epochs_, batch = batch_, rate = rate_;
    server = calloc(WIDTH, sizeof *server);
    latest = calloc(clients * WIDTH, sizeof *latest);
    trained = calloc(tickets * WIDTH, sizeof *trained);
    client_of = calloc(tickets, sizeof *client_of);
    order = calloc(rows, sizeof *order);
    return !(server && latest && trained && client_of && order);
}

void tear_down(void) {
    free(server), free(latest), free(trained), free(client_of), free(order);
}

const double *model(void) {
    return server;
}

static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

static void swap(long i, uint64_t j) {
    uint32_t kept = order[i];
    order[i] = order[j];
    order[j] = kept;
}

/* Fisher-Yates; one word of 64 bits serves two draws. */
static uint64_t shuffle(uint64_t word) {
    for (long i = rows - 1; i >= 1; i -= 2) {
        uint64_t bits = mix(word += 0x9E3779B97F4A7C15ULL);
        swap(i, ((bits & 0xFFFFFFFFULL) * (uint64_t)(i + 1)) >> 32);
        if (i >= 2)
            swap(i - 1, ((bits >> 32) * (uint64_t)i) >> 32);
    }
    return word;
}

static inline four all(double value) {
    return (four){value, value, value, value};
}

static inline four times(const row w, const four *z) {
    return w.a * z[0] + w.b * z[1] + w.c * z[2];
}

static inline row plus(row sum, four scale, const four *z) {
    return (row){sum.a + scale * z[0], sum.b + scale * z[1], sum.c + scale * z[2]};
}

static inline row step(row w, const double *x_of, const double *y_of, const uint32_t *chosen, long size, double pace) {
    row gradient = {all(0), all(0), all(0)};
    long i = 0;
    for (; i + 4 <= size; i += 4) {
        const uint32_t *now = chosen + i;
        const four *z0 = (const four *)(x_of + WIDTH * (size_t)now[0]), *z1 = (const four *)(x_of + WIDTH * (size_t)now[1]),
                   *z2 = (const four *)(x_of + WIDTH * (size_t)now[2]), *z3 = (const four *)(x_of + WIDTH * (size_t)now[3]);
        four p0 = times(w, z0), p1 = times(w, z1), p2 = times(w, z2), p3 = times(w, z3);
        /* The four rows' sums at once, by transposing and adding. */
        four low = __builtin_shuffle(p0, p1, (places){0, 4, 2, 6}) + __builtin_shuffle(p0, p1, (places){1, 5, 3, 7});
        four high = __builtin_shuffle(p2, p3, (places){0, 4, 2, 6}) + __builtin_shuffle(p2, p3, (places){1, 5, 3, 7});
        four residual = __builtin_shuffle(low, high, (places){0, 1, 4, 5}) +
                        __builtin_shuffle(low, high, (places){2, 3, 6, 7}) -
                        (four){y_of[now[0]], y_of[now[1]], y_of[now[2]], y_of[now[3]]};
        gradient = plus(gradient, __builtin_shuffle(residual, (places){0, 0, 0, 0}), z0);
        gradient = plus(gradient, __builtin_shuffle(residual, (places){1, 1, 1, 1}), z1);
        gradient = plus(gradient, __builtin_shuffle(residual, (places){2, 2, 2, 2}), z2);
        gradient = plus(gradient, __builtin_shuffle(residual, (places){3, 3, 3, 3}), z3);
    }
    for (; i < size; i++) {
        const four *z = (const four *)(x_of + WIDTH * (size_t)chosen[i]);
        four p = times(w, z);
        gradient = plus(gradient, all((p[0] + p[1]) + (p[2] + p[3]) - y_of[chosen[i]]), z);
    }
    four scale = all(-pace / (double)size);
    return (row){w.a + scale * gradient.a, w.b + scale * gradient.b, w.c + scale * gradient.c};
}

/* Give a client the server's model of now; what it will have trained waits in the ticket. */
void start(long ticket, long client, uint64_t key) {
    const double *x_of = x + client * rows * WIDTH, *y_of = y + client * rows;
    row w = *(const row *)server;
    for (long i = 0; i < rows; i++)
        order[i] = (uint32_t)i;
    for (long epoch = 0; epoch < epochs; epoch++) {
        key = shuffle(key);
        double pace = rate / sqrt((double)(epoch + 1));
        for (long first = 0; first < rows; first += batch)
            w = step(w, x_of, y_of, order + first, rows - first < batch ? rows - first : batch, pace);
    }
    *(row *)(trained + ticket * WIDTH) = w;
    client_of[ticket] = client;
}

/* The server's model is the mean of every client's latest; then the ticket goes to the next client. */
void arrive(long ticket, long next, uint64_t key) {
    row *mean = (row *)server, *old = (row *)(latest + client_of[ticket] * WIDTH);
    const row *now = (const row *)(trained + ticket * WIDTH);
    four share = all(1.0 / (double)clients);
    mean->a += share * (now->a - old->a);
    mean->b += share * (now->b - old->b);
    mean->c += share * (now->c - old->c);
    *old = *now;
    start(ticket, next, key);
}
