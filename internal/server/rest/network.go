package rest

import (
	"path"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/event"
)

// online has the programs that are known to use a network, with the subcommands that do; all
// of them do if there is none. A person who approves a command is told so. What is missing
// here is only not pointed out, so the table need not be complete.
var online = map[string]string{
	"curl": "", "wget": "", "aria2c": "", "ssh": "", "scp": "", "sftp": "", "mosh": "", "rsync": "", "nc": "", "ncat": "", "netcat": "", "socat": "", "telnet": "", "ftp": "",
	"ping": "", "dig": "", "host": "", "nslookup": "", "traceroute": "", "whois": "",
	"gh": "", "glab": "", "aws": "", "gcloud": "", "az": "", "kubectl": "", "helm": "", "flyctl": "", "heroku": "", "vercel": "", "netlify": "", "terraform": "", "pulumi": "", "ansible-playbook": "",
	"npx": "", "bunx": "", "pipx": "", "uvx": "",
	"git":  "clone fetch pull push ls-remote submodule",
	"npm":  "install i ci add update up publish exec x create init audit outdated view login",
	"pnpm": "install i add update up publish exec dlx create audit outdated", "bun": "install i add update publish x create", "yarn": "install add up upgrade publish dlx create npm",
	"pip": "install download search", "pip3": "install download search", "uv": "add sync lock pip tool run", "poetry": "install add update lock publish", "conda": "install update create search",
	"go": "get install mod", "cargo": "install add fetch update publish search", "gem": "install update push", "bundle": "install update", "composer": "install require update", "mvn": "", "gradle": "",
	"docker": "pull push login build run compose search", "podman": "pull push login build run compose search",
	"apt": "install update upgrade full-upgrade", "apt-get": "install update upgrade dist-upgrade", "dnf": "install update upgrade", "yum": "install update upgrade", "apk": "add update upgrade", "pacman": "", "brew": "install update upgrade tap", "snap": "install refresh",
}

// reachesOut reports whether one of the commands is known to use a network.
func reachesOut(commands []event.CommandReading) bool {
	return slices.ContainsFunc(commands, func(c event.CommandReading) bool {
		words := c.Words
		for len(words) > 0 && (words[0] == "sudo" || words[0] == "env" || words[0] == "nohup" || words[0] == "time" || strings.Contains(words[0], "=")) {
			words = words[1:]
		}
		if len(words) == 0 {
			return false
		}
		subcommands, known := online[path.Base(words[0])]
		if !known || subcommands == "" {
			return known
		}
		i := slices.IndexFunc(words[1:], func(w string) bool { return !strings.HasPrefix(w, "-") })
		if i < 0 {
			return path.Base(words[0]) == "yarn" // alone, it installs
		}
		candidates := words[1+i : 2+i]
		if i > 0 { // the first may be the value of an option
			candidates = words[1+i : min(len(words), 3+i)]
		}
		return slices.ContainsFunc(candidates, func(w string) bool { return slices.Contains(strings.Fields(subcommands), w) })
	})
}
