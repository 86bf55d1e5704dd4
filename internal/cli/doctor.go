package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/config"
	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/daemon/folder"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/seal"
)

func (a *app) doctorCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation and suggest fixes",
		Long: `Check the configuration, the data folder and its disk, the log, its secrets, the
shell, the API keys, the model endpoints, the clock, the workspaces and the MCP servers.
Nothing is changed, except that a missing data folder is created. The exit code is 1 if
something does not work.

STATE is "ok", "look" for something that may cause problems later, or "bad" for
something that does not work.`,
		Example: "  abide doctor\n  abide doctor --json | jq '.[] | select(.state != \"ok\")'",
		Args:    arguments(0, 0, "no argument"),
	}
	asJSON := jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		findings := a.examine(cmd.Context())
		if *asJSON {
			if err := a.out.json(findings); err != nil {
				return err
			}
		} else if err := a.printFindings(findings); err != nil {
			return err
		}
		if slices.ContainsFunc(findings, func(f finding) bool { return f.State == bad }) {
			return &exitError{code: exitFailed}
		}
		return nil
	}
	return c
}

// A finding is the result of one check.
type finding struct {
	What  string `json:"what"`
	State string `json:"state"`
	Text  string `json:"text"`
}

// The states of a finding.
const (
	good  = "ok"
	doubt = "look"
	bad   = "bad"
)

// examine runs all checks. A check that depends on something that does not work is left
// out.
func (a *app) examine(ctx context.Context) []finding {
	var list []finding
	add := func(what, state, format string, args ...any) {
		list = append(list, finding{what, state, fmt.Sprintf(format, args...)})
	}
	loaded := a.examineConfiguration(add)
	if loaded != nil {
		examineRules(loaded.Config.Permissions, daemon.ToolNames(), add)
	}
	folder := a.examineFolder(add)
	examineShell(add)
	if loaded != nil {
		examineLimits(loaded.Config.Commands, add)
		examineSandbox(loaded.Config.Commands, add)
		a.examineHidden(loaded.Config.Commands, add)
	}
	examineSealed(add)
	if loaded != nil && folder {
		exposed := a.keyMode() // the engine corrects the mode
		a.examineLog(ctx, add)
		a.examineStore(ctx, add)
		a.examineSecrets(ctx, exposed, add)
	}
	if loaded != nil {
		a.examineModels(ctx, loaded, add)
		a.examineWorkspaces(ctx, loaded.Config, add)
		a.examineMCP(loaded.Config, add)
	}
	return list
}

// examineConfiguration checks the configuration and returns it; nil if it cannot be
// read.
func (a *app) examineConfiguration(add note) *config.Loaded {
	quiet := a.quiet
	a.quiet = true // ignored keys are reported as a finding
	loaded, err := a.settings()
	a.quiet = quiet
	switch {
	case err != nil:
		add("configuration", bad, "%v", err)
		return nil
	case a.mistake != nil:
		add("configuration", doubt, "%v", a.mistake)
	case len(loaded.Ignored) > 0:
		add("configuration", doubt, "%s ignored: %s", count(len(loaded.Ignored), "key"), loaded.Ignored[0])
	case len(loaded.Origins) == 0:
		add("configuration", good, "there is none, and none is needed; abide config --help shows where it would be")
	default:
		add("configuration", good, "%s set; abide config show lists them", count(len(loaded.Origins), "value"))
	}
	return loaded
}

// examineRules looks for rules that name neither a kind nor one of the tools. Names that
// are nearly right, and rules that can never match, are mistakes of the configuration.
func examineRules(p config.Permissions, tools []string, add note) {
	for _, rule := range slices.Concat(p.Allow, p.Ask, p.Deny) {
		if approval.Unknown(rule, tools...) {
			add("permissions", doubt, "the rule %q names neither a kind nor a tool of abide: it does nothing unless a client brings a tool of that name", rule)
		}
	}
}

// count returns a number of things with the verb, as in "2 keys are".
func count(n int, thing string) string {
	if n == 1 {
		return "one " + thing + " is"
	}
	return fmt.Sprintf("%d %ss are", n, thing)
}

// examineFolder checks the data folder, and reports whether it can be used.
func (a *app) examineFolder(add note) bool {
	dir, err := dataFolder(a.home, "ABIDE_HOME")
	if err == nil {
		_, err = folder.Open(dir)
	}
	if err != nil {
		add("data folder", bad, "%v", err)
		return false
	}
	if kind := folder.Network(dir); kind != "" {
		add("data folder", doubt, "%s is on a network file system (%s): %s", dir, kind, folder.NetworkRisk)
	} else {
		add("data folder", good, "%s", dir)
	}
	return examineDisk(dir, add)
}

type note func(what, state, format string, args ...any)

// diskOf returns the bytes that are free for the user on the disk of a folder, and all that it
// has; ok is false if that is unknown.
func diskOf(dir string) (free, size int64, ok bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), int64(s.Blocks) * int64(s.Bsize), true
}

