// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// printf of device code: the format and a packed argument buffer, as the compiler lays it out.
#include <cstdio>
#include <cstring>
#include <string>

#include "access.h"
#include "warp.h"

namespace ptxcpu {
namespace {

class PackedArguments {
 public:
  explicit PackedArguments(const uint8_t* data) : data_(data) {}

  template <class T>
  T next() {
    offset_ = (offset_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    const T value = peek<T>(data_ + offset_);
    offset_ += sizeof(T);
    return value;
  }

 private:
  const uint8_t* data_;
  size_t offset_ = 0;
};

std::string format_one(const std::string& specification, char conversion, bool is_long,
                       PackedArguments* arguments) {
  char text[512];
  if (std::strchr("fFeEgGaA", conversion)) {
    std::snprintf(text, sizeof text, specification.c_str(), arguments->next<double>());
  } else if (conversion == 's') {
    std::snprintf(text, sizeof text, specification.c_str(),
                  reinterpret_cast<const char*>(arguments->next<uint64_t>()));
  } else if (is_long || conversion == 'p') {
    std::snprintf(text, sizeof text, specification.c_str(), arguments->next<uint64_t>());
  } else {
    std::snprintf(text, sizeof text, specification.c_str(), arguments->next<uint32_t>());
  }
  return text;
}

}  // namespace

void device_printf(uint64_t format, uint64_t packed) {
  PackedArguments arguments(reinterpret_cast<const uint8_t*>(packed));
  std::string output;
  for (const char* at = reinterpret_cast<const char*>(format); *at;) {
    if (*at != '%') {
      output += *at++;
      continue;
    }
    if (at[1] == '%') {
      output += '%';
      at += 2;
      continue;
    }
    std::string specification;
    bool is_long = false;
    while (*at && !std::strchr("diuoxXcsfFeEgGaAp", *at)) {
      is_long |= *at == 'l' || *at == 'z' || *at == 'j';
      specification += *at++;
    }
    if (!*at) break;
    specification += *at;
    output += format_one(specification, *at++, is_long, &arguments);
  }
  std::fputs(output.c_str(), stdout);
}

}  // namespace ptxcpu
