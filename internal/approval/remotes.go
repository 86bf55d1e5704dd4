package approval

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/abide-run/abide/internal/approval/disk"
	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/approval/shell"
	"github.com/abide-run/abide/internal/lazyregexp"
)

// otherRepository says that a git command, run in dir, talks to a repository on this
// machine, or that it may. Git runs its own programs there with the configuration and the
// hooks of that repository, which came with its files, and does not pass on to them what
// holds the configuration still. It returns "" if the command talks only to other
// machines, and to repositories outside of the folders of the session that the
// configuration of the session's own repository names.
func (in Surroundings) otherRepository(run shell.Run, dir string) string {
	names, talks, err := run.Repositories()
	switch {
	case err != nil:
		return "it has " + err.Error() + ", which may run git in another repository"
	case !talks:
		return ""
	}
	known := in.remotes(dir)
	if len(names) == 0 && run.Words[1] != "push" && !known.HasDefault() {
		names = []string{"origin"}
	}
	var addresses []string
	for _, name := range names {
		if of, ok := known.Addresses[name]; ok && run.Words[1] != "clone" {
			addresses = append(addresses, of...)
		} else if !isDistant(name) || exists(in.Disk, absolute(dir, name)) || exists(in.Disk, absolute(dir, name+".git")) {
			return "git would run in another repository, " + name
		}
	}
	if len(names) == 0 {
		addresses = known.All()
	}
	for _, a := range addresses {
		if !isDistant(a) && !in.isElsewhere(a) {
			return "git would run in another repository, " + a + ", which the configuration names"
		}
	}
	return ""
}

// distant matches the addresses of other machines: with a scheme, or HOST:PATH.
var distant = lazyregexp.New(`^((https?|ssh|git|git\+ssh|ftps?)://[^/]|([A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9][A-Za-z0-9.-]+:([^:/]|/[^/]))`)

func isDistant(address string) bool {
	return distant.MatchString(address) && !strings.HasPrefix(address, "file:") && !strings.Contains(address, shell.Unknown)
}

// isElsewhere reports whether an address in the configuration is the path of a repository
// outside of the folders of the session.
func (in Surroundings) isElsewhere(address string) bool {
	path := strings.TrimPrefix(address, "file://")
	return filepath.IsAbs(path) && !isBelow(filepath.Clean(path), in.Home) && in.outside(path) != ""
}

func exists(on disk.Source, path string) bool {
	return on.Ask(disk.Question{Kind: disk.Name, Path: path}).OK
}

// remotes returns the remotes of the repository that a folder is in. There are none if they
// cannot be read: git is then taken to use a folder.
func (in Surroundings) remotes(dir string) (known protect.Remotes) {
	_ = json.Unmarshal([]byte(in.Disk.Ask(disk.Question{Kind: disk.Remotes, Path: dir}).Text), &known)
	return known
}
