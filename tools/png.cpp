// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Chunks of a PNG: length, kind, content, CRC of kind and content.
//   IHDR [acTL]  then per picture: [fcTL] IDAT, the later ones of an animation as fdAT with a running number
//   IEND
// A row of a picture is filtered as the difference to the row above it: most of a scene does not change
// there.
#include "png.h"

#include <libdeflate.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "../kernels/error.h"

namespace pwdice::tools {
namespace {

void put(std::string& out, uint32_t value, int bytes) {
  for (int k = bytes - 1; k >= 0; --k) out.push_back(static_cast<char>(value >> (8 * k) & 0xff));
}

void chunk(std::string& out, const std::string& kind, const std::string& content) {
  const std::string body = kind + content;
  put(out, static_cast<uint32_t>(content.size()), 4);
  out += body;
  put(out, libdeflate_crc32(0, body.data(), body.size()), 4);
}

std::string compress(const Image& picture) {
  constexpr char kUp = 2;
  constexpr int kLevel = 6;
  const size_t width = static_cast<size_t>(3 * picture.width), height = static_cast<size_t>(picture.height);
  std::string filtered;
  filtered.reserve((width + 1) * height);
  for (size_t y = 0; y < height; ++y) {
    filtered.push_back(kUp);
    const uint8_t* row = picture.rgb.data() + y * width;
    for (size_t x = 0; x < width; ++x)
      filtered.push_back(static_cast<char>(row[x] - (y > 0 ? row[x - width] : 0)));
  }
  const std::unique_ptr<libdeflate_compressor, void (*)(libdeflate_compressor*)> deflate(
      libdeflate_alloc_compressor(kLevel), libdeflate_free_compressor);
  if (!deflate) fail(ErrorCode::OutOfMemory, "png: no memory to compress a picture");
  std::string out(libdeflate_zlib_compress_bound(deflate.get(), filtered.size()), '\0');
  out.resize(
      libdeflate_zlib_compress(deflate.get(), filtered.data(), filtered.size(), out.data(), out.size()));
  return out;
}

}  // namespace

std::string encode_png(const std::vector<Image>& pictures, double delay) {
  PWDICE_CHECK(!pictures.empty(), "png: no picture");
  const Image& first = pictures.front();
  std::string out = "\x89PNG\r\n\x1a\n", header, control;
  put(header, static_cast<uint32_t>(first.width), 4), put(header, static_cast<uint32_t>(first.height), 4);
  put(header, 8, 1), put(header, 2, 1),
      put(header, 0, 3);  // 8 bits, RGB; deflate, its filters, not interlaced
  chunk(out, "IHDR", header);
  const bool animated = pictures.size() > 1;
  put(control, static_cast<uint32_t>(pictures.size()), 4), put(control, 0, 4);  // for ever
  if (animated) chunk(out, "acTL", control);
  uint32_t number = 0;
  for (const Image& picture : pictures) {
    PWDICE_CHECK(picture.width == first.width && picture.height == first.height,
                 "png: pictures of {} x {} and {} x {}", first.width, first.height, picture.width,
                 picture.height);
    std::string frame, data;
    put(frame, number, 4), frame += header.substr(0, 8), put(frame, 0, 4),
        put(frame, 0, 4);  // the whole canvas
    put(frame, static_cast<uint32_t>(std::lround(1000 * delay)), 2), put(frame, 1000, 2), put(frame, 0, 2);
    if (animated) chunk(out, "fcTL", frame), ++number;
    const bool is_first = &picture == &first;
    if (!is_first) put(data, number++, 4);
    chunk(out, is_first ? "IDAT" : "fdAT", data + compress(picture));
  }
  chunk(out, "IEND", "");
  return out;
}

Image tile(const std::vector<Image>& pictures, int columns) {
  PWDICE_CHECK(!pictures.empty() && columns > 0, "png: {} pictures in {} columns",
               static_cast<int64_t>(pictures.size()), columns);
  const int width = pictures[0].width, height = pictures[0].height, count = static_cast<int>(pictures.size());
  columns = std::min(columns, count);
  const int rows = (count + columns - 1) / columns;
  Image out{width * columns, height * rows,
            std::vector<uint8_t>(static_cast<size_t>(3 * width * columns * height * rows), 255)};
  for (int k = 0; k < count; ++k) {
    for (int y = 0; y < height; ++y) {
      const uint8_t* from = pictures[static_cast<size_t>(k)].rgb.data() + 3 * y * width;
      std::copy(from, from + 3 * width,
                out.rgb.data() + 3 * ((k / columns * height + y) * out.width + k % columns * width));
    }
  }
  return out;
}

}  // namespace pwdice::tools
