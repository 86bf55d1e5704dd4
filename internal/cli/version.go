package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
)

// A build is the version of the program, in JSON output.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Changed  bool   `json:"modified,omitempty"` // true if the source had uncommitted changes
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	Protocol int    `json:"protocolVersion"`
}

func (a *app) build() build {
	b := build{
		Version: a.opts.Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Protocol: api.ProtocolVersion,
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.modified":
				b.Changed = s.Value == "true"
			}
		}
	}
	return b
}

func (a *app) versionCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  abide version --json",
		Args:    arguments(0, 0, "no arguments"),
	}
	asJSON := jsonFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		b := a.build()
		if *asJSON {
			return a.out.json(b)
		}
		a.out.printf("%s\n", b)
		return nil
	}
	return c
}

// String returns the version as people read it.
func (b build) String() string {
	return fmt.Sprintf("abide %s (%s, %s/%s, protocol %d)", b.Version, b.Go, b.OS, b.Arch, b.Protocol)
}
