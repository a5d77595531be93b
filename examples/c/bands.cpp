// The strongest edge of a picture that is made here, in bands: a bounds query says which rows of the input a band of the
// output needs.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "sobel.h"

namespace {

constexpr int32_t width = 640, height = 480, band = 64;

// A gray image and where it lies.
struct Image {
    std::vector<uint8_t> pixels;
    int32_t y, rows;

    Image(int32_t y, int32_t rows) : pixels(static_cast<size_t>(width) * rows), y(y), rows(rows) {}

    tilesmith_buffer buffer() {
        tilesmith_buffer b{};
        b.data = pixels.data();
        b.dims = 2;
        b.min[1] = y;
        b.extent[0] = width;
        b.extent[1] = rows;
        b.stride[0] = 1;
        b.stride[1] = width;
        return b;
    }
};

uint8_t gray(int32_t x, int32_t y) {  // a disc
    const int32_t dx = x - width / 2, dy = y - height / 2;
    return dx * dx + dy * dy < 150 * 150 ? 200 : 40;
}

}  // namespace

int main() {
    Image whole(0, height);
    for (int32_t y = 0; y < height; y++)
        for (int32_t x = 0; x < width; x++) whole.pixels[static_cast<size_t>(y) * width + x] = gray(x, y);
    tilesmith_buffer input = whole.buffer();
    int strongest = 0;
    for (int32_t y = 0; y < height; y += band) {
        Image part(y, std::min(band, height - y));
        tilesmith_buffer output = part.buffer(), asked = whole.buffer();
        asked.data = nullptr;  // a question
        if (tilesmith_sobel(&asked, &output) != TILESMITH_E_REGION) throw std::runtime_error("no answer");
        std::printf("rows %d to %d need rows %d to %d\n", y, y + part.rows, asked.min[1], asked.min[1] + asked.extent[1]);
        if (tilesmith_sobel(&input, &output) != TILESMITH_OK) throw std::runtime_error("the band was refused");
        strongest = std::max<int>(strongest, *std::max_element(part.pixels.begin(), part.pixels.end()));
    }
    std::printf("strongest edge: %d\n", strongest);
}
