// SPDX-License-Identifier: Apache-2.0
#include "services/cli/command_line.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"
#include "services/cli/commands/advise.h"
#include "services/cli/commands/calibrate.h"
#include "services/cli/commands/catalog.h"
#include "services/cli/commands/collectives.h"
#include "services/cli/commands/faults.h"
#include "services/cli/commands/health.h"
#include "services/cli/commands/network.h"
#include "services/cli/commands/operators.h"
#include "services/cli/commands/parameters.h"
#include "services/cli/commands/predict.h"
#include "services/cli/commands/resilience.h"
#include "services/cli/commands/serve.h"
#include "services/cli/commands/sweep.h"
#include "services/cli/commands/validate.h"
#include "services/cli/commands/watch_folder.h"
#include "services/cli/commands/what_if.h"
#include "services/cli/common_options.h"
#include "services/cli/completion.h"
#include "services/cli/interrupt.h"

namespace sextant::cli {
namespace {

constexpr char kAbout[] =
    "sextant: what will this LLM job do on that GPU cluster? Step time, memory, where the time "
    "goes.\nAnswers by itself, or asks running services with --server.";
constexpr char kFooter[] =
    "Exit codes: 0 ok, 1 internal, 2 usage, 3 invalid input, 4 not found, 5 unavailable or not in "
    "time,\n            6 the model says no (does not fit), 130 interrupted.\n"
    "Run 'sextant COMMAND --help' for a command's options. Every common option has a twin in the\n"
    "environment: SEXTANT_PARAMETERS, SEXTANT_SERVER, SEXTANT_TIMEOUT, SEXTANT_TLS_CA,\n"
    "SEXTANT_TLS_CERT, SEXTANT_TLS_KEY, SEXTANT_TOKEN_FILE, SEXTANT_QUIET, SEXTANT_NO_COLOR.";

using Action = std::function<absl::StatusOr<ExitCode>()>;

// The verbs, the options they fill, and the action of the one that was called.
class Parser {
 public:
  Parser(const Environment& environment, Terminal& terminal)
      : terminal_(terminal), app_(kAbout, "sextant") {
    ReadEnvironment(environment);
    app_.footer(kFooter);
    app_.require_subcommand(1);
    app_.get_formatter()->column_width(34);
    AddPredict();
    AddAdvise();
    AddSweep();
    AddResilience();
    AddFaults();
    AddWhatIf();
    AddValidate();
    AddCalibrate();
    AddOperators();
    AddNetwork();
    AddCollectives();
    AddParameters();
    AddCatalog();
    AddServe();
    AddHealth();
    AddCompletion();
    AddVersion();
    FinishVerbs(app_);
  }

  // Fails the way CLI11 does.
  void Parse(std::vector<std::string> arguments) {
    std::reverse(arguments.begin(), arguments.end());  // what CLI11 asks of a vector
    app_.parse(std::move(arguments));
  }

  CLI::App& app() { return app_; }
  CommonOptions& common() { return common_; }
  const Action& action() const { return action_; }
  bool runs_until_stopped() const { return runs_until_stopped_; }

  std::vector<std::string> VerbNames() const {
    std::vector<std::string> names;
    for (const CLI::App* verb : app_.get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(verb->get_name());
    }
    return names;
  }

  // The innermost command that the arguments reached: its help is the one to read.
  const CLI::App* Reached() const {
    const CLI::App* reached = &app_;
    while (!reached->get_subcommands().empty()) reached = reached->get_subcommands().front();
    return reached;
  }

  static std::string PathOf(const CLI::App* command) {
    return command->get_parent() == nullptr
               ? command->get_name()
               : absl::StrCat(PathOf(command->get_parent()), " ", command->get_name());
  }

