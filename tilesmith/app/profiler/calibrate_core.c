/* In the core --------------------------------------------------------- */

/* `expression` of a, b and c (which are opaque) into one result, eight times a turn; the result is per time. */
#define OPERATION(name, steps, V, R, expression)                                                                       \
    do {                                                                                                               \
        V a, b, c;                                                                                                     \
        R r;                                                                                                           \
        double least;                                                                                                  \
        long n;                                                                                                        \
        memset(&a, 0, sizeof a), memset(&b, 0, sizeof b), memset(&c, 0, sizeof c);                                     \
        a += 3, b += 2, c += 1;                                                                                        \
        HOLD(a); HOLD(b); HOLD(c);                                                                                     \
        LEAST(least, 8, n, for (long i = 0; i < n; i++) {                                                              \
            TURN(R, expression) TURN(R, expression) TURN(R, expression) TURN(R, expression)                            \
            TURN(R, expression) TURN(R, expression) TURN(R, expression) TURN(R, expression)                            \
        });                                                                                                            \
        (void)r;                                                                                                       \
        say(name, least / (steps));                                                                                    \
    } while (0)
#define TURN(R, expression) HOLD(a); r = (expression); HOLD(r);

/* A comparison and a choice by it. */
#define CHOICE(V, M) (V)(((M)(a < b) & (M)c) | (~(M)(a < b) & (M)a))

#define ARITHMETIC(T, M, name)                                                                                         \
    do {                                                                                                               \
        OPERATION(name ".add", 1, T, T, a + b);                                                                        \
        OPERATION(name ".multiply", 1, T, T, a * b);                                                                   \
        OPERATION(name ".select", 2, T, T, CHOICE(T, M));                                                              \
    } while (0)

/* Elements twice as wide, by the instruction that generated code asks for: compilers make several of the language's. */
#if defined __AVX512BW__ && VECTOR_BYTES == 64 && !defined __clang__
#define WIDEN(types, half, T) (T)_mm512_cvt##types((__m256##half)a)
#elif defined __AVX2__ && VECTOR_BYTES == 32 && !defined __clang__
#define WIDEN(types, half, T) (T)_mm256_cvt##types((__m128##half)a)
#else
#define WIDEN(types, half, T) __builtin_convertvector(a, T)
#endif

#define DIVISION(T, name) OPERATION(name ".divide_by_constant", 1, T, T, a / 7)

/* Scalars, by a mix: integer sum and product, comparison with choice, sum and product of floats. */
static double scalar_ns(void)
{
    double words, floats;
    long n;
    uint32_t a = 3, b = 5, r;
    float x = 3, y = 5, z;
    HOLD_WORD(b);
#define WORDS HOLD_WORD(a); r = a + b; HOLD_WORD(r); r = a * b; HOLD_WORD(r); r = a < b ? a : b; HOLD_WORD(r);
    LEAST(words, 12, n, for (long i = 0; i < n; i++) { WORDS WORDS WORDS WORDS });
#if defined __x86_64__ || defined __aarch64__
    HOLD(y);
#define FLOATS HOLD(x); z = x + y; HOLD(z); z = x * y; HOLD(z);
    LEAST(floats, 8, n, for (long i = 0; i < n; i++) { FLOATS FLOATS FLOATS FLOATS });
    (void)z;
#else
    (void)x, (void)y, (void)z;
    floats = words;
#endif
    (void)r;
    return (3 * words + 2 * floats) / 5;
}

/* Loads of a buffer that the first level has, `off` bytes beside its lines, and stores to it. */
static double load_ns(const char *p, size_t bytes, int off)
{
    double least;
    long n;
    LEAST(least, bytes / VECTOR_BYTES, n, for (long i = 0; i < n; i++) {
        for (const char *q = p + off, *end = q + bytes; q < end; q += 4 * VECTOR_BYTES) {
            f32v v0 = *(const f32any *)q, v1 = *(const f32any *)(q + VECTOR_BYTES);
            f32v v2 = *(const f32any *)(q + 2 * VECTOR_BYTES), v3 = *(const f32any *)(q + 3 * VECTOR_BYTES);
            HOLD(v0); HOLD(v1); HOLD(v2); HOLD(v3);
        }
    });
    return least;
}

