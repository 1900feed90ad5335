// SPDX-License-Identifier: Apache-2.0
#include "services/cli/completion.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace sextant::cli {
namespace {

std::string Names(const std::vector<CompletedVerb>& verbs) {
  return absl::StrJoin(verbs, " ", [](std::string* out, const CompletedVerb& verb) {
    absl::StrAppend(out, verb.name);
  });
}

std::string CandidatesOf(const CompletedVerb& verb) {
  std::vector<std::string> words = verb.words;
  words.insert(words.end(), verb.options.begin(), verb.options.end());
  return absl::StrJoin(words, " ");
}

std::string SingleQuoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string CaseArms(const std::vector<CompletedVerb>& verbs, absl::string_view variable) {
  std::string arms;
  for (const CompletedVerb& verb : verbs) {
    absl::StrAppend(&arms, "    ", verb.name, ") ", variable, "=", SingleQuoted(CandidatesOf(verb)),
                    " ;;\n");
  }
  return arms;
}

std::string Bash(const std::vector<CompletedVerb>& verbs) {
  return absl::StrCat(R"(_sextant() {
  local current="${COMP_WORDS[COMP_CWORD]}" candidates
  if [ "$COMP_CWORD" -eq 1 ]; then
    candidates=)",
                      SingleQuoted(Names(verbs)), R"(
  else
    case "${COMP_WORDS[1]}" in
)",
                      CaseArms(verbs, "candidates"), R"(    esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$candidates" -- "$current")
  case "$current" in
    -*) ;;
    *) [ "$COMP_CWORD" -gt 1 ] && mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$current") ;;
  esac
}
complete -o filenames -F _sextant sextant
)");
}

std::string Zsh(const std::vector<CompletedVerb>& verbs) {
  std::string described;
  for (const CompletedVerb& verb : verbs) {
    absl::StrAppend(&described, "    ",
                    SingleQuoted(absl::StrCat(verb.name, ":", verb.description)), "\n");
  }
  return absl::StrCat(
      "#compdef sextant\n_sextant() {\n  local -a verbs\n  local candidates\n"
      "  verbs=(\n",
      described, R"(  )
  if (( CURRENT == 2 )); then
    _describe 'command' verbs
    return
  fi
  case "$words[2]" in
)",
      CaseArms(verbs, "candidates"), R"(  esac
  compadd -- ${=candidates}
  _files
}
compdef _sextant sextant
)");
}

std::string Fish(const std::vector<CompletedVerb>& verbs) {
  std::string script;
  for (const CompletedVerb& verb : verbs) {
    absl::StrAppend(&script, "complete -c sextant -n __fish_use_subcommand -f -a ", verb.name,
                    " -d ", SingleQuoted(verb.description), "\n");
    const std::string inside =
        absl::StrCat("complete -c sextant -n '__fish_seen_subcommand_from ", verb.name, "' ");
    if (!verb.words.empty()) {
      absl::StrAppend(&script, inside, "-a ", SingleQuoted(absl::StrJoin(verb.words, " ")), "\n");
    }
    for (const std::string& option : verb.options) {
      absl::StrAppend(&script, inside, "-l ", option.substr(2), "\n");
    }
  }
  return script;
}

}  // namespace

std::string CompletionScript(Shell shell, const std::vector<CompletedVerb>& verbs) {
  switch (shell) {
    case Shell::kBash:
      return Bash(verbs);
    case Shell::kZsh:
      return Zsh(verbs);
    case Shell::kFish:
      return Fish(verbs);
  }
  return "";
}

}  // namespace sextant::cli