 private:
  void ReadEnvironment(const Environment& environment) {
    const auto flag = [&](const char* name) {
      const char* value = environment(name);
      return value != nullptr && *value != '\0' && absl::string_view(value) != "0";
    };
    if (const char* value = environment("SEXTANT_PARAMETERS"); value != nullptr && *value != '\0') {
      common_.parameters = value;
      common_.parameters_given = true;
    }
    if (const char* value = environment("SEXTANT_SERVER"); value != nullptr) common_.server = value;
    double seconds = 0;
    if (const char* value = environment("SEXTANT_TIMEOUT");
        value != nullptr && absl::SimpleAtod(value, &seconds) && seconds > 0) {
      common_.timeout_seconds = seconds;
    }
    const auto text = [&](const char* name, std::string* value) {
      if (const char* set = environment(name); set != nullptr) *value = set;
    };
    text("SEXTANT_TLS_CA", &common_.security.ca_file);
    text("SEXTANT_TLS_CERT", &common_.security.certificate_file);
    text("SEXTANT_TLS_KEY", &common_.security.key_file);
    text("SEXTANT_TOKEN_FILE", &common_.security.token_file);
    common_.quiet = flag("SEXTANT_QUIET");
    common_.no_color = flag("SEXTANT_NO_COLOR") || flag("NO_COLOR");
  }

  // `description` starts with a capital letter and has no full stop.
  CLI::App* AddVerb(CLI::App& parent, const char* name, const char* description, Action action) {
    CLI::App* verb = parent.add_subcommand(name, description);
    if (action) verb->callback([this, action = std::move(action)] { action_ = action; });
    return verb;
  }

  // Verbs without verbs inside take the common options; they come last in the help.
  void FinishVerbs(CLI::App& parent) {
    for (CLI::App* verb : parent.get_subcommands([](CLI::App*) { return true; })) {
      verb->get_formatter()->column_width(34);
      verb->footer("");
      FinishVerbs(*verb);
      if (verb->get_subcommands([](CLI::App*) { return true; }).empty()) AddCommonOptions(*verb);
    }
  }

  void AddCommonOptions(CLI::App& verb) {
    const char* group = "Common options";
    verb.set_help_flag("-h,--help", "Print this help and exit")->group(group);
    verb.add_option_function<std::string>(
            "--parameters",
            [this](const std::string& value) {
              common_.parameters = value;
              common_.parameters_given = true;
            },
            "Parameter set: a name of the catalog or a file [default]")
        ->type_name("SET")
        ->group(group);
    verb.add_option("--server", common_.server,
                    "Ask the service at this address instead of the embedded library")
        ->type_name("HOST:PORT")
        ->group(group);
    verb.add_option("--timeout", common_.timeout_seconds,
                    "Give up after this many seconds (exit code 5)")
        ->type_name("SECONDS")
        ->check(CLI::Validator(
            [](const std::string& text) {
              double seconds = 0;
              return absl::SimpleAtod(text, &seconds) && seconds > 0 ? std::string()
                                                                     : "must be above 0";
            },
            ""))
        ->group(group);
    const auto file = [&](const char* flag, std::string* value, const char* help) {
      verb.add_option(flag, *value, help)->type_name("FILE")->group(group);
    };
    file("--tls-ca", &common_.security.ca_file, "Roots (PEM) that servers are checked against");
    file("--tls-cert", &common_.security.certificate_file, "Certificate (PEM) shown to servers");
    file("--tls-key", &common_.security.key_file, "Its key (PEM)");
    file("--token-file", &common_.security.token_file, "Holds the bearer token sent to servers");
    verb.add_flag("--quiet", common_.quiet, "No warnings and notes on stderr")->group(group);
    verb.add_flag("--no-color", common_.no_color, "No colors on terminals")->group(group);
  }

  void AddOutput(CLI::App& verb, std::vector<std::string> formats) {
    verb.add_option("--output", common_.output,
                    absl::StrCat("Format of the answer: ", absl::StrJoin(formats, ", "), " [",
                                 formats.front(), "]"))
        ->type_name("FORMAT")
        ->check(CLI::IsMember(std::move(formats)).description(""));
  }

