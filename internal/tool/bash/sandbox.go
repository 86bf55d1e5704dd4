package bash

import (
	"bytes"
	"strings"

	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/process/sandbox"
	"github.com/abide-run/abide/internal/tool"
)

// unsandboxed is the parameter with which a model asks for a run without the sandbox.
const unsandboxed = `"unsandboxed":{"type":"boolean","description":"Run the command without the sandbox. A person is asked each time, so use it only if the sandbox has kept the command from something that it has to do."},`

// withSandbox adds the parameter for a run without the sandbox to a tool, if there is a
// sandbox.
func (c *Commands) withSandbox(s tool.Spec) tool.Spec {
	if c.Confined {
		s.Parameters = bytes.Replace(s.Parameters, []byte(`"properties":{`), []byte(`"properties":{`+unsandboxed), 1)
	}
	return s
}

// Texts that programs print when they were refused something.
var (
	refusedTexts = []string{
		"permission denied", "operation not permitted", "read-only file system", "eacces", "eperm", "erofs",
		"no new privileges", "invalid cross-device link", "not permitted by",
	}
	offlineTexts = []string{
		"network is unreachable", "name resolution", "could not resolve", "no such host", "enetunreach", "eai_again", "enotfound",
		"network unreachable", "connection refused", "couldn't connect to server", "econnrefused",
	}
)

// refusal returns a sentence for the model if a command failed, and its output looks as if
// the sandbox was the reason; otherwise "".
func (r *runner) refusal(p process.Info, output string) string {
	if p.Profile == sandbox.None || p.Exit == nil || p.Exit.Code == 0 {
		return ""
	}
	low := strings.ToLower(output)
	has := func(texts []string) bool {
		for _, t := range texts {
			if strings.Contains(low, t) {
				return true
			}
		}
		return false
	}
	offline := r.Offline || p.Profile == sandbox.Sealed
	switch {
	case offline && has(offlineTexts):
		return "The sandbox may be the reason: commands have no network there." + r.wayOut()
	case p.Profile == sandbox.Sealed && has(refusedTexts):
		return "The sandbox may be the reason: commands of this session are sealed, and write nothing but the working directory and /tmp." + r.wayOut()
	case has(refusedTexts):
		return "The sandbox may be the reason: commands write only in the working directory, its repository, temporary folders and their own caches, and cannot signal other commands (stop_bash can) or gain rights." + r.wayOut()
	}
	return ""
}

func (r *runner) wayOut() string {
	if !r.Confined {
		return ""
	}
	return " If it has to do more, call it again with unsandboxed, and a person is asked."
}
