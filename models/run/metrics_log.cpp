// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "metrics_log.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "../../kernels/error.h"
#include "../../host/crc32.h"

namespace pwdice {
namespace {

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string number(double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", v);
  return text;
}

// The little of protocol buffers that a scalar summary needs.
void varint(std::string& out, uint64_t v) {
  for (; v >= 128; v >>= 7) out += static_cast<char>((v & 127) | 128);
  out += static_cast<char>(v);
}
void field_bytes(std::string& out, int field, const std::string& bytes) {
  varint(out, static_cast<uint64_t>(field) << 3 | 2);
  varint(out, bytes.size());
  out += bytes;
}
template <class T>
void field_fixed(std::string& out, int field, T value) {
  varint(out, static_cast<uint64_t>(field) << 3 | (sizeof value == 8 ? 1 : 5));
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

uint32_t masked_crc(const void* data, size_t bytes) {
  const uint32_t crc = crc32_castagnoli(data, bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

}  // namespace

std::string tensorboard_record(const std::string& payload) {
  std::string out;
  const auto append = [&out](auto value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); };
  append(static_cast<uint64_t>(payload.size()));
  append(masked_crc(out.data(), out.size()));
  out += payload;
  append(masked_crc(payload.data(), payload.size()));
  return out;
}

std::string tensorboard_scalar(double time, int64_t step, const std::string& tag, float value) {
  std::string scalar, summary, event;
  field_bytes(scalar, 1, tag);
  field_fixed(scalar, 2, value);
  field_bytes(summary, 1, scalar);
  field_fixed(event, 1, time);
  varint(event, 2 << 3);
  varint(event, static_cast<uint64_t>(step));
  field_bytes(event, 5, summary);
  return event;
}

MetricsLog::MetricsLog(const std::string& directory) : directory_(directory) { open(); }

void MetricsLog::open() {
  const bool fresh = !std::filesystem::exists(directory_ + "/metrics.csv");
  csv_.open(directory_ + "/metrics.csv", std::ios::app);
  jsonl_.open(directory_ + "/metrics.jsonl", std::ios::app);
  if (!csv_ || !jsonl_) fail(ErrorCode::BadFile, "{}: cannot write metrics.csv and metrics.jsonl", directory_);
  if (fresh) csv_ << "phase,step,seconds,name,value\n";
}

void MetricsLog::rewind(Position position) {
  csv_.close();
  jsonl_.close();
  for (const auto& [name, size] : {std::pair{"/metrics.csv", position.csv}, std::pair{"/metrics.jsonl", position.jsonl}}) {
    const std::string path = directory_ + name;
    if (std::filesystem::exists(path) && std::filesystem::file_size(path) > size) std::filesystem::resize_file(path, size);
  }
  open();
}

void MetricsLog::write(const MetricsRow& row) {
  std::string json = "{\"phase\":\"" + row.phase + "\",\"step\":" + std::to_string(row.step) +
                     ",\"seconds\":" + number(std::round(row.seconds * 1000) / 1000);
  for (const auto& [name, value] : row.values) {
    csv_ << row.phase << ',' << row.step << ',' << number(row.seconds) << ',' << name << ',' << number(value) << '\n';
    json += ",\"" + name + "\":" + (std::isfinite(value) ? number(value) : "null");
  }
  jsonl_ << json << "}\n";
  event(row);
  if (!csv_ || !jsonl_ || !events_) fail(ErrorCode::BadFile, "{}: cannot write the metrics (is the disk full?)", directory_);
}

void MetricsLog::event(const MetricsRow& row) {
  const double time = wall_time();
  if (!events_.is_open()) {  // one file per process, made with the first row; TensorBoard reads them all
    char name[64];
    std::snprintf(name, sizeof name, "/events.out.tfevents.%010lld.pwdice", static_cast<long long>(time));
    events_.open(directory_ + name, std::ios::binary | std::ios::app);
    std::string version;
    field_fixed(version, 1, time);
    field_bytes(version, 3, "brain.Event:2");
    events_ << tensorboard_record(version);
  }
  for (const auto& [name, value] : row.values) {
    events_ << tensorboard_record(tensorboard_scalar(time, row.step, row.phase + "/" + name, static_cast<float>(value)));
  }
  events_.flush();
}

MetricsLog::Position MetricsLog::position() {
  csv_.flush();
  jsonl_.flush();
  return {static_cast<uint64_t>(csv_.tellp()), static_cast<uint64_t>(jsonl_.tellp())};
}

}  // namespace pwdice