  void AddPredict() {
    auto options = std::make_shared<PredictOptions>();
    CLI::App* verb = AddVerb(app_, "predict", "Predict time, throughput and memory of a job",
                             [this, options] { return PredictJob(common_, *options, terminal_); });
    verb->add_option("job", options->job_file, "Job file (YAML or JSON); - is stdin")
        ->type_name("JOB.yaml")
        ->required();
    AddSet(*verb, &options->overrides);
    verb->add_option("--trace", options->trace_file,
                     "Write the timeline as a Chrome trace (chrome://tracing, ui.perfetto.dev)")
        ->type_name("FILE");
    AddOutput(*verb, {"text", "json"});
  }

  void AddAdvise() {
    auto options = std::make_shared<AdviseOptions>();
    CLI::App* verb = AddVerb(app_, "advise", "Advise GPU count, layout and time limit of a job",
                             [this, options] { return AdviseJob(common_, *options, terminal_); });
    verb->add_option("job", options->job_file, "Job file (YAML or JSON); - is stdin")
        ->type_name("JOB.yaml")
        ->required();
    AddSet(*verb, &options->overrides);
    verb->add_option("--max-gpus", options->advice.max_gpu_count,
                     "Most GPUs to ask for [the job's gpu_count]")
        ->type_name("COUNT");
    verb->add_option("--min-gpus", options->advice.min_gpu_count,
                     "Fewest GPUs to ask for; equal to --max-gpus: exactly so many [1]")
        ->type_name("COUNT");
    verb->add_option("--steps", options->advice.step_count,
                     "Optimizer steps or batches of the run, for its time and time limit")
        ->type_name("COUNT");
    verb->add_option("--margin", options->advice.time_limit_margin,
                     "Share by which the time limit exceeds the run's interval [0.1]")
        ->type_name("SHARE");
    AddOutput(*verb, {"text", "env", "json"});
  }

  static void AddSet(CLI::App& verb, std::vector<std::string>* overrides) {
    verb.add_option("--set", *overrides,
                    "Override a field of the job, for example plan.tensor_parallel_size=4; may be "
                    "repeated")
        ->type_name("PATH=VALUE")
        ->allow_extra_args(false)
        ->check(CLI::Validator(
            [](const std::string& text) {
              const size_t equals = text.find('=');
              return equals == std::string::npos || equals == 0
                         ? absl::StrCat("\"", text, "\" must be PATH=VALUE")
                         : std::string();
            },
            ""));
  }

  void AddResilience() {
    auto options = std::make_shared<ResilienceOptions>();
    CLI::App* verb =
        AddVerb(app_, "resilience", "Say what interruptions leave of a training run",
                [this, options] { return AnswerResilience(common_, *options, terminal_); });
    verb->add_option("job", options->job_file, "Job file (YAML or JSON); - is stdin")
        ->type_name("JOB.yaml")
        ->required();
    AddSet(*verb, &options->overrides);
    verb->add_option("--profile", options->profile,
                     "How the cluster breaks: a name of datasets/reliability or a file "
                     "[llama-3-h100]")
        ->type_name("NAME");
    verb->add_option("--spares", options->spare_node_count, "Spare nodes [0]")
        ->type_name("COUNT");
    verb->add_option("--checkpoint-interval", options->checkpoint_interval_seconds,
                     "Work between checkpoints [the best interval]")
        ->type_name("SECONDS");
    verb->add_option("--checkpoint-seconds", options->checkpoint_seconds,
                     "For which one checkpoint stops the run [what the job's state needs]")
        ->type_name("SECONDS");
    verb->add_option("--stragglers", options->straggler_share,
                     "Share of GPU time lost to slow ranks [the profile's]")
        ->type_name("SHARE");
    AddOutput(*verb, {"text", "json"});
  }

