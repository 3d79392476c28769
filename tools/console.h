// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <atomic>

#include "../models/run/run.h"

namespace pwdice::tools {

enum class Output { Terminal, Quiet, Json };

// Shows a run on standard output: one line that renews itself on a terminal, plain lines otherwise, JSON lines
// for programs, or nothing.
class ConsoleObserver : public RunObserver {
 public:
  explicit ConsoleObserver(Output output, std::string label = "");
  ~ConsoleObserver() override;
  void started(const std::string& summary) override;
  void progress(const Progress& progress) override;
  void evaluated(int64_t step, const Evaluation& evaluation) override;
  void note(const std::string& message) override;

 private:
  void line(const std::string& text);
  void end_progress_line();

  Output output_;
  std::string label_;
  bool terminal_, open_line_ = false;
  double last_plain_ = -1e9;
  Phase last_phase_ = Phase::Done;
};

// Set by Ctrl-C and SIGTERM: the run writes a checkpoint and ends. A second Ctrl-C ends the process at once.
const std::atomic<bool>& stop_requested();

}  // namespace pwdice::tools
