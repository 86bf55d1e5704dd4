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
	"github.com/abide-run/abide/internal/seal"
)

func (a *app) backupCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "backup FILE",
		Short: "Back up the data folder to one file",
		Long: `Write the data folder to one file: the log, the files of sessions, the records and
output of commands, and what is trusted. The backup is of one moment
and can be taken while abide runs, which is neither stopped nor slowed down. The hash
chain of every session is verified, and the file is read back, before it gets its name.

The secrets of sessions (API keys, environments) are in the file as the log has them:
sealed. The key file that opens them is left out: back it up once, elsewhere, or put it
into the file with --with-key, and then keep the file as you keep your keys. Without it
sessions go on, and their API keys have to be given again. What people and models said
is not sealed.

With - as FILE the backup is written to standard output, and not read back. If a session
is damaged, no backup is made, unless --allow-damaged is given: then everything is backed
up as it is. docs/STORE.md says what is left out.`,
		Example: "  abide backup /mnt/usb/abide.backup\n  abide backup --force ~/nightly.backup\n  abide backup - | zstd | ssh host 'cat > abide.backup.zst'",
		Args:    arguments(1, 1, "one FILE"),
	}
	asJSON := jsonFlag(c)
	force := c.Flags().Bool("force", false, "replace FILE if it exists")
	withKey := c.Flags().Bool("with-key", false, "back up the key file of the secrets and the token of clients, too")
	allow := c.Flags().Bool("allow-damaged", false, "back up damaged sessions as they are")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		source, err := a.backupSource()
		if err != nil {
			return err
		}
		source.AllowDamaged, source.WithKey = *allow, *withKey
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
		return a.printBackup(backedUp, report, *asJSON)
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
		a.checkRestoredStore(target.Dir, report)
		return a.printBackup(restored, report, *asJSON)
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
			before, after, err := daemon.Vacuum(cmd.Context(), dir, path, a.keyFile(dir))
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
	if err = checkStore(loaded); err != nil {
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
	return backup.Source{Dir: dir, Store: path, KeyFile: a.keyFile(dir), Version: a.opts.Version}, err
}

// keyFile returns the path of the file with the key of the secrets of a data folder.
func (a *app) keyFile(dir string) string {
	loaded, err := a.settings()
	if err != nil {
		return daemon.KeyFile("", dir) // the caller has reported it
	}
	return daemon.KeyFile(loaded.Config.Store.KeyFile, dir)
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
	Secrets  string   `json:"secrets,omitempty"`
}

// The verbs of printBackup.
const (
	backedUp = "backed up"
	restored = "restored"
)

// secretsLine is what a person is told of the secrets in a backup.
var secretsLine = map[string]string{
	backedUp + string(backup.SecretsSealed):  "the key file of the secrets is not in the backup: keep a copy of it elsewhere, or use --with-key",
	backedUp + string(backup.SecretsWithKey): "the key file is in the backup: whoever has the backup has your secrets",
	backedUp + string(backup.SecretsLeftOut): "an older version has stored secrets in clear, so they are not in the backup; start abide once, which seals them, and back up again",
	restored + string(backup.SecretsSealed):  "the key file of the secrets was not in the backup: put your copy of it in its place before you start abide; without it, API keys have to be given again",
	restored + string(backup.SecretsLeftOut): "the backup has no secrets: API keys have to be given again",
	restored:                                 "the backup may hold secrets in clear, because an older version has made it: delete it when you have a new one",
}

// printBackup prints what was backed up or restored.
func (a *app) printBackup(verb string, r backup.Report, asJSON bool) error {
	a.printDamaged(r.Damaged)
	if asJSON {
		out := backupResult{r.Sessions, r.Files, r.Bytes, []string{}, append([]string{}, r.LeftOut...), string(r.Secrets)}
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
	if line := secretsLine[verb+string(r.Secrets)]; line != "" {
		a.err.printf("abide: %s\n", line)
	}
	a.err.printf("%s %s in %s, %s\n", verb, plural(r.Sessions, "session", "sessions"), plural(r.Files, "file", "files"), size(r.Bytes))
	return nil
}

// checkRestoredStore tells a person whose configuration names another log or key file than
// those that were restored.
func (a *app) checkRestoredStore(dir string, r backup.Report) {
	a.loaded = nil // the configuration may have been restored, too
	loaded, err := a.settings()
	if err != nil {
		return // the next command reports it
	}
	key := filepath.Join(dir, seal.FileName)
	if wanted := a.keyFile(dir); r.Secrets == backup.SecretsWithKey && wanted != key {
		a.err.printf("abide: the key file was restored to %s, but store.key_file names %s: move it there\n", plain(key), plain(wanted))
	}
	path, err := daemon.StoreFile(loaded.Config.Store.URL, dir)
	restored := filepath.Join(dir, filepath.FromSlash(r.Store))
	if err == nil && path == restored {
		return
	}
	a.err.printf("abide: the log was restored to %s, but store.url names another place: change store.url, or move the log there\n", plain(restored))
}
