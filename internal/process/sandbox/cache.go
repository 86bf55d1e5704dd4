package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// cacheVariables are the variables that say where programs keep caches, and the folder of
// each in that of the working directory. The caches of the user hold code that people run
// later, so commands have their own.
var cacheVariables = []struct{ name, folder string }{
	{"XDG_CACHE_HOME", "."}, {"GOCACHE", "go-build"}, {"npm_config_cache", "npm"}, {"PIP_CACHE_DIR", "pip"},
}

// ownCaches are the entries of a folder for caches that commands do not share with the
// user: their programs write to them all the time. Others, such as browsers that were
// downloaded, can be read.
var ownCaches = []string{"abide", "go-build", "npm", "node", "node-gyp", "pip", "pip-tools", "pnpm", "pre-commit", "uv", "yarn"}

// withCache returns the environment of a command with a folder for its caches, and lets it
// write there. If the folder cannot be made, the environment stays as it is.
func (s *Sandbox) withCache(p *plan, r Request) []string {
	if s.o.Cache == "" {
		return r.Env
	}
	sum := sha256.Sum256([]byte(r.Root))
	dir := filepath.Join(s.o.Cache, hex.EncodeToString(sum[:8]))
	if !leadsThrough(dir, slices.Concat(p.write, p.optional)) { // otherwise commands can make it, and put links in its place
		if err := makeCache(dir, userCache(r.Env, s.o.Home)); err != nil {
			s.warn("commands have no folder for caches: " + err.Error())
			return r.Env
		}
		var err error
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return r.Env
		}
		p.optional = append(p.optional, dir)
	}
	env := slices.DeleteFunc(slices.Clone(r.Env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return isCacheVariable(name)
	})
	for _, v := range cacheVariables {
		env = append(env, v.name+"="+filepath.Join(dir, v.folder))
	}
	return env
}

// maxLinks is the number of links that a path may have.
const maxLinks = 40

// leadsThrough reports whether a path, or what its links lead to, is in one of the folders
// at any of its parts. A path with too many links counts as one that is.
func leadsThrough(path string, folders []string) bool {
	at, rest := "/", strings.Split(filepath.Clean(path), "/")
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		if slices.ContainsFunc(folders, func(f string) bool { return isBelow(next, f) }) {
			return true
		}
		target, err := os.Readlink(next)
		if err != nil {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return true
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return false
}

func isCacheVariable(name string) bool {
	return slices.ContainsFunc(cacheVariables, func(v struct{ name, folder string }) bool { return v.name == name })
}

// userCache returns the folder in which the user has caches; "" if that is unknown.
func userCache(env []string, home string) string {
	if dir := variable(env, "XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	if home == "" {
		return ""
	}
	return filepath.Join(home, ".cache")
}

// makeCache makes a folder for caches, with links to those of the user that can be shared.
func makeCache(dir, user string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	made, err := os.MkdirTemp(filepath.Dir(dir), "new.")
	if err != nil {
		return err
	}
	shared, _ := os.ReadDir(user) // nothing is shared if there is none
	for _, e := range shared {
		if user != "" && !slices.Contains(ownCaches, e.Name()) {
			_ = os.Symlink(filepath.Join(user, e.Name()), filepath.Join(made, e.Name()))
		}
	}
	if err := os.Rename(made, dir); err != nil {
		os.RemoveAll(made)
		if _, there := os.Stat(dir); there != nil {
			return err
		}
	}
	return nil
}
