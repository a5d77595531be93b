/* The edges of a gray picture: edges IN.pgm OUT.pgm. The pipeline is `sobel`, as tilesmith writes it. */
#include <stdio.h>
#include <stdlib.h>

#include "sobel.h"

static int fail(const char *what) {
    fprintf(stderr, "edges: %s\n", what);
    return 1;
}

/* The pixels of a PGM file of 8 bits; NULL where it is none. */
static unsigned char *read_pgm(const char *path, int *width, int *height) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    unsigned char *pixels = NULL;
    int largest = 0;
    if (fscanf(file, "P5 %d %d %d", width, height, &largest) == 3 && largest == 255 && fgetc(file) != EOF &&
        *width > 0 && *height > 0 && *width <= 1 << 15 && *height <= 1 << 15) {
        const size_t size = (size_t)*width * (size_t)*height;
        pixels = malloc(size);
        if (pixels && fread(pixels, 1, size, file) != size) {
            free(pixels);
            pixels = NULL;
        }
    }
    fclose(file);
    return pixels;
}

int main(int argc, char **argv) {
    int width, height;
    if (argc != 3) return fail("edges IN.pgm OUT.pgm");
    unsigned char *pixels = read_pgm(argv[1], &width, &height);
    if (!pixels) return fail("the input is no PGM file of 8 bits");
    unsigned char *edges = malloc((size_t)width * (size_t)height);
    if (!edges) return fail("no memory");

    tilesmith_buffer input = {.data = pixels, .dims = 2, .extent = {width, height}, .stride = {1, width}};
    tilesmith_buffer output = {.data = edges, .dims = 2, .extent = {width, height}, .stride = {1, width}};
    int32_t status = tilesmith_sobel(&input, &output);
    if (status != TILESMITH_OK) return fail("the pipeline was refused");
    tilesmith_sobel_release();

    FILE *file = fopen(argv[2], "wb");
    if (!file) return fail("the output cannot be written");
    fprintf(file, "P5 %d %d 255\n", width, height);
    fwrite(edges, 1, (size_t)width * (size_t)height, file);
    if (fclose(file)) return fail("the output cannot be written");
    free(pixels);
    free(edges);
    return 0;
}
