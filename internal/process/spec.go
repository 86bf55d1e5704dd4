package process

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/process/keeper"
	"github.com/abide-run/abide/internal/process/output"
	"github.com/abide-run/abide/internal/process/record"
	"github.com/abide-run/abide/internal/process/sandbox"
)

const (
	maxName     = 4096        // maximum bytes of a key or an owner
	maxArgument = 128<<10 - 1 // maximum bytes of one argument on Linux
)

// idOf returns the ID of a process. It is a hash, so no key can name another file.
func idOf(owner Owner, key string) ID {
	sum := sha256.Sum256([]byte(string(owner) + "\x00" + key))
	return ID("p" + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:10])))
}

// IDOf returns the ID of the process that an owner has started with a key, or would have.
func IDOf(owner Owner, key string) ID { return idOf(owner, key) }

func invalid(field, format string, args ...any) error {
	return fmt.Errorf("%w %s: %s", ErrInvalid, field, fmt.Sprintf(format, args...))
}

// complete checks a spec and fills in the defaults of the options.
func (o *Options) complete(s Spec) (Spec, error) {
	if s.Owner == "" {
		return s, ErrNoOwner
	}
	for _, check := range []func(*Options, *Spec) error{checkNames, checkCommand, checkDirAndEnv, checkLimits} {
		if err := check(o, &s); err != nil {
			return s, err
		}
	}
	return s, nil
}

func checkNames(_ *Options, s *Spec) error {
	switch {
	case s.Key == "":
		return invalid("key", "it is missing")
	case len(s.Key) > maxName:
		return invalid("key", "it has %d bytes, and %d is the most", len(s.Key), maxName)
	case len(s.Owner) > maxName:
		return invalid("owner", "it has %d bytes, and %d is the most", len(s.Owner), maxName)
	case strings.Contains(string(s.Owner), "\x00"):
		return invalid("owner", "it contains a NUL byte")
	}
	return nil
}

func checkCommand(o *Options, s *Spec) error {
	switch {
	case s.Command != "" && len(s.Args) > 0:
		return invalid("command", "there are arguments too: give either a command or arguments")
	case strings.TrimSpace(s.Command) == "" && len(s.Args) == 0:
		return invalid("command", "it is empty")
	case len(s.Args) == 0:
		s.Args = []string{o.Shell, "-c", "--", s.Command} // a command may begin with -
	case s.Args[0] == "":
		return invalid("command", "the program is missing")
	}
	for _, a := range s.Args {
		if strings.Contains(a, "\x00") {
			return invalid("command", "it contains a NUL byte")
		}
		if len(a) > maxArgument {
			return invalid("command", "it has %d bytes, and %d is the most: put it into a file and run that", len(a), maxArgument)
		}
	}
	return nil
}

func checkDirAndEnv(o *Options, s *Spec) error {
	switch {
	case s.Dir == "":
		return invalid("working directory", "it is missing")
	case strings.Contains(s.Dir, "\x00"):
		return invalid("working directory", "it contains a NUL byte")
	case !filepath.IsAbs(s.Dir):
		return invalid("working directory", "%s is not an absolute path", s.Dir)
	}
	if s.Env == nil {
		s.Env = o.Env
	}
	for _, v := range s.Env {
		if strings.Contains(v, "\x00") || strings.IndexByte(v, '=') <= 0 {
			return invalid("environment", "%.40q is not NAME=value", v)
		}
	}
	if s.TTY != nil {
		s.TTY = &Size{Rows: cmp.Or(s.TTY.Rows, 24), Cols: cmp.Or(s.TTY.Cols, 80)}
	}
	return checkProfile(s)
}

func checkProfile(s *Spec) error {
	switch {
	case s.Profile != sandbox.None && s.Profile != sandbox.Workspace && s.Profile != sandbox.Sealed:
		return invalid("profile", "%q is neither %q nor %q", s.Profile, sandbox.Workspace, sandbox.Sealed)
	case s.Root != "" && !filepath.IsAbs(s.Root):
		return invalid("root", "%s is not an absolute path", s.Root)
	}
	return nil
}

func checkLimits(o *Options, s *Spec) error {
	s.Class = cmp.Or(s.Class, OneShot)
	switch {
	case s.Class != OneShot && s.Class != Service:
		return invalid("class", "%q is neither %q nor %q", s.Class, OneShot, Service)
	case s.Limits.Time < 0 || s.Limits.Memory < 0 || s.Limits.Processes < 0:
		return invalid("limits", "they cannot be negative")
	case s.Pipe && s.TTY != nil:
		return invalid("pipe", "a terminal is none")
	case s.Quota < 0 || s.Quota > 0 && s.Quota < output.MinQuota:
		return invalid("quota", "the minimum is %d bytes", output.MinQuota)
	}
	s.Limits.Time = cmp.Or(s.Limits.Time, o.Limits.Time)
	s.Limits.Memory = cmp.Or(s.Limits.Memory, o.Limits.Memory)
	s.Limits.Processes = cmp.Or(s.Limits.Processes, o.Limits.Processes)
	s.Quota = cmp.Or(s.Quota, o.Quota)
	return nil
}

