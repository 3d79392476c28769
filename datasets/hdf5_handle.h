// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// RAII over the C API, for hdf5_*.cpp alone.

#include <hdf5.h>

#include <mutex>
#include <utility>

namespace pwdice::hdf5 {

// Around every use of HDF5: the library is not thread-safe, and it prints its error stack unless told not to.
// The embedder's own handler is put back.
class Session {
 public:
  Session() : lock_(mutex()) {
    H5Eget_auto2(H5E_DEFAULT, &handler_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Session() { H5Eset_auto2(H5E_DEFAULT, handler_, data_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

 private:
  static std::recursive_mutex& mutex() {
    static std::recursive_mutex m;
    return m;
  }
  std::lock_guard<std::recursive_mutex> lock_;
  H5E_auto2_t handler_ = nullptr;
  void* data_ = nullptr;
};

// An identifier of HDF5 and how to close it. Negative = the call that made it failed.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle() = default;
  Handle(hid_t id, Close close) : id_(id), close_(close) {}
  ~Handle() { reset(); }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      id_ = std::exchange(other.id_, -1), close_ = other.close_;
    }
    return *this;
  }

  explicit operator bool() const { return id_ >= 0; }
  operator hid_t() const { return id_; }
  herr_t reset() noexcept {
    if (id_ < 0) return 0;
    const Session session;
    return close_(std::exchange(id_, -1));
  }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

}  // namespace pwdice::hdf5
