// Package identity tells processes apart for good. A process number alone does not:
// the system gives it to another process later.
//
// No function of this package takes a process for another one that had the same
// number.
package identity

import (
	"errors"
	"strconv"
)

// A Process identifies one process. No other process ever has the same values.
type Process struct {
	PID       int
	Start     uint64 // clock ticks between the boot of the machine and the start of the process
	Boot      string // ID of the boot of the machine
	Namespace string // PID namespace, in which PID has its meaning
}

// A Stat is what /proc says about a process at one moment.
type Stat struct {
	PID     int
	State   byte // 'Z' for a process that ended and was not waited for
	Parent  int
	Group   int
	Session int
	Start   uint64
	Pages   int64 // number of resident pages
}

var errStat = errors.New("not the line of a process")

// parseStat parses the line of /proc/PID/stat. The process chooses the name in it,
// which may contain anything, also text that looks like the rest of a line.
func parseStat(line string) (Stat, error) {
	open, shut := index(line, '('), lastIndex(line, ')')
	if open < 2 || shut < open {
		return Stat{}, errStat
	}
	f := fields(line[shut+1:])
	if len(f) < 22 || len(f[0]) != 1 {
		return Stat{}, errStat
	}
	s := Stat{State: f[0][0]}
	var ok [6]bool
	s.PID, ok[0] = number(line[:open-1])
	s.Parent, ok[1] = number(f[1])
	s.Group, ok[2] = number(f[2])
	s.Session, ok[3] = number(f[3])
	start, okStart := number(f[19])
	pages, okPages := number(f[21])
	s.Start, ok[4], s.Pages, ok[5] = uint64(start), okStart, int64(pages), okPages
	if ok != [6]bool{true, true, true, true, true, true} || s.PID == 0 {
		return Stat{}, errStat
	}
	return s, nil
}

// number parses a number that is not negative.
func number(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0
}

func index(text string, c byte) int {
	for i := range len(text) {
		if text[i] == c {
			return i
		}
	}
	return -1
}

func lastIndex(text string, c byte) int {
	for i := len(text) - 1; i >= 0; i-- {
		if text[i] == c {
			return i
		}
	}
	return -1
}

// fields splits a text at its spaces.
func fields(text string) (all []string) {
	for text != "" {
		end := index(text, ' ')
		if end < 0 {
			end = len(text)
		}
		if end > 0 {
			all = append(all, text[:end])
		}
		text = text[min(end+1, len(text)):]
	}
	return all
}

// descendants returns the descendants of the process root, parents first.
func descendants(all []Stat, root int) []Stat {
	children := map[int][]Stat{}
	for _, s := range all {
		children[s.Parent] = append(children[s.Parent], s)
	}
	var below []Stat
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		below = append(below, children[queue[0]]...)
		for _, s := range children[queue[0]] {
			queue = append(queue, s.PID)
		}
		delete(children, queue[0])
	}
	return below
}

// related returns the running processes that are among the first, and all descendants of
// those.
func related(all []Stat, first func(Stat) bool) []Stat {
	seen := map[int]bool{}
	var found []Stat
	add := func(s Stat) {
		if s.State != 'Z' && !seen[s.PID] {
			seen[s.PID] = true
			found = append(found, s)
		}
	}
	for _, s := range all {
		if s.State == 'Z' || !first(s) {
			continue
		}
		add(s)
		for _, child := range descendants(all, s.PID) {
			add(child)
		}
	}
	return found
}