  void AddFaults() {
    auto options = std::make_shared<FaultsOptions>();
    CLI::App* verb =
        AddVerb(app_, "faults", "Say what broken links and switches cost a training step",
                [this, options] { return StudyFaults(common_, *options, terminal_); });
    verb->add_option("job", options->job_file, "Job file (YAML or JSON); - is stdin")
        ->type_name("JOB.yaml")
        ->required();
    AddSet(*verb, &options->overrides);
    verb->add_option("--topology", options->topology,
                     "own (the cluster's), fat-tree, torus:8x16x8, or a network case file [own]")
        ->type_name("NAME");
    verb->add_option("--routing", options->routing,
                     "automatic, shortest, hashed or adaptive [automatic]")
        ->type_name("NAME");
    verb->add_option("--fractions", options->fractions,
                     "What remains of a broken part's bandwidth; 0 is dead [0.75,0.5,0.25,0]")
        ->type_name("SHARE,...")
        ->delimiter(',');
    verb->add_option("--draws", options->draw_count, "Draws of random faults [0]")
        ->type_name("COUNT");
    verb->add_option("--seed", options->seed, "Of the first draw [1]")->type_name("NUMBER");
    verb->add_option("--dead-probability", options->dead_probability,
                     "Of each link in a draw [0.001]")
        ->type_name("SHARE");
    verb->add_option("--derated-probability", options->derated_probability,
                     "Of each link to be at half its bandwidth in a draw [0.01]")
        ->type_name("SHARE");
    verb->add_flag("--compare-mappings", options->compare_mappings,
                   "The same draws under every mapping and routing");
    AddOutput(*verb, {"text", "json"});
  }

  void AddWhatIf() {
    auto options = std::make_shared<WhatIfOptions>();
    CLI::App* verb =
        AddVerb(app_, "what-if", "Say which property of the hardware matters most to a job",
                [this, options] { return AnswerWhatIf(common_, *options, terminal_); });
    verb->add_option("job", options->job_file, "Job file (YAML or JSON); - is stdin")
        ->type_name("JOB.yaml")
        ->required();
    AddSet(*verb, &options->overrides);
    verb->add_option("--factor", options->factor,
                     "By which each property is divided and multiplied [2]")
        ->type_name("NUMBER");
    AddOutput(*verb, {"text", "json"});
  }

  void AddSweep() {
    CLI::App* verb = AddVerb(app_, "sweep", "Find the best plans of a whole space", nullptr);
    verb->require_subcommand(1);
    auto options = std::make_shared<SweepOptions>();
    CLI::App* run = AddVerb(*verb, "run", "Evaluate every point of a sweep file, or plan of a job",
                            [this, options] { return RunSweepFile(common_, *options, terminal_); });
    run->add_option("sweep", options->sweep_file, "Sweep or job file (YAML or JSON); - is stdin")
        ->type_name("SWEEP.yaml")
        ->required();
    AddSet(*run, &options->overrides);
    run->add_option("--top", options->top_count, "Rows of the best points [the file's, or 20]")
        ->type_name("COUNT")
        ->check(CLI::Range(0, 100000).description(""));
    run->add_option("--shard", options->shard,
                    "Only part I of N of the space, I from 0; 'sweep merge' joins the parts")
        ->type_name("I/N");
    run->add_option("--threads", options->thread_count, "Threads [one per core]")
        ->type_name("COUNT")
        ->check(CLI::Range(0, 1024).description(""));
    AddOutput(*run, {"text", "csv", "json"});

    const auto add_html = [](CLI::App& of, std::string* file) {
      of.add_option("--html", *file, "Also write the answer as one page for a browser")
          ->type_name("FILE");
    };
    add_html(*run, &options->html_file);

    auto files = std::make_shared<std::vector<std::string>>();
    auto page = std::make_shared<std::string>();
    CLI::App* merge =
        AddVerb(*verb, "merge", "Join the answers of all shards (JSON) into that of the whole",
                [this, files, page] { return MergeSweeps(common_, *files, *page, terminal_); });
    add_html(*merge, page.get());
    merge->add_option("result", *files, "Answers of 'sweep run --shard ... --output json'")
        ->type_name("RESULT.json")
        ->required();
    AddOutput(*merge, {"text", "csv", "json"});
  }

