/* Durations, counted in buckets. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>

/* Histogram of durations: 64 buckets per octave of 0.1 us, so a quantile is within 1.6 %. */
enum { OCTAVE_BITS = 6, BUCKETS = 58 << OCTAVE_BITS };

struct histogram {
    uint64_t count[BUCKETS], n, max_ns;
};

static void histogram_add(struct histogram *h, uint64_t ns) {
    uint64_t v = ns / 100;
    int i = (int)v;
    if (v >= 1u << OCTAVE_BITS) {
        int e = 63 - __builtin_clzll(v);
        i = ((e - OCTAVE_BITS + 1) << OCTAVE_BITS) +
            (int)((v >> (e - OCTAVE_BITS)) & ((1u << OCTAVE_BITS) - 1));
    }
    h->count[i < BUCKETS ? i : BUCKETS - 1]++;
    h->n++;
    if (ns > h->max_ns) h->max_ns = ns;
}

static double histogram_quantile_us(const struct histogram *h, double q) {
    uint64_t want = (uint64_t)ceil(q * (double)h->n), seen = 0;
    for (int i = 0; i < BUCKETS && h->n; i++) {
        seen += h->count[i];
        if (seen < want) continue;
        if (i < 1 << OCTAVE_BITS) return i / 10.0;
        int e = (i >> OCTAVE_BITS) + OCTAVE_BITS - 1;
        double mantissa = 1.0 + ((i & ((1 << OCTAVE_BITS) - 1)) + 0.5) / (1 << OCTAVE_BITS);
        return ldexp(mantissa, e) / 10.0;
    }
    return 0;
}

static void histogram_print(const char *name, const struct histogram *h) {
    printf("\"%s\":{\"n\":%llu,\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,\"p999\":%.1f,\"max\":%.1f},",
           name, (unsigned long long)h->n, histogram_quantile_us(h, .5),
           histogram_quantile_us(h, .9), histogram_quantile_us(h, .99),
           histogram_quantile_us(h, .999), (double)h->max_ns / 1e3);
}
