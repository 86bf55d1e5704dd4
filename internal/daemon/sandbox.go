package daemon

import (
	"os"
	"path/filepath"

	"github.com/abide-run/abide/internal/process/sandbox"
)

// openSandbox returns the sandbox of the commands on this machine. The function notice gets
// what people have to know of it; it may be nil.
func (t *toolbox) openSandbox(c Commands, notice func(string)) *sandbox.Sandbox {
	return OpenSandbox(c, append([]string{t.folder.Dir()}, c.Hidden...), func(text string) {
		t.log.Warn(text)
		if notice != nil {
			notice(text)
		}
	})
}

// secretFilesOf returns the files of the log and of its key: they can be outside the data
// folder.
func secretFilesOf(c Config, dir string) []string {
	list := []string{KeyFile(c.KeyFile, dir)}
	if path, err := StoreFile(c.Store, dir); err == nil { // otherwise it is in no file
		for _, file := range []string{path, path + "-search"} { // the log, and its index for searches
			list = append(list, file, file+"-wal", file+"-shm", file+"-journal")
		}
	}
	return list
}

// OpenSandbox returns a sandbox as the settings of commands say. Commands cannot read the
// hidden files and folders. The function warn gets what is not held although it should be.
func OpenSandbox(c Commands, hidden []string, warn func(string)) *sandbox.Sandbox {
	o := sandbox.Options{
		Mode: c.Sandbox, Writable: c.Writable, Offline: c.Offline, Cache: c.Cache,
		Hidden: append(secretsOfOthers(), hidden...), Warn: warn,
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
