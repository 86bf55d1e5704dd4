package shell

import (
	"fmt"
	"slices"
	"strings"
)

// fetchLong are the options of git fetch that name neither a program nor a repository.
const fetchLong = "all append atomic deepen: depth: dry-run filter: force ipv4 ipv6 jobs: keep no-auto-gc no-auto-maintenance no-recurse-submodules no-tags no-write-fetch-head porcelain " +
	"progress no-progress prune prune-tags quiet refetch refmap: server-option: set-upstream shallow-exclude: shallow-since: show-forced-updates tags unshallow update-head-ok update-shallow verbose "

// transports are the subcommands of git that talk to another repository, with the options
// that leave open neither which word names it nor which program is run there.
var transports = map[string]reader{
	"clone": {why: "the first operand is the repository, the second the new folder", short: "nqvb:o:j:", long: "bare branch: depth: filter: jobs: mirror no-checkout no-single-branch no-tags origin: " +
		"progress quiet shallow-exclude: shallow-since: single-branch sparse verbose no-recurse-submodules"},
	"fetch":     {why: "the first operand is the repository", short: "afkpPtnqv46j:o:", long: fetchLong},
	"ls-remote": {why: "the first operand is the repository", short: "hbtqo:", long: "branches exit-code heads quiet refs server-option: sort: symref tags"},
	"pull": {why: "the first operand is the repository", short: "afkptnqvr46j:o:X:", long: fetchLong + "allow-unrelated-histories autostash no-autostash commit no-commit edit no-edit ff ff-only no-ff log:: " +
		"rebase:: no-rebase signoff squash no-squash stat no-stat strategy-option: summary verify no-verify"},
	"push": {why: "the first operand is the repository", short: "dfnquv46o:", long: "all atomic no-atomic branches delete dry-run follow-tags no-follow-tags force force-if-includes force-with-lease:: ipv4 ipv6 mirror " +
		"no-recurse-submodules porcelain progress no-progress prune push-option: quiet set-upstream signed:: no-signed tags thin no-thin verbose verify no-verify"},
}

// plumbing are the subcommands of git with which repositories talk to each other. People
// do not use them, and what their words mean is not looked at.
var plumbing = []string{"daemon", "fetch-pack", "http-backend", "http-fetch", "http-push", "receive-pack", "remote-", "request-pull", "send-pack", "shell", "upload-"}

// Repositories returns the words with which a git command names the repositories that it
// talks to. There are none if they are those of the configuration. It reports false if the
// command talks to no other repository. The error says that it is not known to which.
func (r Run) Repositories() (names []string, talks bool, err error) {
	if base(r.Words[0]) != "git" || len(r.Words) < 2 {
		return nil, false, nil
	}
	sub, args := r.Words[1], r.Words[2:]
	for _, p := range plumbing {
		if sub == p || strings.HasSuffix(p, "-") && strings.HasPrefix(sub, p) {
			return nil, true, fmt.Errorf("git %s", sub)
		}
	}
	switch row, ok := transports[sub]; {
	case ok:
		operands, understood := row.split(args)
		if !understood {
			return nil, true, fmt.Errorf("options of git %s that are not known here", sub)
		}
		return operands[:min(1, len(operands))], true, nil
	case sub == "archive":
		for _, a := range args {
			if strings.HasPrefix(a, "--r") || strings.Contains(a, Unknown) {
				return nil, true, fmt.Errorf("git archive with %s", excerpt(a))
			}
		}
	case sub == "remote":
		names, talks = remoteAddresses(args)
	}
	return names, talks, nil
}

// remoteAddresses returns the words of git remote that may be addresses, because later
// commands talk to what is added now. It reports false if there are none and git talks to
// nobody now.
func remoteAddresses(args []string) (names []string, ok bool) {
	operands := slices.DeleteFunc(slices.Clone(args), beginsWithDash)
	switch {
	case len(operands) == 0:
		return nil, false
	case operands[0] == "add", operands[0] == "set-url":
		return operands[min(2, len(operands)):], true // a value of an option may be among them
	case slices.Contains([]string{"prune", "set-head", "show", "update"}, operands[0]):
		return operands[1:], true
	}
	return nil, false
}