  void AddValidate() {
    auto options = std::make_shared<ValidateOptions>();
    CLI::App* verb =
        AddVerb(app_, "validate", "Compare predictions with measurements",
                [this, options] { return ValidateMeasurements(common_, *options, terminal_); });
    AddMeasurements(*verb, &options->files, &options->context);
    verb->add_option("--ids", options->ids_file, "Only the rows whose id this CSV lists")
        ->type_name("FILE");
    verb->add_flag("--rows", options->rows, "List every row in text, too");
    AddOutput(*verb, {"text", "json"});
  }

  void AddCalibrate() {
    auto options = std::make_shared<CalibrateOptions>();
    auto watch = std::make_shared<WatchFolderOptions>();
    CLI::App* verb = AddVerb(app_, "calibrate",
                             "Fit parameters to measurements and judge them on held-out groups",
                             [this, options, watch]() -> absl::StatusOr<ExitCode> {
                               if (watch->directory.empty())
                                 return CalibrateParameters(common_, *options, terminal_);
                               watch->context = options->context;
                               watch->targets = options->targets;
                               watch->output_file = options->output_file;
                               return WatchFolder(common_, *watch, terminal_);
                             });
    AddMeasurements(*verb, &options->files, &options->context)->required(false);
    verb->add_option("--output-parameters", options->output_file, "Where the fitted set goes")
        ->type_name("FILE");
    verb->add_option("--watch", watch->directory,
                     "Take in what is written into this folder, for ever; with --server the "
                     "calibration service there does the rest")
        ->type_name("FOLDER");
    verb->add_option("--cool-down", watch->cool_down_seconds,
                     "With --watch: shortest time between calibrations [3600]")
        ->type_name("SECONDS")
        ->check(CLI::Range(0.0, 1e9).description(""));
    verb->add_flag("--once", watch->once, "With --watch: end when all that is there is dealt with");
    verb->parse_complete_callback([options, watch] {
      if (!watch->directory.empty()) return;
      if (options->files.empty()) throw CLI::RequiredError("measurements");
      if (options->output_file.empty()) throw CLI::RequiredError("--output-parameters");
    });
    verb->add_option("--initial", options->initial, "Set to start from [that of --parameters]")
        ->type_name("SET");
    verb->add_option("--name", options->name, "What the new set is called [calibrated]")
        ->type_name("NAME");
    verb->add_option("--push", options->targets,
                     "Put the set into this server unless it got worse; may be repeated")
        ->type_name("HOST:PORT")
        ->allow_extra_args(false);
    AddOutput(*verb, {"text", "json"});
  }

  void AddOperators() {
    auto options = std::make_shared<OperatorsOptions>();
    CLI::App* verb = AddVerb(app_, "operators", "Time the operators of a table", [this, options] {
      return TimeOperators(common_, *options, terminal_);
    });
    verb->add_option("table", options->files, "Operator tables (CSV); - is stdin")
        ->type_name("OPERATORS.csv")
        ->required();
    verb->add_option("--accelerator", options->accelerator,
                     "Accelerator of every row, whatever the table says")
        ->type_name("NAME");
    AddOutput(*verb, {"text", "csv", "json"});
  }

  static CLI::Option* AddMeasurements(CLI::App& verb, std::vector<std::string>* files,
                                      MeasuredContext* context) {
    CLI::Option* option =
        verb.add_option("measurements", *files,
                        "Measurement tables (CSV), nccl-tests output, PyTorch traces, training "
                        "logs, serving benchmarks, plain or gzip; - is stdin")
            ->type_name("FILE")
            ->required();
    const auto add = [&verb](const std::string& flag, auto* value, const std::string& help,
                             const std::string& type) {
      verb.add_option(flag, *value, help)->type_name(type)->group("What files do not say");
    };
    add("--accelerator", &context->accelerator, "Accelerator of logs and traces", "NAME");
    add("--cluster", &context->cluster, "Cluster that they ran on", "NAME");
    add("--software", &context->software, "Library, framework or engine, with version", "NAME");
    add("--job", &context->job_file, "Job (YAML) of a training log or serving benchmark", "FILE");
    add("--collective", &context->collective, "Collective of nccl-tests output", "NAME");
    add("--gpus", &context->gpu_count, "GPUs that took part", "COUNT");
    add("--nodes", &context->node_count, "Nodes that they were in", "COUNT");
    return option;
  }

