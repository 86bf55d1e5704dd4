package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
)

// marker is in every secret of the engine, and nowhere else.
const marker = "MARKED-SECRET"

// The keys of the engine, from its environment, its configuration and its secrets, are
// nowhere in the processes, the files and the environment of the workspace, and are never
// sent there.
func TestMatrixKeysStayWithTheEngine(t *testing.T) {
	m := newMatrix(t, matrixOptions{})
	config := filepath.Join(m.here, "home", "config.toml")
	text, err := os.ReadFile(config)
	must(t, err)
	must(t, os.WriteFile(config, append(text, "[providers.mine]\nbase_url = \"http://127.0.0.1:1\"\napi_key_env = \"MY_KEY\"\n"...), 0o600))
	e, err := m.start("", "OPENAI_API_KEY="+marker+"-1", "ANTHROPIC_API_KEY="+marker+"-2", "MY_KEY="+marker+"-3", "OF_THE_ENGINE="+marker+"-4")
	must(t, err)
	k := m.talk(e, "box")
	k.send("Run `env >environment; cat /proc/self/environ; echo began >>began; while [ ! -e go ]; do sleep 0.02; done` in the background")
	k.await(event.SessionIdle, "")
	k.send(`Use create with {"path":"` + m.src("made") + `","file_text":"text"}`)
	k.await(event.SessionIdle, "")
	if !m.wire.hears("began >>began") {
		t.Error("the wire was not heard")
	}
	if m.wire.hears(marker) {
		t.Error("a secret was sent to the workspace")
	}
	m.searchFiles(m.there)
	m.searchProcesses()
	must(t, os.WriteFile(m.src("go"), nil, 0o644))
	k.await(event.SystemNotification, "")
	e.stop()
	m.audit()
}

// searchFiles looks for the marker in all files of a folder.
func (m *matrix) searchFiles(dir string) {
	m.t.Helper()
	must(m.t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(marker)) {
			m.t.Errorf("a secret is in %s", path)
		}
		return err
	}))
}

// searchProcesses looks for the marker in the environments, the arguments and the memory of
// the workspace's processes.
func (m *matrix) searchProcesses() {
	m.t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	must(m.t, err)
	searched := 0
	for _, dir := range all {
		environment, _ := os.ReadFile(filepath.Join(dir, "environ")) // it may be another user's, or have ended
		if !bytes.Contains(environment, []byte("PLACE=there")) || !bytes.Contains(environment, []byte("HOME="+m.there)) {
			continue
		}
		searched++
		arguments, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if bytes.Contains(environment, []byte(marker)) || bytes.Contains(arguments, []byte(marker)) {
			m.t.Errorf("a secret is in the environment or the arguments of the process %s", filepath.Base(dir))
		}
		if searchMemory(dir) {
			m.t.Errorf("a secret is in the memory of the process %s", filepath.Base(dir))
		}
	}
	if searched < 2 { // the workspace and the command
		m.t.Errorf("%d processes of the workspace were found", searched)
	}
}

// searchMemory reports whether the marker is in what a process has written to its memory. The
// test program has it in its constants, which are read-only.
func searchMemory(dir string) bool {
	maps, _ := os.ReadFile(filepath.Join(dir, "maps")) // it may have ended
	memory, err := os.Open(filepath.Join(dir, "mem"))
	if err != nil {
		return false
	}
	defer memory.Close()
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); n != 3 || !strings.HasPrefix(mode, "rw") || to-from > 1<<28 {
			continue
		}
		part := make([]byte, to-from)
		if n, _ := memory.ReadAt(part, from); bytes.Contains(part[:n], []byte(marker+"-")) {
			return true
		}
	}
	return false
}
