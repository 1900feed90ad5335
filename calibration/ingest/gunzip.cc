// SPDX-License-Identifier: Apache-2.0
#include "calibration/ingest/gunzip.h"

#include <zlib.h>

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace sextant::ingest {
namespace {

constexpr size_t kChunkBytes = 256 * 1024;
constexpr int kGzipWindow = 15 + 16;  // largest window, gzip header (zlib.h, inflateInit2)

class Stream {
 public:
  Stream() { ok_ = inflateInit2(&stream_, kGzipWindow) == Z_OK; }
  ~Stream() {
    if (ok_) inflateEnd(&stream_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  bool ok() const { return ok_; }
  z_stream& get() { return stream_; }

 private:
  z_stream stream_ = {};
  bool ok_ = false;
};

}  // namespace

bool IsGzip(absl::string_view bytes) { return absl::StartsWith(bytes, "\x1f\x8b"); }

absl::StatusOr<Inflated> Gunzip(absl::string_view bytes, size_t limit_bytes) {
  Stream stream;
  if (!stream.ok()) return absl::InternalError("zlib cannot start");
  z_stream& z = stream.get();
  Inflated inflated;
  std::vector<unsigned char> chunk(kChunkBytes);
  size_t taken = 0;
  for (;;) {
    if (z.avail_in == 0) {
      const size_t some = std::min(bytes.size() - taken, size_t{1} << 30);
      // zlib reads only, but its pointer is not const.
      z.next_in = const_cast<unsigned char*>(  // NOLINT
          reinterpret_cast<const unsigned char*>(bytes.data() + taken));
      z.avail_in = static_cast<unsigned>(some);
      taken += some;
    }
    z.next_out = chunk.data();
    z.avail_out = kChunkBytes;
    const int result = inflate(&z, Z_NO_FLUSH);
    const size_t produced = kChunkBytes - z.avail_out;
    if (inflated.text.size() + produced > limit_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("holds more than ", limit_bytes, " bytes when unpacked; split the file"));
    }
    inflated.text.append(reinterpret_cast<const char*>(chunk.data()), produced);
    const bool all_taken = taken == bytes.size() && z.avail_in == 0;
    if (result == Z_STREAM_END) {
      // What follows a member is another one, or padding that gzip ignores as well.
      if (all_taken || *z.next_in != 0x1f || inflateReset(&z) != Z_OK) return inflated;
      continue;
    }
    if (result == Z_OK && !(all_taken && produced == 0)) continue;
    if (inflated.text.empty()) {
      return absl::InvalidArgumentError("is damaged gzip data: nothing could be unpacked");
    }
    inflated.truncated = true;
    return inflated;
  }
}

}  // namespace sextant::ingest