  void AddNetwork() {
    auto options = std::make_shared<NetworkOptions>();
    CLI::App* verb =
        AddVerb(app_, "network", "Time collectives and flows on an interconnect, with faults",
                [this, options] { return TimeNetworkCases(common_, *options, terminal_); });
    verb->add_option("case", options->case_files, "Network case files (JSON); - is stdin")
        ->type_name("CASE.json")
        ->required();
    verb->add_option(
            "--fidelity", options->fidelity,
            "analytic: closed forms of uncongested patterns; flow: every link shared [flow]")
        ->type_name("KIND")
        ->check(CLI::IsMember({"analytic", "flow"}).description(""));
    AddOutput(*verb, {"text", "csv", "json"});
  }

  void AddCollectives() {
    auto file = std::make_shared<std::string>();
    CLI::App* verb = AddVerb(app_, "collectives",
                             "Time collectives that share a cluster's links, with faults",
                             [this, file] { return TimeCollectives(common_, *file, terminal_); });
    verb->add_option("question", *file,
                     "Cluster, GPUs, groups of ranks and bytes (YAML or JSON); - is stdin")
        ->type_name("COLLECTIVES.yaml")
        ->required();
    AddOutput(*verb, {"text", "csv", "json"});
  }

  void AddParameters() {
    CLI::App* verb =
        AddVerb(app_, "parameters", "List, show, push and roll back fitted parameters", nullptr);
    verb->require_subcommand(1);
    CLI::App* list = AddVerb(*verb, "list", "Names and versions of the catalog's parameter sets",
                             [this] { return ListParameters(common_, terminal_); });
    AddOutput(*list, {"text", "json"});

    auto name = std::make_shared<std::string>();
    CLI::App* show =
        AddVerb(*verb, "show", "Values, standard errors and origin of one parameter set",
                [this, name] { return ShowParameters(common_, *name, terminal_); });
    show->add_option("set", *name, "Name or file; default: the set in use")->type_name("SET");
    AddOutput(*show, {"text", "json"});

    auto targets = std::make_shared<std::vector<std::string>>();
    CLI::App* push = AddVerb(
        *verb, "push", "Put a parameter set into running services",
        [this, name, targets] { return PushParameters(common_, *name, *targets, terminal_); });
    push->add_option("set", *name, "Name or file")->type_name("SET")->required();
    push->add_option("target", *targets, "Servers")->type_name("HOST:PORT")->required();
    AddOutput(*push, {"text", "json"});

    CLI::App* rollback =
        AddVerb(*verb, "rollback", "Put the set before the last push back into service",
                [this, targets] { return RollBackParameters(common_, *targets, terminal_); });
    rollback->add_option("target", *targets, "Servers")->type_name("HOST:PORT")->required();
    AddOutput(*rollback, {"text", "json"});
  }

  void AddServe() {
    auto options = std::make_shared<ServeOptions>();
    CLI::App* verb = AddVerb(app_, "serve", "Run all four services in this process",
                             [this, options] { return ServeAll(common_, *options, terminal_); });
    verb->parse_complete_callback([this] { runs_until_stopped_ = true; });
    verb->add_option("--config", options->config_file,
                     "YAML file: listen, metrics_listen, parameters, state_directory, ...")
        ->type_name("FILE");
    verb->add_option("--listen", options->listen, "Address for gRPC [127.0.0.1:50051]")
        ->type_name("HOST:PORT");
    verb->add_option("--metrics-listen", options->metrics_listen,
                     "Address for Prometheus [127.0.0.1:9090]")
        ->type_name("HOST:PORT");
    verb->add_option("--state-directory", options->state_directory,
                     "Folder in which pushed sets survive a restart [none]")
        ->type_name("FOLDER");
    verb->add_flag("--insecure", options->insecure,
                   "Plaintext also where other machines can connect");
  }

