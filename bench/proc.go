package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// memory returns the sum of fields of a file in a process's folder in /proc, in bytes.
func memory(pid int, file string, fields ...string) (n int64, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return 0, err
	}
	found := 0
	for line := range bytes.Lines(data) {
		name, rest, _ := strings.Cut(string(line), ":")
		if !slices.Contains(fields, name) {
			continue
		}
		kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		if err != nil {
			return 0, err
		}
		n += kb << 10
		found++
	}
	if found < len(fields) {
		return 0, fmt.Errorf("not all of %v are in %s", fields, file)
	}
	return n, nil
}

// parent returns the process that started another.
func parent(pid int) (int, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(data), "PPid:")
	line, _, _ := strings.Cut(rest, "\n")
	return strconv.Atoi(strings.TrimSpace(line))
}

// children returns the processes that a process has started and not waited for.
func children(pid int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is valid
	for _, list := range lists {
		data, _ := os.ReadFile(list) // a thread that has ended has no file
		for field := range bytes.FieldsSeq(data) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}