// sameCommand reports whether two specs describe the same start.
func sameCommand(a, b Spec) bool {
	return a.Key == b.Key && a.Owner == b.Owner && a.Command == b.Command && (a.Command != "" || slices.Equal(a.Args, b.Args)) &&
		a.Dir == b.Dir && a.Class == b.Class && a.Stdin == b.Stdin && (a.TTY != nil) == (b.TTY != nil)
}

// A startInfo is the spec of a process with the circumstances of its start, as both
// are on disk.
type startInfo struct {
	spec   Spec // without the environment, which may hold secrets; with the profile that is applied
	time   time.Time
	boot   string // boot of the machine at the start: what was not synced before a reboot may be lost
	marker string // value of the environment variable that marks the processes of this command
}

func (i startInfo) record() record.Record {
	s := i.spec
	r := record.New("spec").With("key", s.Key).With("owner", string(s.Owner)).With("command", s.Command).
		WithAll("arg", s.Args).With("dir", s.Dir).With("title", s.Title).With("class", string(s.Class)).
		WithFlag("stdin", s.Stdin).WithFlag("pipe", s.Pipe).WithFlag("tty", s.TTY != nil).WithInt("quota", s.Quota)
	if s.Profile != sandbox.None {
		r = r.With("profile", string(s.Profile))
	}
	return r.WithInt("time", i.time.UnixNano()).With("boot", i.boot).With("marker", i.marker)
}

func parseStartInfo(r record.Record) (startInfo, error) {
	b := startInfo{
		spec: Spec{
			Key: r.Get("key"), Owner: Owner(r.Get("owner")), Command: r.Get("command"), Args: r.All("arg"), Dir: r.Get("dir"),
			Title: r.Get("title"), Class: Class(r.Get("class")), Stdin: r.Flag("stdin"), Pipe: r.Flag("pipe"), Quota: r.Int("quota"),
			Profile: sandbox.Profile(r.Get("profile")),
		},
		time: time.Unix(0, r.Int("time")), boot: r.Get("boot"), marker: r.Get("marker"),
	}
	if r.Flag("tty") {
		b.spec.TTY = &Size{}
	}
	if r.Kind != "spec" || b.spec.Key == "" || b.spec.Owner == "" || len(b.spec.Args) == 0 || b.marker == "" {
		return startInfo{}, fmt.Errorf("%w spec", ErrInvalid)
	}
	return b, nil
}

// launch returns the launch record of a keeper: the spec, and what is not on disk.
func (o *Options) launch(b startInfo, s Spec, c sandbox.Confinement) record.Record {
	env := slices.DeleteFunc(slices.Clone(c.Env), func(v string) bool {
		return strings.HasPrefix(v, "PWD=") || strings.HasPrefix(v, keeper.Marker+"=")
	})
	env = append(env, "PWD="+s.Dir, keeper.Marker+"="+b.marker)
	r := record.New(keeper.Launch).WithAll("arg", s.Args).WithAll("env", env).With("dir", s.Dir).
		WithFlag("stdin", s.Stdin).WithFlag("pipe", s.Pipe).WithInt("quota", s.Quota).WithInt("nice", int64(o.Nice)).WithInt("oom", int64(o.OOMScore)).
		WithInt("grace", int64(o.Grace)).WithInt("limit_time", int64(s.Limits.Time)).
		WithInt("limit_memory", s.Limits.Memory).WithInt("limit_processes", int64(s.Limits.Processes))
	if s.TTY != nil {
		r = r.WithFlag("tty", true).WithInt("quiet", int64(o.Quiet)).WithInt("rows", int64(s.TTY.Rows)).WithInt("cols", int64(s.TTY.Cols))
	}
	if c.Profile != sandbox.None {
		r = r.WithFlag("confined", true).WithFlag("landlock", c.Rules != nil).WithFlag("offline", c.Offline)
	}
	if c.Profile == sandbox.Sealed {
		r = r.WithFlag("sealed", true).With("root", c.Root).WithAll("empty", c.Empty).WithAll("hidden", c.Hidden)
	}
	if o.fault != "" {
		r = r.With("fault", o.fault)
	}
	return r
}