  void AddHealth() {
    auto target = std::make_shared<std::string>();
    CLI::App* verb = AddVerb(app_, "health", "Ask a server which services are up",
                             [this, target] { return CheckHealth(common_, *target, terminal_); });
    verb->add_option("target", *target, "The server")->type_name("HOST:PORT")->required();
    AddOutput(*verb, {"text", "json"});
  }

  void AddCatalog() {
    CLI::App* verb =
        AddVerb(app_, "catalog", "List and show known accelerators, models and clusters", nullptr);
    verb->require_subcommand(1);
    auto kind = std::make_shared<std::string>();
    auto name = std::make_shared<std::string>();
    const std::string kinds = absl::StrJoin(CatalogKinds(), ", ");

    CLI::App* list = AddVerb(*verb, "list", "Names of all entries, or of one kind",
                             [this, kind] { return ListCatalog(common_, *kind, terminal_); });
    list->add_option("kind", *kind, kinds)
        ->type_name("WHAT")
        ->check(CLI::IsMember(CatalogKinds()).description(""));
    AddOutput(*list, {"text", "json"});

    CLI::App* show = AddVerb(*verb, "show", "Every field of one entry", [this, kind, name] {
      return ShowCatalogEntry(common_, *kind, *name, terminal_);
    });
    show->add_option("kind", *kind, kinds)
        ->type_name("WHAT")
        ->required()
        ->check(CLI::IsMember(CatalogKinds()).description(""));
    show->add_option("name", *name, "Name of the entry")->type_name("NAME")->required();
    AddOutput(*show, {"text", "json"});
  }

  void AddCompletion() {
    auto shell = std::make_shared<std::string>();
    CLI::App* verb = AddVerb(app_, "completion", "Print a completion script for a shell",
                             [this, shell]() -> absl::StatusOr<ExitCode> {
                               terminal_.Print(CompletionScript(*shell == "bash"  ? Shell::kBash
                                                                : *shell == "zsh" ? Shell::kZsh
                                                                                  : Shell::kFish,
                                                                CompletedVerbs()));
                               return ExitCode::kOk;
                             });
    verb->add_option("shell", *shell, "bash, zsh or fish")
        ->type_name("SHELL")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""));
  }

  void AddVersion() {
    AddVerb(app_, "version", "Print the version", [this]() -> absl::StatusOr<ExitCode> {
      terminal_.Print("sextant " SEXTANT_VERSION "\n");
      return ExitCode::kOk;
    });
  }

  std::vector<CompletedVerb> CompletedVerbs() const {
    std::vector<CompletedVerb> verbs;
    const auto all = [](const CLI::App*) { return true; };
    for (const CLI::App* verb : app_.get_subcommands(all)) {
      CompletedVerb completed{.name = verb->get_name(), .description = verb->get_description()};
      AddOptionNames(*verb, &completed);
      for (const CLI::App* nested : verb->get_subcommands(all)) {
        completed.words.push_back(nested->get_name());
        AddOptionNames(*nested, &completed);
      }
      if (completed.name == "completion") completed.words = {"bash", "zsh", "fish"};
      verbs.push_back(std::move(completed));
    }
    return verbs;
  }

  static void AddOptionNames(const CLI::App& verb, CompletedVerb* completed) {
    for (const CLI::Option* option : verb.get_options()) {
      for (const std::string& name : option->get_lnames()) {
        const std::string word = absl::StrCat("--", name);
        if (std::find(completed->options.begin(), completed->options.end(), word) ==
            completed->options.end()) {
          completed->options.push_back(word);
        }
      }
    }
  }

  Terminal& terminal_;
  CommonOptions common_;
  CLI::App app_;
  Action action_;
  bool runs_until_stopped_ = false;
};

