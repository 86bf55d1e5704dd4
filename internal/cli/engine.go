package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/config"
	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/daemon/folder"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/process/sandbox"
	"github.com/abide-run/abide/internal/project/instructions"
)

// config returns the configuration of this process for a data folder.
func (a *app) config(dir string) (daemon.Config, error) {
	level, err := logLevel(a.logLevel)
	if err != nil {
		return daemon.Config{}, err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return daemon.Config{}, configError(fmt.Errorf("cannot find the working directory: %w; change to a directory that exists", err))
	}
	loaded, err := a.settings()
	if err != nil {
		return daemon.Config{}, err
	}
	if a.storeURL != "" {
		loaded.Config.Store.URL, loaded.Origins["store.url"] = a.storeURL, "--store"
	}
	if a.cluster != nil {
		path, err := filepath.Abs(a.clusterKey)
		if err != nil {
			return daemon.Config{}, configError(err)
		}
		loaded.Config.Store.KeyFile = path
	}
	if err := checkStore(loaded); err != nil {
		return daemon.Config{}, err
	}
	c := daemon.Config{
		Dir:           dir,
		Version:       a.opts.Version,
		Log:           slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level})),
		ModelSettings: daemon.ModelSettings{MaxOutput: loaded.Config.Worker.MaxTokens, Models: limits(loaded.Config, "")},
		Instructions:  instructions.Rules{Names: loaded.Config.Instructions.Files, MaxBytes: loaded.Config.Instructions.MaxBytes},
		Store:         loaded.Config.Store.URL,
		KeyFile:       loaded.Config.Store.KeyFile,
		Cluster:       a.cluster,
		Tools:         a.opts.Tools,
		Wrap:          a.opts.Wrap,
		AtStep:        a.opts.AtStep,
		Notice:        func(line string) { a.err.printf("abide: %s\n", line) },
		Retries:       a.opts.Retries,
		LookTime:      a.opts.LookTime,
		MaxQueue:      loaded.Config.Worker.MaxQueue,
	}
	if loaded.Config.Store.Sync == "normal" {
		c.Sync = eventlog.Normal
	}
	c.Rest, c.Keep = loaded.Config.Store.Rest.Value(), loaded.Config.Retention.Sessions.Value()
	c.Commands = commands(loaded.Config.Commands)
	c.Notify = notification(loaded.Config.Notify)
	c.Workspaces = a.workspaceOptions(loaded.Config)
	if user := userFile(a.home); user != "" {
		c.Memory.Dir = filepath.Join(filepath.Dir(user), "memory")
	}
	c.Memory.Trusts = a.trusts
	c.ModelSettings.Silence = loaded.Config.Model.Silence.Value()
	if c.Defaults, err = defaults(loaded, cwd); err == nil {
		err = errors.Join(a.setOutage(&c.Defaults, loaded.Config), setHelpers(&c.Defaults, loaded.Config))
	}
	if err == nil {
		c.Defaults.MCP, err = a.mcpDefaults(loaded.Config)
	}
	c.Defaults.InstructionDirectories, c.Defaults.SkillDirectories = guidance(userFile(a.home), c.Instructions.FileNames())
	return c, err
}

// guidance returns the folders of the user's own instructions and skills that there are: the
// folder of the configuration, if it has instructions, and the folders that agents share.
func guidance(config string, names []string) (instructions, skills []string) {
	isThere := func(path string) bool { _, err := os.Stat(path); return filepath.IsAbs(path) && err == nil }
	if dir := filepath.Dir(config); slices.ContainsFunc(names, func(name string) bool { return isThere(filepath.Join(dir, name)) }) {
		instructions = append(instructions, dir)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return instructions, nil
	}
	shared := cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config"))
	for _, dir := range []string{filepath.Join(shared, "agents", "skills"), filepath.Join(home, ".agents", "skills"), filepath.Join(home, ".claude", "skills")} {
		if isThere(dir) {
			skills = append(skills, dir)
		}
	}
	return instructions, skills
}

// checkStore returns an error if store.url is wrong. It names the file or the variable that
// sets it.
func checkStore(l *config.Loaded) error {
	if err := daemon.CheckStore(l.Config.Store.URL); err != nil {
		return configError(fmt.Errorf("store.url in %s: %w", l.Origins["store.url"], err))
	}
	return nil
}

