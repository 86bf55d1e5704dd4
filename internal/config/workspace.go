package config

import (
	"path/filepath"
	"strings"

	"github.com/abide-run/abide/internal/event"
)

// Workspace sets in which workspace new sessions work.
type Workspace struct {
	Default  string   `toml:"default" doc:"Workspace of new sessions: a name of [workspaces], unix:PATH or tcp:HOST:PORT; local, or empty, is the machine of the engine."`
	Patience Duration `toml:"patience" doc:"Time that a call waits for a workspace that cannot be reached before it fails, like 30s."`
}

// workspaceDefault is the key of Workspace.Default.
const workspaceDefault = "workspace.default"

// choosesAddress reports whether a key chooses a workspace by its address. No project may do
// that: the token for such workspaces would be sent to it.
func choosesAddress(values map[string]any, key path) bool {
	if key.String() != workspaceDefault {
		return false
	}
	choice, _ := values[key[0]].(map[string]any)[key[1]].(string)
	return strings.Contains(choice, ":")
}

// A Place is a workspace that "abide workspace" serves.
type Place struct {
	Address    string `toml:"address" doc:"Address of the workspace: unix:PATH or tcp:HOST:PORT. TCP to another machine always uses TLS."`
	CA         string `toml:"tls_ca" doc:"File with the certificates that vouch for the workspace, relative to this file; those of the system if empty. If it is set, TLS is used on this machine too."`
	ServerName string `toml:"tls_server_name" doc:"Name that the certificate of the workspace must have; the host of the address if empty."`
	TokenFile  string `toml:"token_file" doc:"File with the token of the workspace, relative to this file."`
	TokenEnv   string `toml:"token_env" doc:"Environment variable that holds the token of the workspace."`
	Dir        string `toml:"dir" doc:"Working directory of sessions there; the folder that is served if empty."`
}

func (p Place) check(name string) (list []mistake) {
	at := path{"workspaces", name}
	if name == event.LocalWorkspace || name == "" || strings.Contains(name, ":") {
		list = append(list, wrong(at, "it cannot be the name of a workspace: %s is the machine of the engine, and a name with a colon is an address", event.LocalWorkspace))
	}
	kind, rest, _ := strings.Cut(p.Address, ":")
	if p.Address != "" && (kind != "unix" && kind != "tcp" || rest == "") {
		list = append(list, wrong(at.with("address"), "%q is not the address of a workspace; use unix:PATH or tcp:HOST:PORT", p.Address))
	}
	if p.TokenFile != "" && p.TokenEnv != "" {
		list = append(list, wrong(at.with("token_env"), "there is a token_file too; use one of them"))
	}
	if p.Dir != "" && !filepath.IsAbs(p.Dir) {
		list = append(list, wrong(at.with("dir"), "%q is not an absolute path", p.Dir))
	}
	return list
}

// anchorPlaces makes the paths of workspaces absolute, except for their folders, which
// are there and not here.
func anchorPlaces(values map[string]any, dir string) {
	places, _ := values["workspaces"].(map[string]any)
	for _, v := range places {
		place, ok := v.(map[string]any)
		if !ok {
			continue
		}
		anchorKey(place, "tls_ca", dir)
		anchorKey(place, "token_file", dir)
		if address, ok := place["address"].(string); ok {
			if socket, unix := strings.CutPrefix(address, "unix:"); unix {
				at := map[string]any{"path": socket}
				anchorKey(at, "path", dir)
				place["address"] = "unix:" + at["path"].(string)
			}
		}
	}
}