// examineDisk checks the free space of the disk and the duration of a sync. It reports
// whether the folder can be written.
func examineDisk(dir string, add note) bool {
	if free, _, ok := diskOf(dir); ok {
		state := good
		switch {
		case free < 64<<20:
			state = bad
		case free < 1<<30:
			state = doubt
		}
		add("disk", state, "%d MiB are free; when the disk is full, sessions accept no more input", free>>20)
	}
	took, err := syncSpeed(dir)
	switch {
	case err != nil:
		add("sync", bad, "cannot write to %s: %v; make it writable, or name another directory with ABIDE_HOME or --home", dir, cause(err))
	case took > 100*time.Millisecond:
		add("sync", doubt, "%v for a small write; each turn waits for two of them", took.Round(time.Millisecond))
	default:
		add("sync", good, "%v for a small write", took.Round(time.Microsecond))
	}
	return err == nil
}

// cause returns the error of a file operation without the name of the file.
func cause(err error) error {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

// syncSpeed returns the median duration of a few small synced writes.
func syncSpeed(dir string) (time.Duration, error) {
	f, err := os.CreateTemp(dir, "doctor-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	var took []time.Duration
	for range 5 {
		begin := time.Now()
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// examineLog checks the sessions in the log.
func (a *app) examineLog(ctx context.Context, add note) {
	err := a.withVisitor(ctx, func(c *client.Client) error {
		list, err := c.List(ctx, "")
		if err != nil {
			return err
		}
		damaged := slices.DeleteFunc(slices.Clone(list), func(s api.SessionInfo) bool { return s.Abide == nil || s.Abide.Damage == "" })
		if len(damaged) > 0 {
			add("log", doubt, "%d of %d sessions are damaged; see abide sessions verify", len(damaged), len(list))
		} else {
			add("log", good, "%s there", count(len(list), "session"))
		}
		return nil
	})
	if err != nil {
		add("log", bad, "%v", err)
	}
}

// examineStore checks the file of the log: where it is, and whether it gets smaller by itself.
func (a *app) examineStore(ctx context.Context, add note) {
	dir, path, err := a.store()
	if err != nil {
		return // the log was reported already
	}
	if kind := folder.Network(filepath.Dir(path)); kind != "" && filepath.Dir(path) != dir {
		add("file of the log", doubt, "%s is on a network file system (%s): %s", path, kind, folder.NetworkRisk)
	}
	space, err := sqlite.Inspect(ctx, path)
	if err == nil && !space.Shrinks && space.Free > space.Size/4 && space.Free > maxFree {
		add("file of the log", doubt, "%s of %s are free, and a log of an older version does not give them back; end all processes of abide and run: abide vacuum", size(space.Free), size(space.Size))
	}
}

// examineSecrets checks that the secrets in the log can be opened with the key file, and by
// nobody else.
func (a *app) examineSecrets(ctx context.Context, exposed fs.FileMode, add note) {
	dir, path, err := a.store()
	if err != nil {
		return // the log was reported already
	}
	file, found, err := daemon.InspectSecrets(ctx, path, a.keyFile(dir))
	if err != nil {
		add("secrets", bad, "%v", err)
		return
	}
	lines := secretFindings(file, found)
	if exposed != 0 {
		lines = append(lines, fmt.Sprintf("the key file %s had mode %04o, so that other users could use it: it should be 0600", file.Path(), exposed))
	}
	for _, line := range lines {
		add("secrets", doubt, "%s", line)
	}
	switch {
	case len(lines) > 0:
	case len(file.IDs()) == 0:
		add("secrets", good, "there are none; the key file %s is made with the first one", file.Path())
	default:
		add("secrets", good, "sealed with key %s in %s; keep a copy of that file apart from backups", file.IDs()[0], file.Path())
	}
}

// keyMode returns the mode of the key file if other users can use it, and 0 otherwise.
func (a *app) keyMode() fs.FileMode {
	dir, _, err := a.store()
	if err != nil {
		return 0
	}
	if info, err := os.Stat(a.keyFile(dir)); err == nil && info.Mode().Perm()&0o077 != 0 {
		return info.Mode().Perm()
	}
	return 0
}

// secretFindings returns what is wrong with the secrets of a log, a line for each thing.
func secretFindings(file *seal.File, found sqlite.Sealed) (lines []string) {
	if found.Clear {
		lines = append(lines, "secrets that an older version has stored in clear are still in the files of the log: end all processes of abide, and run: abide vacuum")
	}
	for _, id := range slices.SortedFunc(maps.Keys(found.Keys), func(a, b seal.ID) int { return bytes.Compare(a[:], b[:]) }) {
		if n := found.Keys[id]; n > 0 && !slices.Contains(file.IDs(), id) {
			lines = append(lines, eventlog.UnreadableSecrets(id, n, file))
		}
	}
	return lines
}

// maxFree is the number of free bytes in the file of the log that nobody minds.
const maxFree = 64 << 20

func examineShell(add note) {
	if path, err := exec.LookPath("bash"); err == nil {
		add("shell", good, "%s", path)
	} else {
		add("shell", doubt, "bash is not in PATH: agents cannot run commands")
	}
}

// examineLimits says who holds the limit of memory of commands.
func examineLimits(c config.Commands, add note) {
	held, err := process.MemoryControl()
	switch {
	case errors.Is(err, process.ErrUnsupported): // there are no commands either
	case err == nil:
		add("limits", good, "the system holds commands.max_memory, with %s", held)
	case c.MaxMemory > 0:
		add("limits", doubt, "commands.max_memory is measured ten times a second, so that a short peak may pass: %v", err)
	default:
		add("limits", good, "commands.max_memory would be measured ten times a second: %v", err)
	}
}

// examineModels checks the providers: their API keys, whether they answer, and their
// clocks.
func (a *app) examineModels(ctx context.Context, l *config.Loaded, add note) {
	usual, err := defaultChoice(l)
	if err != nil {
		add("model", bad, "%v", err)
		return
	}
	list := sources(l.Config, usual)
	if usual.provider == nil {
		add("model", good, "%s, because %s; to use another, set OPENAI_API_KEY, ANTHROPIC_API_KEY or OPENAI_BASE_URL, or a [model] in the configuration", usual.knownModel(), usual.why)
	} else {
		add("model", good, "%s of %s, because %s", cmp.Or(usual.model, "a model"), usual.name, usual.why)
	}
	for _, name := range slices.Sorted(maps.Keys(l.Config.Providers)) {
		if _, err := endpoint(l.Config.Providers[name], settingOf(name)); err != nil {
			add("provider "+name, bad, "%v", err)
		}
	}
	env := environment(l.Config)
	told := make([]daemon.Survey, len(list))
	errs := make([]error, len(list))
	var asking sync.WaitGroup
	for i, s := range list {
		asking.Go(func() { told[i], errs[i] = daemon.Ask(ctx, *s.provider, a.opts.Version, env) })
	}
	asking.Wait()
	for i, s := range list {
		variable := l.Config.Providers[s.name].APIKeyEnv
		if s.name == usual.name {
			s.model = usual.model
			variable = cmp.Or(variable, l.Config.Model.APIKeyEnv)
		}
		s.examineKey(variable, errs[i], add)
		if !errors.Is(errs[i], daemon.ErrKeyCommand) {
			s.examineEndpoint(told[i], errs[i], add)
		}
	}
	examineClock(told, add)
}

// examineKey checks that the provider has an API key. variable is the name of the
// environment variable in the configuration, if there is one. err is the error of asking the
// provider, before which a command that prints the key was run.
func (c choice) examineKey(variable string, err error, add note) {
	p := c.provider
	switch command := p.KeyCommand(); {
	case command != nil && errors.Is(err, daemon.ErrKeyCommand):
		add("key of "+c.name, bad, "%v", err)
	case command != nil:
		add("key of "+c.name, good, "%s printed one", command.Setting)
	case p.APIKey != "" || p.BearerToken != "":
		add("key of "+c.name, good, "there is one")
	case variable != "":
		add("key of "+c.name, bad, "the variable %s, which api_key_env names, is not set: set it", variable)
	case ownEndpoint(p):
		add("key of "+c.name, bad, "there is none, and %s needs one: set %s, or name another variable with api_key_env", p.Address(), vendors[p.Type].KeyEnv)
	default:
		add("key of "+c.name, good, "there is none, which is fine for a self-hosted server")
	}
}

func (c choice) examineEndpoint(told daemon.Survey, err error, add note) {
	what, at := "endpoint of "+c.name, c.provider.Address()
	var failure *model.Error
	switch {
	case errors.As(err, &failure) && failure.Kind == model.KindNotFound && failure.Status == http.StatusNotFound:
		add(what, doubt, "%s answers, but does not list its models; if runs fail as well, check the base URL", at)
	case errors.As(err, &failure) && failure.Kind == model.KindRequest && !told.Asked:
		add(what, bad, "%q: %v", at, err)
	case err != nil:
		add(what, bad, "%v", err)
	case !told.Asked:
		add(what, good, "%s was not asked, because Azure resources do not list their deployments", at)
	case c.model != "" && len(told.Models) > 0 && !slices.Contains(told.Models, c.model):
		add(what, doubt, "%s answers, but does not list the model %q; abide models shows what it has", at, c.model)
	default:
		add(what, good, "%s answers and lists %d models", at, len(told.Models))
	}
}

// examineClock compares the local clock with that of the first endpoint that sent its
// time.
func examineClock(told []daemon.Survey, add note) {
	for _, s := range told {
		if s.Date.IsZero() {
			continue
		}
		if off := time.Since(s.Date); off.Abs() > 2*time.Minute {
			word := "behind"
			if off > 0 {
				word = "ahead of"
			}
			add("clock", doubt, "it is %v %s that of the endpoint: times in the log are wrong by that much, and TLS certificates may be refused; correct the clock", off.Abs().Round(time.Second), word)
		} else {
			add("clock", good, "agrees with that of the endpoint")
		}
		return
	}
}

func (a *app) printFindings(list []finding) error {
	t := &table{head: []string{"WHAT", "STATE", "FINDING"}, wrap: true}
	for _, f := range list {
		t.add(f.What, f.State, plain(f.Text))
	}
	return a.print(t)
}
