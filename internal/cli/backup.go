package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/daemon/backup"
	"github.com/abide-run/abide/internal/eventlog"
)

func (a *app) backupCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "backup FILE",
		Short: "Back up the data folder to one file",
		Long: `Write the data folder to one file: the log with its secrets, the files of sessions,
the records and output of commands, and what is trusted. The backup is of one moment
and can be taken while abide runs, which is neither stopped nor slowed down. The hash
chain of every session is verified, and the file is read back, before it gets its name.

The file holds the API keys and environments of sessions as the log has them, so only
you can read it: keep it as you keep your keys. With - as FILE the backup is written to
standard output, and not read back. If a session is damaged, no backup is made, unless
--allow-damaged is given: then everything is backed up as it is. docs/STORE.md says
what is left out.`,
		Example: "  abide backup /mnt/usb/abide.backup\n  abide backup --force ~/nightly.backup\n  abide backup - | zstd | ssh host 'cat > abide.backup.zst'",
		Args:    arguments(1, 1, "one FILE"),
	}
	asJSON := jsonFlag(c)
	force := c.Flags().Bool("force", false, "replace FILE if it exists")
	allow := c.Flags().Bool("allow-damaged", false, "back up damaged sessions as they are")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		source, err := a.backupSource()
		if err != nil {
			return err
		}
		source.AllowDamaged = *allow
		show := a.newMeter("")
		source.Progress = show.stage
		var report backup.Report
		switch {
		case args[0] != "-":
			report, err = source.WriteFile(cmd.Context(), args[0], *force)
		case *asJSON:
			err = usagef("--json and the backup itself cannot both go to standard output: name a file")
		case terminal(a.out) != nil:
			err = usagef("standard output is a terminal: name a file, or redirect the output")
		default:
			report, err = source.Write(cmd.Context(), a.out)
		}
		show.end()
		if err != nil {
			return a.backupError(cmd.Context(), err)
		}
		return a.printBackup("backed up", report, *asJSON)
	}
	return c
}

func (a *app) restoreCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore the data folder from a backup",
		Long: `Restore the data folder (--home, ABIDE_HOME) from a file that "abide backup" wrote, or
from standard input if FILE is -. The folder must be new or empty. The backup is
verified first, and the folder appears when all of it is there: whatever goes wrong,
nothing is left behind.

Sessions go on where they were when the backup was made. Commands that ran at that time
are reported as lost, because they belong to the folder that was backed up.`,
		Example: "  abide restore --home ~/restored /mnt/usb/abide.backup\n  zstd -dc abide.backup.zst | abide restore -",
		Args:    arguments(1, 1, "one FILE"),
	}
	asJSON := jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		dir, err := dataFolder(a.home, "ABIDE_HOME")
		if err != nil {
			return err
		}
		if dir, err = filepath.Abs(dir); err != nil {
			return configError(err)
		}
		show := a.newMeter("")
		target := backup.Target{Dir: dir, Progress: show.stage}
		var report backup.Report
		if args[0] == "-" {
			report, err = target.Read(cmd.Context(), a.in)
		} else {
			report, err = target.ReadFile(cmd.Context(), args[0])
		}
		show.end()
		if err != nil {
			return a.backupError(cmd.Context(), err)
		}
		a.checkRestoredStore(target.Dir, report.Store)
		return a.printBackup("restored", report, *asJSON)
	}
	return c
}

func (a *app) vacuumCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "vacuum",
		Short: "Make the file of the log as small as it can be",
		Long: `Write the file of the log anew, without free space in it. That is needed once for a
log of an older version, which "abide doctor" tells: after that the file gets smaller
by itself when sessions are deleted.

No other process may use the data folder meanwhile, and the disk needs room for a
second copy. If the command is killed, the log is as it was before.`,
		Example: "  abide vacuum",
		Args:    arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, path, err := a.store()
			if err != nil {
				return err
			}
			done := a.newProgress().while("writing the log anew")
			before, after, err := daemon.Vacuum(cmd.Context(), dir, path)
			done()
			if err != nil {
				return configError(err)
			}
			if !a.quiet {
				a.err.printf("%s had %s and has %s\n", plain(path), size(before), size(after))
			}
			return nil
		},
	}
}

// errNoLog means that nothing was stored in a data folder yet.
var errNoLog = errors.New("holds no log")

// store returns the data folder and the path of the log.
func (a *app) store() (dir, path string, err error) {
	if dir, err = dataFolder(a.home, "ABIDE_HOME"); err != nil {
		return "", "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", "", configError(err)
	}
	loaded, err := a.settings()
	if err != nil {
		return "", "", err
	}
	if path, err = daemon.StoreFile(loaded.Config.Store.URL, dir); err != nil {
		return "", "", configError(err)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", "", configError(fmt.Errorf("data folder %s %w (%s): name the folder of an abide with --home or ABIDE_HOME", dir, errNoLog, filepath.Base(path)))
	}
	return dir, path, nil
}

func (a *app) backupSource() (backup.Source, error) {
	dir, path, err := a.store()
	return backup.Source{Dir: dir, Store: path, Version: a.opts.Version}, err
}

// backupError adds the exit code to an error of a backup, and names all damage.
func (a *app) backupError(ctx context.Context, err error) error {
	if stopped := context.Cause(ctx); stopped != nil {
		return stopped
	}
	if damage, is := errors.AsType[*backup.DamageError](err); is {
		a.printDamaged(damage.Damaged)
	}
	switch {
	case backup.IsAboutFolder(err):
		return configError(err)
	case backup.IsAboutPath(err):
		return usagef("%w", err)
	}
	return err
}

func (a *app) printDamaged(list []*eventlog.Damage) {
	for _, d := range list {
		a.err.printf("abide: %s; %s\n", plain(d.Error()), damageHint(d.Session, d.Seq-1))
	}
}

// A backupResult is what was backed up or restored, as JSON.
type backupResult struct {
	Sessions int      `json:"sessions"`
	Files    int      `json:"files"`
	Bytes    int64    `json:"bytes"`
	Damaged  []string `json:"damaged"`
	LeftOut  []string `json:"leftOut"`
}

// printBackup prints what was backed up or restored.
func (a *app) printBackup(verb string, r backup.Report, asJSON bool) error {
	a.printDamaged(r.Damaged)
	if asJSON {
		out := backupResult{r.Sessions, r.Files, r.Bytes, []string{}, append([]string{}, r.LeftOut...)}
		for _, d := range r.Damaged {
			out.Damaged = append(out.Damaged, string(d.Session))
		}
		return a.out.json(out)
	}
	if a.quiet {
		return nil
	}
	for _, name := range r.LeftOut {
		a.err.printf("abide: left out %s, because it is a link\n", plain(name))
	}
	a.err.printf("%s %s in %s, %s\n", verb, plural(r.Sessions, "session", "sessions"), plural(r.Files, "file", "files"), size(r.Bytes))
	return nil
}

// checkRestoredStore tells a person whose configuration names another log than the one
// that was restored.
func (a *app) checkRestoredStore(dir, name string) {
	a.loaded = nil // the configuration may have been restored, too
	loaded, err := a.settings()
	if err != nil {
		return // the next command reports it
	}
	path, err := daemon.StoreFile(loaded.Config.Store.URL, dir)
	restored := filepath.Join(dir, filepath.FromSlash(name))
	if err == nil && path == restored {
		return
	}
	a.err.printf("abide: the log was restored to %s, but store.url names another place: change store.url, or move the log there\n", plain(restored))
}
