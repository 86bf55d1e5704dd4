package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process/sandbox"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/bash"
)

// openSandbox returns the sandbox of the commands on this machine. The function notice gets
// what people have to know of it; it may be nil.
func (t *toolbox) openSandbox(c Commands, notice func(string)) *sandbox.Sandbox {
	o := sandbox.Options{
		Mode: c.Sandbox, Writable: c.Writable, Offline: c.Offline, Cache: c.Cache,
		Hidden: append(secretsOfOthers(), t.folder.Dir()),
		Warn: func(text string) {
			t.log.Warn(text)
			if notice != nil {
				notice(text)
			}
		},
	}
	if home, err := os.UserHomeDir(); err == nil {
		if o.Home, err = filepath.EvalSymlinks(home); err != nil {
			o.Home = home
		}
	}
	return sandbox.Open(o)
}

// secretFiles are files of the system that only root can read, and secretNames are names in
// the homes of users that other users cannot read. Commands of root could read all of them.
var (
	secretFiles = []string{"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh/ssh_host_*_key", "/etc/NetworkManager/system-connections"}
	secretNames = []string{".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials", ".config/gcloud", ".config/gh", ".password-store"}
)

// secretsOfOthers returns the secrets of the system and of other users that this program
// could read: none unless it runs as root.
func secretsOfOthers() (list []string) {
	if os.Geteuid() != 0 {
		return nil
	}
	own, _ := os.UserHomeDir()
	patterns := secretFiles
	for _, homes := range []string{"/root", "/home/*"} {
		for _, name := range secretNames {
			patterns = append(patterns, filepath.Join(homes, name))
		}
	}
	for _, p := range patterns {
		found, _ := filepath.Glob(p) // the patterns are valid
		for _, path := range found {
			if own == "" || filepath.Dir(path) != own && filepath.Dir(filepath.Dir(path)) != own {
				list = append(list, path)
			}
		}
	}
	return list
}

// rootsFile is the name of the file with the working directories of a session, in its own
// folder: where each led to when the first command was started in it. A command can put a
// link in the place of a folder that it may change; what the link leads to would be
// writable for the next one.
const rootsFile = "roots.json"

// place returns what a command of a call may change: the working directory of its session,
// and the session's own files.
func (t *toolbox) place(ctx context.Context, call tool.Call) (bash.Place, error) {
	if t.workspaces.isRemote(ctx, call.Session) {
		return bash.Place{}, nil
	}
	real, err := filepath.EvalSymlinks(call.Dir)
	if err != nil {
		return bash.Place{}, nil // the start says what is wrong with the folder
	}
	dir, err := t.makeFolder(call.Session)
	if err != nil {
		return bash.Place{}, err
	}
	if err := t.pin(call.Session, dir, call.Dir, real); err != nil {
		return bash.Place{}, err
	}
	return bash.Place{Root: real, Writable: []string{filepath.Join(dir, "files")}}, nil
}

// pin records where a working directory of a session leads to, and fails if it led
// elsewhere before.
func (t *toolbox) pin(id event.SessionID, folder, dir, real string) error {
	key := string(id) + "\x00" + dir + "\x00" + real
	if _, known := t.pinned.Load(key); known {
		return nil
	}
	t.pinning.Lock()
	defer t.pinning.Unlock()
	roots, file := map[string]string{}, filepath.Join(folder, rootsFile)
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &roots)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read where the working directories of the session led: %w", err)
	}
	switch was, known := roots[dir]; {
	case known && was != real:
		return fmt.Errorf("the working directory %s leads to %s now, and led to %s when the session began: no command is started in it; start a new session if that is right", dir, real, was)
	case !known:
		roots[dir] = real
		if data, err = json.Marshal(roots); err == nil {
			err = writeSynced(file, data)
		}
		if err != nil {
			return fmt.Errorf("record where the working directory of the session leads: %w", err)
		}
	}
	t.pinned.Store(key, true)
	return nil
}