static double store_ns(char *p, size_t bytes)
{
    double least;
    long n;
    f32v v = {0};
    HOLD(v);
    LEAST(least, bytes / VECTOR_BYTES, n, for (long i = 0; i < n; i++) {
        for (char *q = p, *end = q + bytes; q < end; q += 4 * VECTOR_BYTES) {
            *(f32own *)q = v, *(f32own *)(q + VECTOR_BYTES) = v;
            *(f32own *)(q + 2 * VECTOR_BYTES) = v, *(f32own *)(q + 3 * VECTOR_BYTES) = v;
            MEMORY();
        }
    });
    return least;
}

static void core(char *memory)
{
    ARITHMETIC(i8v, i8v, "i8");
    ARITHMETIC(i16v, i16v, "i16");
    ARITHMETIC(i32v, i32v, "i32");
    ARITHMETIC(i64v, i64v, "i64");
    ARITHMETIC(f32v, i32v, "f32");
    ARITHMETIC(f64v, i64v, "f64");
    OPERATION("f32.multiply_add", 1, f32v, f32v, a * b + c);
    OPERATION("f64.multiply_add", 1, f64v, f64v, a * b + c);
#ifdef QUOTIENTS /* which take a while to compile */
    DIVISION(i8v, "i8");
    DIVISION(i16v, "i16");
    DIVISION(i32v, "i32");
    DIVISION(i64v, "i64");
#endif
    OPERATION("f32.divide", 1, f32v, f32v, a / b);
    OPERATION("f64.divide", 1, f64v, f64v, a / b);
    OPERATION("f32.divide_by_constant", 1, f32v, f32v, a * (1.0f / 7));
    OPERATION("f64.divide_by_constant", 1, f64v, f64v, a * (1.0 / 7));
    /* to a type from one half as wide, to floats from integers; and from it to one half as wide: half a vector */
    OPERATION("i16.convert", 1, i8half, i16v, WIDEN(epi8_epi16, i, i16v));
    OPERATION("i32.convert", 1, i16half, i32v, WIDEN(epi16_epi32, i, i32v));
    OPERATION("i64.convert", 1, i32half, i64v, WIDEN(epi32_epi64, i, i64v));
    OPERATION("f64.convert", 1, f32half, f64v, WIDEN(ps_pd, , f64v));
    OPERATION("f32.convert", 1, i16half, f32v, __builtin_convertvector(WIDEN(epi16_epi32, i, i32v), f32v));
    OPERATION("i16.narrow", 1, i16v, i8half, __builtin_convertvector(a, i8half));
    OPERATION("i32.narrow", 1, i32v, i16half, __builtin_convertvector(a, i16half));
    OPERATION("f32.narrow", 1, f32v, i16half, __builtin_convertvector(__builtin_convertvector(a, i32v), i16half));
    OPERATION("i64.narrow", 1, i64v, i32half, __builtin_convertvector(a, i32half));
    OPERATION("f64.narrow", 1, f64v, f32half, __builtin_convertvector(a, f32half));
    OPERATION("shuffle", 1, f32v, f32v, NEIGHBOURS(a, b));
    say("scalar", scalar_ns());

    size_t bytes = set_bytes[0] / (4 * VECTOR_BYTES) * (4 * VECTOR_BYTES);
    memset(memory, 0, bytes + 2 * VECTOR_BYTES);
    say("load", load_ns(memory, bytes, 0));
    say("unaligned_load", load_ns(memory, bytes, 4));
    say("store", store_ns(memory, bytes));
}
