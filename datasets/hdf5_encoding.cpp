// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "hdf5_encoding.h"

#include <bit>
#include <initializer_list>

#include "../kernels/error.h"
#include "hdf5_handle.h"

namespace pwdice::hdf5 {
namespace {

bool is_one_of(hid_t type, std::initializer_list<hid_t> known) {
  return std::any_of(known.begin(), known.end(), [&](hid_t k) { return H5Tequal(type, k) > 0; });
}

}  // namespace

Encoding encoding_of(hid_t type, const std::string& where) {
  Encoding out;
  const H5T_class_t kind = H5Tget_class(type);
  const size_t size = H5Tget_size(type);
  if (kind == H5T_STRING) return {Hdf5Type::String, static_cast<int64_t>(size)};
  if (kind == H5T_ENUM) {
    const Handle base(H5Tget_super(type), H5Tclose);
    if (size == 1 && base && is_one_of(base, {H5T_STD_I8LE, H5T_STD_U8LE, H5T_STD_I8BE, H5T_STD_U8BE})) {
      return {Hdf5Type::Bool, 1};
    }
  }
  if (kind == H5T_FLOAT &&
      is_one_of(type, {H5T_IEEE_F32LE, H5T_IEEE_F64LE, H5T_IEEE_F32BE, H5T_IEEE_F64BE})) {
    out = {Hdf5Type::Float, static_cast<int64_t>(size), true};
  } else if (kind == H5T_INTEGER &&
             is_one_of(type, {H5T_STD_I8LE, H5T_STD_I16LE, H5T_STD_I32LE, H5T_STD_I64LE, H5T_STD_U8LE,
                              H5T_STD_U16LE, H5T_STD_U32LE, H5T_STD_U64LE, H5T_STD_I8BE, H5T_STD_I16BE,
                              H5T_STD_I32BE, H5T_STD_I64BE, H5T_STD_U8BE, H5T_STD_U16BE, H5T_STD_U32BE,
                              H5T_STD_U64BE})) {
    out = {Hdf5Type::Integer, static_cast<int64_t>(size), H5Tget_sign(type) == H5T_SGN_2};
  } else {
    fail(ErrorCode::BadFile, "{} has a type other than 32- or 64-bit floats, integers, bools and strings",
         where);
  }
  const bool big = size > 1 && H5Tget_order(type) == H5T_ORDER_BE;
  out.swapped = size > 1 && big != (std::endian::native == std::endian::big);
  return out;
}

}  // namespace pwdice::hdf5