// commands converts the settings of commands.
func commands(c config.Commands) daemon.Commands {
	return daemon.Commands{
		MaxRunning: c.MaxRunning, MaxMemory: c.MaxMemory, Quota: c.OutputBytes,
		Sandbox: sandbox.Mode(c.Sandbox), Writable: c.Writable, Offline: c.Network == "off", Cache: cacheFolder(),
		Wait: c.Wait.Value(), TimeLimit: c.TimeLimit.Value(), Keep: c.Keep.Value(),
	}
}

// notifyDelay is the time that a person has to answer a question before somebody is told of it.
const notifyDelay = 5 * time.Second

// notification converts the settings of notifications.
func notification(c config.Notify) daemon.Notify {
	return daemon.Notify{Command: c.Command, Webhook: c.Webhook, SecretFile: c.SecretFile, On: c.On, Delay: notifyDelay}
}

// cacheFolder returns the folder for the caches of confined commands; empty if there is no
// home directory.
func cacheFolder() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "abide", "commands")
}

// defaults returns the defaults of the sessions of this process.
func defaults(l *config.Loaded, cwd string) (api.Defaults, error) {
	c := l.Config
	d := api.Defaults{Cwd: cwd, Env: environment(c), MaxSteps: c.Worker.MaxSteps, ExtraTools: c.Worker.Tools, Name: c.Pod.Name}
	if c.Pod.Pwd != "" {
		d.Cwd = c.Pod.Pwd
	}
	d.Scope = event.ScopeRules{Allow: scopeRules(c.Scope.Allow), Deny: scopeRules(c.Scope.Deny)}
	d.Permissions = event.PermissionRules{
		Allow: permissionRules(c.Permissions.Allow), Ask: permissionRules(c.Permissions.Ask), Deny: permissionRules(c.Permissions.Deny),
		Unread: l.Unread,
	}
	d.Compaction = compactionRules(c.Compaction)
	d.Memory = memoryRules(c.Memory)
	d.Budget = budgetRules(c.Budget)
	d.Workspace = c.Workspace.Default
	usual, err := defaultChoice(l)
	d.Provider, d.Model = usual.provider, usual.model
	return d, err
}

// compactionRules converts the settings of compaction.
func compactionRules(c config.Compaction) event.CompactionRules {
	return event.CompactionRules{
		Threshold: c.Threshold, RequestThreshold: c.RequestThreshold, Retained: c.RetainedTokens,
		Model: c.Model, TimeoutMs: c.Timeout.Value().Milliseconds(), KeepAll: c.KeepOutput,
	}
}

// usualIdle is the default idle time after which extracted facts are written to memory.
const usualIdle = 15 * time.Minute

// memoryRules converts the settings of memory.
func memoryRules(c config.Memory) event.MemoryRules {
	r := event.MemoryRules{Model: c.Model, Where: c.Where, RecallTokens: c.Recall}
	if c.ExtractThreshold != nil {
		r.ExtractThreshold = *c.ExtractThreshold
	}
	idle := c.Idle.Value()
	if c.Idle == "" && r.ExtractThreshold > 0 {
		idle = usualIdle
	}
	r.IdleMs, r.TimeoutMs = idle.Milliseconds(), c.Timeout.Value().Milliseconds()
	return r
}

func scopeRules(rules []config.Rule) []event.ScopeRule {
	var list []event.ScopeRule
	for _, r := range rules {
		list = append(list, event.ScopeRule{Target: r.Target, Permission: r.Permission})
	}
	return list
}

func permissionRules(rules []string) []string {
	home, err := os.UserHomeDir()
	if err != nil {
		return rules
	}
	var list []string
	for _, r := range rules {
		list = append(list, approval.Expand(r, home))
	}
	return list
}

// levels are the values of --log-level.
var levels = map[string]slog.Level{
	"none":    slog.LevelError + 100,
	"error":   slog.LevelError,
	"warning": slog.LevelWarn,
	"info":    slog.LevelInfo,
	"debug":   slog.LevelDebug,
	"all":     slog.LevelDebug - 100,
}

func logLevel(word string) (slog.Level, error) {
	level, ok := levels[word]
	if !ok {
		return 0, usagef("--log-level: %q is unknown; use none, error, warning, info, debug or all", word)
	}
	return level, nil
}

// A lifetime is how long a process is there, which decides what it does as the engine.
type lifetime int

const (
	visitor    lifetime = iota // for a moment: it goes on only with what it is asked for, and does no upkeep
	oneCommand                 // for one command or one client: it goes on only with the sessions that are used
	permanent                  // to stay: it goes on with everything
)

