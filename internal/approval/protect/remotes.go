package protect

import (
	"maps"
	"slices"
	"strings"
)

// Remotes are what the configuration of a repository says of others.
type Remotes struct {
	Addresses map[string][]string // addresses of each remote, for fetching and pushing
	Defaults  []string            // remotes or addresses that commands use which name none
}

// ReadRemotes returns the remotes of the repository that a folder is in. Only its own
// configuration is read, and not that of the user.
func ReadRemotes(dir string) Remotes {
	r := Remotes{Addresses: make(map[string][]string)}
	var all []setting
	for _, path := range ConfigsOf(dir) {
		data, _ := readAtMost(path, MaxKept) // without the file there are no remotes
		all = append(all, parseGitConfig(data)...)
	}
	for _, s := range all {
		r.add(s)
	}
	for name, of := range r.Addresses { // without url, git fetches from a folder that is called like the remote
		if !slices.ContainsFunc(all, func(s setting) bool { return s.Key == "remote."+name+".url" }) {
			r.Addresses[name] = append(of, name)
		}
	}
	return r
}

// All returns the addresses of all remotes, and those that commands use which name none.
func (r Remotes) All() []string {
	list := slices.Concat(slices.Collect(maps.Values(r.Addresses))...)
	for _, name := range r.Defaults {
		if _, isRemote := r.Addresses[name]; !isRemote && name != "." { // a branch can follow one of its own repository
			list = append(list, name)
		}
	}
	return list
}

// HasDefault reports whether git fetches from a remote if a command names none. Else it
// fetches from a folder that is called origin.
func (r Remotes) HasDefault() bool {
	return len(r.Addresses) == 1 || len(r.Addresses["origin"]) > 0
}

func (r *Remotes) add(s setting) {
	section, rest, _ := strings.Cut(s.Key, ".")
	name := rest[max(0, strings.LastIndexByte(rest, '.')+1):]
	within := strings.TrimSuffix(strings.TrimSuffix(rest, name), ".")
	switch {
	case section == "remote" && (name == "url" || name == "pushurl"):
		r.Addresses[within] = append(r.Addresses[within], s.Value)
	case section == "branch" && (name == "remote" || name == "pushremote"), s.Key == "remote.pushdefault":
		if !slices.Contains(r.Defaults, s.Value) {
			r.Defaults = append(r.Defaults, s.Value)
		}
	}
}

// ConfigsOf returns the configuration files of the repository that a folder is in. They
// need not exist.
func ConfigsOf(dir string) []string {
	root, git, common := gitFolders(dir)
	if root == "" {
		return nil
	}
	return configsIn(git, common)
}
