package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
)

// marker is in every secret of the engine, and nowhere else.
const marker = "MARKED-SECRET"

// The keys of the engine, from its environment, its configuration and its clients, are
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
	k := m.talk(e, "box", func(p *api.OpenParams) {
		p.Providers = []api.Provider{{Name: "own", BaseURL: "http://127.0.0.1:1", APIKey: marker + "-5", Headers: map[string]string{"X-Key": marker + "-6"}}}
		p.Models = []api.ProviderModel{{ID: "m", Provider: "own"}}
		p.Abide.Env = []string{"PATH=" + os.Getenv("PATH"), "OF_THE_CLIENT=" + marker + "-7"}
	})
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
	if found := m.searchFiles(m.there); len(found) > 0 {
		t.Errorf("a secret is in %q", found)
	}
	found, searched := m.searchProcesses()
	if len(found) > 0 || searched < 2 { // the workspace and the command
		t.Errorf("a secret is in %q, of %d processes", found, searched)
	}
	m.checkSearch()
	must(t, os.WriteFile(m.src("go"), nil, 0o644))
	k.await(event.SystemNotification, "")
	e.stop()
	m.audit()
}

// checkSearch puts a secret into a file and into a process of the workspace, and expects both
// to be found.
func (m *matrix) checkSearch() {
	m.t.Helper()
	leak := filepath.Join(m.there, "leak")
	must(m.t, os.WriteFile(leak, []byte("a "+marker+"-8"), 0o600))
	if found := m.searchFiles(m.there); !slices.Equal(found, []string{leak}) {
		m.t.Errorf("searching files finds %q", found)
	}
	must(m.t, os.Remove(leak))
	p := exec.Command("sleep", "1000")
	p.Env = []string{"PLACE=there", "HOME=" + m.there, "LEAK=" + marker + "-9"}
	must(m.t, p.Start())
	found, _ := m.searchProcesses()
	must(m.t, p.Process.Kill())
	_ = p.Wait() // it was killed
	if !slices.Contains(found, fmt.Sprintf("the environment of %d", p.Process.Pid)) {
		m.t.Errorf("searching processes finds %q", found)
	}
}

// searchFiles returns the files of a folder that have the marker.
func (m *matrix) searchFiles(dir string) (found []string) {
	m.t.Helper()
	must(m.t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(marker)) {
			found = append(found, path)
		}
		return err
	}))
	return found
}

// searchProcesses looks for the marker in the environments, the arguments and the memory of
// the workspace's processes.
func (m *matrix) searchProcesses() (found []string, searched int) {
	m.t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	must(m.t, err)
	for _, dir := range all {
		environment, _ := os.ReadFile(filepath.Join(dir, "environ")) // it may be another user's, or have ended
		if !bytes.Contains(environment, []byte("PLACE=there")) || !bytes.Contains(environment, []byte("HOME="+m.there)) {
			continue
		}
		searched++
		arguments, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		for where, has := range map[string]bool{
			"environment": bytes.Contains(environment, []byte(marker)),
			"arguments":   bytes.Contains(arguments, []byte(marker)),
			"memory":      searchMemory(dir),
		} {
			if has {
				found = append(found, "the "+where+" of "+filepath.Base(dir))
			}
		}
	}
	return found, searched
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
