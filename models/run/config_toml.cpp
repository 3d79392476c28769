// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include <cctype>
#include <sstream>
#include <string_view>

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

// One line of a config: empty, `[table]` or `key = value`, with bare names and a value in quotes or of plain characters; a
// comment may follow. Whatever passes is well-formed as far as toml++ 3.3 takes it for granted: its behaviour is
// undefined on a header that ends after its bracket and on letters beyond ASCII outside quotes.
class LineForm {
 public:
  explicit LineForm(const std::string& line) : line_(line) {}

  bool holds() {
    blank();
    if (at_end()) return true;
    if (take('[')) return blank(), name() && (blank(), take(']')) && (blank(), at_end());
    return name() && (blank(), take('=')) && (blank(), value()) && (blank(), at_end());
  }

 private:
  char here() const { return at_ < line_.size() ? line_[at_] : '\n'; }
  bool at_end() const { return here() == '\n' || here() == '#'; }
  bool take(char c) { return here() == c ? (++at_, true) : false; }
  void blank() {
    while (here() == ' ' || here() == '\t' || here() == '\r') ++at_;
  }
  // Characters of ASCII letters, digits and `marks`, at least one, none of the marks first if it is a dot.
  bool characters(std::string_view marks) {
    const size_t from = at_;
    while (std::isalnum(static_cast<unsigned char>(here())) || marks.find(here()) != marks.npos) ++at_;
    return at_ > from && line_[from] != '.';
  }
  bool name() { return characters("_-."); }
  bool value() {
    const char quote = here();
    if (quote != '"' && quote != '\'') return characters("_-.+:");
    for (++at_; here() != '\n'; ++at_) {
      if (here() == quote) return ++at_, true;
      if (here() == '\\' && quote == '"') ++at_;
    }
    return false;
  }

  const std::string& line_;
  size_t at_ = 0;
};

void check_lines(const std::string& text, const std::string& origin) {
  int64_t number = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (!LineForm(line).holds()) {
      fail(ErrorCode::BadFile, "{}, line {}: neither [table] nor key = value, where a value is text in quotes, a number, true or false",
           origin, number);
    }
  }
}

}  // namespace

Config config_from_toml(const std::string& text, const std::string& origin) {
  std::vector<ConfigEntry> given;
  check_lines(text, origin);
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
