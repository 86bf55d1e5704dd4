// Package cgroup lets the system hold the memory of a command: the command and everything
// that it starts are in a control group of their own, which has a limit.
//
// A group is made below that of the calling process, so that limits which hold for that hold
// for the command too. Both versions of control groups are known:
//
//   - Version 1 allows a group below that of a process, if its folder can be written.
//   - Version 2 does not allow limits below a group that has processes. So the group is made
//     beside that of the calling process, and only if the group above both was delegated, as
//     systemd does with Delegate= and DelegateSubgroup=; or below the root of all groups.
//
// Where neither is possible there is no group, and the error says why.
package cgroup

import (
	"bytes"
	"errors"
)

// A Place is a folder in which groups can be made.
type Place struct {
	Dir     string
	Version int // 1 or 2
}

// A Group is the control group of a command.
type Group struct {
	Dir     string
	version int
}

// Errors that say why there is no place for groups.
var (
	ErrNone         = errors.New("this system has no memory control groups")
	ErrReadOnly     = errors.New("the folder of the control group cannot be written")
	ErrNotDelegated = errors.New("the control group was not delegated: with systemd, set Delegate=memory and DelegateSubgroup=")
)

// A mount is where the groups of a hierarchy are.
type mount struct {
	version int
	root    string // group that the mount shows at its top
	at      string // path of the mount
}

// memoryMounts returns the hierarchies in a text like /proc/self/mountinfo that may limit
// memory.
func memoryMounts(mountinfo []byte) (found []mount) {
	for line := range bytes.Lines(mountinfo) {
		before, after, ok := bytes.Cut(line, []byte(" - "))
		f, kind := bytes.Fields(before), bytes.Fields(after)
		if !ok || len(f) < 5 || len(kind) < 3 {
			continue
		}
		m := mount{root: string(f[3]), at: string(f[4])}
		switch string(kind[0]) {
		case "cgroup2":
			m.version = 2
		case "cgroup":
			for option := range bytes.SplitSeq(kind[2], []byte(",")) {
				if string(option) == "memory" {
					m.version = 1
				}
			}
		}
		if m.version > 0 {
			found = append(found, m)
		}
	}
	return found
}

// ownGroup returns the group of a process in a hierarchy, from a text like /proc/self/cgroup.
func ownGroup(text []byte, version int) (string, bool) {
	for line := range bytes.Lines(text) {
		f := bytes.SplitN(bytes.TrimSuffix(line, []byte("\n")), []byte(":"), 3)
		if len(f) < 3 {
			continue
		}
		if version == 2 && len(f[1]) == 0 && string(f[0]) == "0" {
			return string(f[2]), true
		}
		for name := range bytes.SplitSeq(f[1], []byte(",")) {
			if version == 1 && string(name) == "memory" {
				return string(f[2]), true
			}
		}
	}
	return "", false
}

// folder returns the folder of a group, if the mount shows it.
func (m mount) folder(group string) (string, bool) {
	if m.root != "/" {
		rest, ok := bytes.CutPrefix([]byte(group), []byte(m.root))
		if !ok || len(rest) > 0 && rest[0] != '/' {
			return "", false
		}
		group = string(rest)
	}
	if group == "/" {
		group = ""
	}
	if bytes.Contains([]byte(group), []byte("/..")) { // outside the namespace of this process
		return "", false
	}
	return m.at + group, true
}

// counter returns the number after a name in a file of lines like "oom_kill 3".
func counter(text []byte, name string) int {
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte(name+" ")); ok {
			n := 0
			for _, c := range bytes.TrimSpace(rest) {
				n = min(n, 1<<30)*10 + int(c-'0')
			}
			return n
		}
	}
	return 0
}
