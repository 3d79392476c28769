// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include <sstream>

#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include "../config.h"
#include "../../kernels/error.h"
#include "../../host/checkpoint.h"

namespace pwdice {
namespace {

void flatten(const toml::table& table, const std::string& prefix, const std::string& origin,
             std::vector<ConfigEntry>& out) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const auto* inner = node.as_table()) {
      flatten(*inner, name + ".", origin, out);
      continue;
    }
    if (node.is_array()) fail(ErrorCode::BadFile, "{}: {} is an array, expected one value", origin, name);
    std::ostringstream text;
    if (const auto* s = node.as_string()) {
      text << s->get();
    } else if (const auto* i = node.as_integer()) {
      text << i->get();
    } else if (const auto* f = node.as_floating_point()) {
      text.precision(17);
      text << f->get();
    } else if (const auto* b = node.as_boolean()) {
      text << (b->get() ? "true" : "false");
    } else {
      fail(ErrorCode::BadFile, "{}: {} is a date or time, expected text or a number", origin, name);
    }
    out.push_back({name, text.str()});
  }
}

}  // namespace

Config config_from_toml(const std::string& text, const std::string& origin) {
  std::vector<ConfigEntry> given;
  try {
    flatten(toml::parse(text, origin), "", origin, given);
  } catch (const toml::parse_error& error) {
    fail(ErrorCode::BadFile, "{}, line {}: {}", origin, static_cast<int64_t>(error.source().begin.line),
         std::string(error.description()));
  }
  std::string profile = "pwdice";
  for (const auto& [key, value] : given) {
    if (key == "profile") profile = value;
  }
  Config config = make_profile(profile);
  for (const auto& [key, value] : given) set_value(config, key, value);
  return config;
}

Config load_config(const std::string& path) {
  constexpr size_t kMaxBytes = 1 << 20;
  return config_from_toml(read_file(path, kMaxBytes), path);
}

}  // namespace pwdice