// open opens the data folder: this process becomes its engine, or a relay to it.
func (a *app) open(ctx context.Context, lifetime lifetime) (*daemon.Node, error) {
	if len(a.servers) > 0 {
		return a.openRemote(ctx)
	}
	dir, err := dataFolder(a.home, "ABIDE_HOME")
	if err != nil {
		return nil, err
	}
	c, err := a.config(dir)
	if err != nil {
		return nil, err
	}
	c.OneCommand, c.Visitor = lifetime != permanent, lifetime == visitor
	node, err := daemon.Open(ctx, c)
	if err != nil {
		return nil, configError(err)
	}
	return node, nil
}

// withClient calls f with a client of the data folder's engine, and closes it
// afterwards.
func (a *app) withClient(ctx context.Context, f func(*client.Client) error) error {
	return a.withNode(ctx, f, oneCommand)
}

// withVisitor is like withClient, for commands that take only a moment.
func (a *app) withVisitor(ctx context.Context, f func(*client.Client) error) error {
	return a.withNode(ctx, f, visitor)
}

func (a *app) withNode(ctx context.Context, f func(*client.Client) error, lifetime lifetime) error {
	node, err := a.open(ctx, lifetime)
	if err != nil {
		return err
	}
	err = withConnection(ctx, node, f)
	if lifetime == oneCommand {
		a.unfinished = node.Unfinished(context.WithoutCancel(ctx))
	}
	// If the turn of the command is over, others have left what is under way.
	return a.leaveNode(node, lifetime == oneCommand && (err == nil || a.detached || a.turnOver), err)
}

// A turn that has ended may still have something under way for a moment, such as the last
// step of its session. It is waited for, because an engine that stays would be in the way of
// an abide serve that is started next.
const (
	settlePause = 5 * time.Millisecond
	settleTries = 20
)

// leaveNode closes the node of a command that is over, and returns the error of the
// command. If other processes need the engine in this process, or with own it has any work,
// it is closed later. So it is if another process has stopped the turn, because that process
// still waits to be told what was stopped.
func (a *app) leaveNode(node *daemon.Node, own bool, err error) error {
	a.stays = !node.Engine()
	if a.elsewhere && a.launcher != nil && node.Engine() {
		a.needed, a.stays = node, true
		return err
	}
	stopped := node.TryStop(own)
	for try := 0; own && !a.detached && !stopped && try < settleTries; try++ {
		time.Sleep(settlePause)
		stopped = node.TryStop(own)
	}
	if !stopped {
		a.needed, a.stays = node, a.launcher != nil
		return err
	}
	return closeNode(node, err)
}

// stay keeps the engine in this process for other processes until nothing is under way,
// while the command is over for whoever has started it. Without a launcher the engine
// ends with the command, and one of the other processes becomes the engine.
func (a *app) stay(ctx context.Context, code int) {
	if a.needed == nil {
		return
	}
	dir := a.needed.Dir()
	if err := a.launcher.leave(code, dir); err == nil {
		if ctx.Err() != nil {
			ctx = context.Background() // a further signal ends the process
		}
		a.err.redirect(&boundedLog{os.Stderr, maxEngineLog}) // the standard error is the log now
		a.needed.AwaitIdle(ctx)
		removeEmptyLog(filepath.Join(dir, folder.EngineLogName))
	}
	_ = a.needed.Close() // the exit code was given
}

// reportUnfinished prints how many sessions wait that this command did not go on with.
func (a *app) reportUnfinished() {
	if a.unfinished == 0 || a.quiet || a.out.isJSON {
		return
	}
	a.err.printf("abide: %s unfinished and not continued by this command; see: abide sessions list, continue: abide run --resume SESSION, or all: abide serve\n", otherSessions(a.unfinished))
}

func otherSessions(n int) string {
	if n == 1 {
		return "1 other session is"
	}
	return fmt.Sprintf("%d other sessions are", n)
}

// closeNode closes a node and returns the error of the command. An error of the data folder
// wins, because other errors are consequences of it.
func closeNode(node *daemon.Node, err error) error {
	err = errors.Join(err, node.Close())
	if wrong, ok := errors.AsType[*daemon.FolderError](node.Err()); ok {
		return wrong
	}
	return err
}

// withConnection calls f with a client that is connected to a node.
func withConnection(ctx context.Context, node *daemon.Node, f func(*client.Client) error) error {
	conn, err := node.Connect(ctx)
	if err != nil {
		return err
	}
	c := client.New(conn, client.Options{})
	defer c.Close()
	if _, err := c.Connect(ctx, ""); err != nil {
		return err
	}
	return f(c)
}
