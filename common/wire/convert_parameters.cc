// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>
#include <utility>

#include "common/wire/convert.h"
#include "common/wire/reader.h"

namespace sextant::wire {
namespace {

using parameters::ParameterValues;
using ProtoValues = google::protobuf::Map<std::string, types::v1::ParameterValue>;

// Map order differs from run to run: sorted names keep error messages the same.
template <typename T>
std::map<std::string, const T*> Sorted(const google::protobuf::Map<std::string, T>& proto) {
  std::map<std::string, const T*> sorted;
  for (const auto& [name, value] : proto) sorted[name] = &value;
  return sorted;
}

void Fill(const ParameterValues& values, ProtoValues& proto) {
  for (const auto& [key, value] : values) {
    types::v1::ParameterValue& out = proto[key];
    out.set_value(value.value);
    if (value.standard_error.has_value()) out.set_standard_error(*value.standard_error);
  }
}

ParameterValues Read(Reader& reader, const std::string& path, const ProtoValues& proto) {
  ParameterValues values;
  for (const auto& [key, value] : Sorted(proto)) {
    const std::string field = absl::StrCat(path, ".", key);
    parameters::ParameterValue& out = values[key];
    out.value = reader.Finite(field + ".value", value->value());
    if (value->has_standard_error()) {
      out.standard_error = reader.Finite(field + ".standard_error", value->standard_error());
    }
  }
  return values;
}

parameters::AcceleratorParameters Read(Reader& reader, const std::string& path,
                                       const types::v1::AcceleratorParameters& proto) {
  parameters::AcceleratorParameters result;
  result.shared = Read(reader, path + ".shared", proto.shared());
  for (const auto& [profile, values] : Sorted(proto.profiles())) {
    result.profiles[profile] =
        Read(reader, absl::StrCat(path, ".profiles.", profile, ".values"), values->values());
  }
  for (int i = 0; i < proto.domain_size(); ++i) {
    const types::v1::DomainRange& range = proto.domain(i);
    const std::string field = absl::StrCat(path, ".domain[", i, "]");
    result.domain.push_back({.block = range.block(),
                             .dimension = range.dimension(),
                             .minimum = reader.Finite(field + ".minimum", range.minimum()),
                             .maximum = reader.Finite(field + ".maximum", range.maximum())});
  }
  for (const types::v1::MeasuredBlock& measured : proto.measured()) {
    result.measured.push_back({measured.block(), measured.accelerator(), measured.row_count()});
  }
  return result;
}

}  // namespace

types::v1::ParameterSet ToProto(const parameters::ParameterSet& set) {
  types::v1::ParameterSet proto;
  proto.set_version(set.version());
  const parameters::Provenance& provenance = set.provenance();
  types::v1::Provenance& out = *proto.mutable_provenance();
  out.set_name(provenance.name);
  for (const std::string& parent : provenance.parents) out.add_parents(parent);
  for (const std::string& source : provenance.measurements) out.add_measurements(source);
  for (const auto& [name, values] : set.accelerators()) {
    types::v1::AcceleratorParameters& accelerator = (*proto.mutable_accelerators())[name];
    Fill(values.shared, *accelerator.mutable_shared());
    for (const auto& [profile, overrides] : values.profiles) {
      Fill(overrides, *(*accelerator.mutable_profiles())[profile].mutable_values());
    }
    for (const parameters::DomainRange& range : values.domain) {
      types::v1::DomainRange& domain = *accelerator.add_domain();
      domain.set_block(range.block);
      domain.set_dimension(range.dimension);
      domain.set_minimum(range.minimum);
      domain.set_maximum(range.maximum);
    }
    for (const parameters::MeasuredBlock& measured : values.measured) {
      types::v1::MeasuredBlock& block = *accelerator.add_measured();
      block.set_block(measured.block);
      block.set_accelerator(measured.accelerator);
      block.set_row_count(measured.row_count);
    }
  }
  return proto;
}

absl::StatusOr<parameters::ParameterSet> FromProto(const types::v1::ParameterSet& proto) {
  Reader reader;
  parameters::Provenance provenance;
  provenance.name = proto.provenance().name();
  provenance.parents.assign(proto.provenance().parents().begin(),
                            proto.provenance().parents().end());
  provenance.measurements.assign(proto.provenance().measurements().begin(),
                                 proto.provenance().measurements().end());
  std::map<std::string, parameters::AcceleratorParameters, std::less<>> accelerators;
  for (const auto& [name, values] : Sorted(proto.accelerators())) {
    accelerators[name] = Read(reader, absl::StrCat("accelerators.", name), *values);
  }
  parameters::ParameterSet set(std::move(provenance), std::move(accelerators));
  if (!proto.version().empty() && proto.version() != set.version()) {
    reader.Add("version",
               absl::StrCat("is \"", proto.version().substr(0, 64), "\" but the content hashes to ",
                            set.version(), "; leave version out of a set edited by hand"));
  }
  return reader.Finish(std::move(set));
}

}  // namespace sextant::wire
