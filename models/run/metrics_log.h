// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace pwdice {

// One line of a run's record: numbers under names, at a step of a phase.
struct MetricsRow {
  std::string phase;
  int64_t step = 0;       // within the phase
  double seconds = 0;     // since the run began, over all its resumptions
  std::vector<std::pair<std::string, double>> values;
};

// Writes every row to metrics.csv (long format: phase,step,seconds,name,value), metrics.jsonl and a TensorBoard
// event file. position() goes into the checkpoint; rewind() cuts the text files back to it, so that a resumed
// run leaves the same record as one that was never interrupted.
class MetricsLog {
 public:
  struct Position {
    uint64_t csv = 0, jsonl = 0;
  };
  explicit MetricsLog(const std::string& directory);
  void rewind(Position position);
  void write(const MetricsRow& row);
  Position position();

 private:
  void open();
  void event(const MetricsRow& row);

  std::string directory_;
  std::ofstream csv_, jsonl_, events_;
};

// One record of a TensorBoard event file: length, masked CRC, payload, masked CRC.
std::string tensorboard_record(const std::string& payload);
std::string tensorboard_scalar(double wall_time, int64_t step, const std::string& tag, float value);

}  // namespace pwdice