std::string HintFor(const absl::Status& status, const CommonOptions& common,
                    const std::string& command) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return absl::StrCat(
          "correct the input",
          command == "sextant predict" ? ", or override a field with --set PATH=VALUE" : "", "; '",
          command, " --help' shows the options");
    case absl::StatusCode::kNotFound:
      return "'sextant catalog list' shows the names that are known; a path to a file works too";
    case absl::StatusCode::kUnavailable:
      return common.server.empty()
                 ? "check the address, and that 'sextant serve' or the services run there"
                 : absl::StrCat("'sextant health ", common.server,
                                "' asks whether it is up; without --server the command answers "
                                "by itself");
    case absl::StatusCode::kDeadlineExceeded:
      return "give it more time with --timeout SECONDS";
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
      return "this is a defect of sextant: please report the command with its input";
    default:
      return absl::StrCat("'", command, " --help' shows the options");
  }
}

absl::StatusOr<ExitCode> MakeCredentials(CommonOptions* common) {
  if (common->security.empty()) return ExitCode::kOk;
  SEXTANT_ASSIGN_OR_RETURN(common->credentials, runtime::MakeChannelCredentials(common->security));
  return ExitCode::kOk;
}

void SayUsageError(const Parser& parser, const std::string& message, Terminal& terminal) {
  terminal.Fail(absl::InvalidArgumentError(message),
                absl::StrCat("'", Parser::PathOf(parser.Reached()), " --help' shows the usage"));
}

}  // namespace

ExitCode RunCommandLine(const std::vector<std::string>& arguments, const Environment& environment,
                        Terminal& terminal) {
  Parser parser(environment, terminal);
  if (arguments.empty()) {
    terminal.Error("no command given");
    terminal.Note(absl::StrCat("commands: ", absl::StrJoin(parser.VerbNames(), ", ")));
    terminal.Note("'sextant --help' explains them");
    return ExitCode::kUsage;
  }
  if (arguments[0] == "--version") return RunCommandLine({"version"}, environment, terminal);
  const std::vector<std::string> verbs = parser.VerbNames();
  if (arguments[0].rfind('-', 0) != 0 &&
      std::find(verbs.begin(), verbs.end(), arguments[0]) == verbs.end()) {
    SayUsageError(parser, std::string(base::UnknownName("command", arguments[0], verbs).message()),
                  terminal);
    return ExitCode::kUsage;
  }

  // "sweep FILE" is short for "sweep run FILE".
  std::vector<std::string> words = arguments;
  if (words.size() > 1 && words[0] == "sweep" && words[1] != "run" && words[1] != "merge" &&
      (words[1] == "-" || words[1].rfind('-', 0) != 0)) {
    words.insert(words.begin() + 1, "run");
  }
  // CLI11 reports by throwing; nothing of ours does.
  try {
    parser.Parse(words);
  } catch (const CLI::CallForHelp&) {
    const CLI::App* reached = parser.Reached();
    terminal.Print(reached->help(
        reached->get_parent() == nullptr ? "" : Parser::PathOf(reached->get_parent())));
    return ExitCode::kOk;
  } catch (const CLI::ParseError& error) {
    SayUsageError(parser, error.what(), terminal);
    return ExitCode::kUsage;
  }

  CommonOptions& common = parser.common();
  terminal.set_quiet(common.quiet);
  terminal.set_err_is_terminal(isatty(STDERR_FILENO) == 1);
  terminal.set_color(!common.no_color && isatty(STDOUT_FILENO) == 1,
                     !common.no_color && isatty(STDERR_FILENO) == 1);
  if (!parser.runs_until_stopped()) {
    ExitOnInterrupt();
    if (common.timeout_seconds > 0) ExitAfter(common.timeout_seconds);
  }
  absl::StatusOr<ExitCode> code = absl::InternalError("no action");
  try {
    code = MakeCredentials(&common);
    if (code.ok()) code = parser.action()();
  } catch (const std::exception& error) {  // of a third party, or out of memory
    code = absl::InternalError(absl::StrCat("unexpected: ", error.what()));
  }
  if (code.ok()) return *code;
  terminal.Fail(code.status(), HintFor(code.status(), common, Parser::PathOf(parser.Reached())));
  return ExitCodeOf(code.status().code());
}

}  // namespace sextant::cli
