// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "console.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace pwdice::tools {
namespace {

std::atomic<bool> stop{false};

void on_signal(int signal) {
  stop.store(true, std::memory_order_relaxed);
  std::signal(signal, SIG_DFL);
}

std::string duration(double seconds) {
  char text[32];
  const auto s = static_cast<long long>(seconds + 0.5);
  if (s < 60) {
    std::snprintf(text, sizeof text, "%llds", s);
  } else if (s < 3600) {
    std::snprintf(text, sizeof text, "%lldm%02llds", s / 60, s % 60);
  } else {
    std::snprintf(text, sizeof text, "%lldh%02lldm", s / 3600, s / 60 % 60);
  }
  return text;
}

void print_json(const nlohmann::json& object) { std::printf("%s\n", object.dump().c_str()), std::fflush(stdout); }

}  // namespace

const std::atomic<bool>& stop_requested() {
  static const bool installed = [] {
    std::signal(SIGINT, on_signal);
    std::signal(SIGTERM, on_signal);
    return true;
  }();
  static_cast<void>(installed);
  return stop;
}

ConsoleObserver::ConsoleObserver(Output output, std::string label)
    : output_(output), label_(std::move(label)), terminal_(isatty(STDOUT_FILENO) == 1) {}

ConsoleObserver::~ConsoleObserver() { end_progress_line(); }

void ConsoleObserver::end_progress_line() {
  if (open_line_) std::printf("\n"), std::fflush(stdout);
  open_line_ = false;
}

void ConsoleObserver::line(const std::string& text) {
  end_progress_line();
  std::printf("%s%s\n", label_.c_str(), text.c_str());
  std::fflush(stdout);
}

void ConsoleObserver::started(const std::string& summary) {
  if (output_ == Output::Json) print_json({{"event", "started"}, {"summary", summary}});
  if (output_ == Output::Terminal) line(summary);
}

void ConsoleObserver::progress(const Progress& p) {
  if (output_ == Output::Quiet) return;
  if (output_ == Output::Json) {
    nlohmann::json row{{"event", "progress"}, {"phase", name(p.phase)}, {"step", p.step}, {"steps", p.steps},
                       {"steps_per_second", p.steps_per_second}, {"loss", p.loss}, {"seconds", p.seconds}};
    if (p.policy_loss) row["policy_loss"] = *p.policy_loss;
    return print_json(row);
  }
  char text[200];
  const int length = std::snprintf(text, sizeof text, "%s%-13s %7lld/%lld  %7.1f steps/s  loss %9.4f", label_.c_str(),
                                   name(p.phase), static_cast<long long>(p.step), static_cast<long long>(p.steps),
                                   p.steps_per_second, p.loss);
  std::string out(text, static_cast<size_t>(length));
  if (p.policy_loss) {
    std::snprintf(text, sizeof text, "  policy %8.3f", *p.policy_loss);
    out += text;
  }
  out += "  " + duration(p.seconds_left) + " left in this phase";
  if (terminal_) {
    std::printf("\r\033[K%s", out.c_str());
    std::fflush(stdout);
    open_line_ = true;
    return;
  }
  // Without a terminal: the end of each phase, and a line every ten seconds.
  constexpr double kEvery = 10;
  if (p.step < p.steps && p.phase == last_phase_ && p.seconds - last_plain_ < kEvery) return;
  last_phase_ = p.phase, last_plain_ = p.seconds;
  std::printf("%s\n", out.c_str());
  std::fflush(stdout);
}

void ConsoleObserver::evaluated(int64_t step, const Evaluation& e) {
  if (output_ == Output::Quiet) return;
  if (output_ == Output::Json) {
    return print_json({{"event", "evaluated"}, {"step", step}, {"score", e.score}, {"return", e.mean},
                       {"deviation", e.deviation}, {"episodes", e.returns.size()}});
  }
  char text[160];
  std::snprintf(text, sizeof text, "evaluation at step %lld: return %.1f +- %.1f (%zu episodes), normalised score %.1f",
                static_cast<long long>(step), e.mean, e.deviation, e.returns.size(), e.score);
  line(text);
}

void ConsoleObserver::note(const std::string& message) {
  if (output_ == Output::Json) print_json({{"event", "note"}, {"message", message}});
  if (output_ == Output::Terminal) line(message);
}

}  // namespace pwdice::tools
