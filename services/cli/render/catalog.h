// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_RENDER_CATALOG_H_
#define SEXTANT_SERVICES_CLI_RENDER_CATALOG_H_

#include <string>
#include <vector>

#include "common/hardware/accelerator.h"
#include "common/hardware/cluster.h"
#include "common/parameters/parameter_set.h"
#include "common/workload/model_architecture.h"

namespace sextant::cli {

// Entries of the catalog as JSON documents with every field of the domain value.
std::string AcceleratorJson(const hardware::Accelerator& accelerator);
std::string ClusterJson(const hardware::Cluster& cluster);
std::string ModelJson(const workload::ModelArchitecture& model);
std::string ParameterSetJson(const parameters::ParameterSet& set);

// The fields of any JSON document, one "path  value" line each.
std::string FieldsText(const std::string& json);

// Values with their standard errors and what they mean.
std::string ParameterSetText(const parameters::ParameterSet& set,
                             const std::vector<parameters::KeyedDescriptor>& descriptors);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_RENDER_CATALOG_H_
