package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/daemon/move"
	"github.com/abide-run/abide/internal/eventlog/postgres"
)

// moveFlags are the flags of abide move.
type moveFlags struct {
	to, clusterKey                string
	dryRun, allowDamaged, abandon bool
	asJSON                        *bool
}

func (a *app) moveCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "move --to URL",
		Short: "Move all sessions to a PostgreSQL database",
		Long: `Move the sessions of the data folder (--home, ABIDE_HOME) from its log in a file to a
PostgreSQL database: events with their hash chains, secrets (sealed), jobs, and costs.
Everything is verified on the way and in the database. The sessions appear there all at
once at the end, and from then on the old log cannot be opened: each session is always
in one place. Until then, the data folder can be used as before.

A move that was interrupted, even by kill -9, is finished by running the command again;
what has arrived is not sent again. No engine may use the data folder meanwhile.

The data folder stays in use: files, commands, checkpoints, large results and memory of
sessions are in it. After the move, name the database in store.url of the configuration,
or use "abide serve --store". For several servers, docs/DEPLOY.md says how to go on.`,
		Example: `  abide move --to postgres://abide@db.example.org/agents --dry-run
  abide move --to postgres://abide@db.example.org/agents
  abide move --to "postgres://abide@db/agents?search_path=team" --cluster-key-file /etc/abide/cluster.key`,
		Args: arguments(0, 0, "no arguments"),
	}
	var f moveFlags
	c.Flags().StringVar(&f.to, "to", "", "`URL` of the database: postgres://USER@HOST/DATABASE; keep a password in ~/.pgpass or PGPASSWORD")
	c.Flags().StringVar(&f.clusterKey, "cluster-key-file", "", "key `FILE` of the servers that share the database, if it is not that of the data folder")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "verify everything and say what would be moved")
	c.Flags().BoolVar(&f.allowDamaged, "allow-damaged", false, "move damaged sessions, too, up to the damage")
	c.Flags().BoolVar(&f.abandon, "abandon", false, "remove what an unfinished move has brought to the database")
	f.asJSON = jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error { return a.move(cmd.Context(), f) }
	return c
}

func (a *app) move(ctx context.Context, f moveFlags) error {
	m, err := a.moveOf(f)
	if err != nil {
		return err
	}
	show := a.newMeter("")
	m.Progress = show.stage
	m.Warn = func(line string) { a.err.printf("abide: %s\n", plain(line)) }
	var report move.Report
	if f.abandon {
		err = m.GiveUp(ctx)
	} else {
		report, err = m.Run(ctx)
	}
	show.end()
	if stopped := context.Cause(ctx); stopped != nil && err != nil {
		if !f.dryRun {
			a.err.printf("abide: this is not finished; run the same command again to go on\n")
		}
		return stopped
	}
	if damage, is := errors.AsType[*move.DamageError](err); is {
		a.printDamaged(damage.Damaged)
		return err
	}
	if err != nil {
		return configError(err)
	}
	return a.printMove(f, report)
}

// moveOf returns the move that the flags and the configuration ask for.
func (a *app) moveOf(f moveFlags) (m move.Move, err error) {
	switch scheme, _, _ := strings.Cut(f.to, ":"); {
	case f.to == "":
		return m, usagef("say where to: abide move --to %s", postgres.Kind.Form)
	case scheme != postgres.Scheme:
		return m, usagef("--to: sessions can be moved to a database: write %s", postgres.Kind.Form)
	case f.abandon && (f.dryRun || f.allowDamaged):
		return m, usagef("--abandon moves nothing: leave out the other flags")
	}
	if err := daemon.CheckStore(f.to); err != nil {
		return m, usagef("--to: %w", err)
	}
	dir, err := dataFolder(a.home, "ABIDE_HOME")
	if err != nil {
		return m, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return m, configError(err)
	}
	loaded, err := a.settings()
	if err != nil {
		return m, err
	}
	if err := checkStore(loaded); err != nil {
		return m, err
	}
	url := loaded.Config.Store.URL
	if strings.HasPrefix(url, postgres.Scheme+":") {
		url = "" // the configuration may be that for afterwards already
	}
	path, err := daemon.StoreFile(url, dir)
	if err != nil {
		return m, configError(err)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return m, configError(fmt.Errorf("data folder %s %w (%s): name the folder of an abide with --home or ABIDE_HOME", dir, errNoLog, filepath.Base(path)))
	}
	if f.clusterKey != "" {
		if f.clusterKey, err = filepath.Abs(f.clusterKey); err != nil {
			return m, configError(err)
		}
	}
	return move.Move{Dir: dir, Store: path, KeyFile: a.keyFile(dir), TargetKeyFile: f.clusterKey, To: f.to, DryRun: f.dryRun, AllowDamaged: f.allowDamaged}, nil
}

// A moveResult is what was moved, as JSON.
type moveResult struct {
	Sessions int      `json:"sessions"`
	Sent     int      `json:"sent"`
	Bytes    int64    `json:"bytes"`
	To       string   `json:"to"`
	Damaged  []string `json:"damaged"`
	DryRun   bool     `json:"dryRun,omitempty"`
}

// printMove prints what was moved, and how to go on.
func (a *app) printMove(f moveFlags, r move.Report) error {
	a.printDamaged(r.Damaged)
	if *f.asJSON && !f.abandon {
		out := moveResult{r.Sessions, r.Sent, r.Bytes, r.Place, []string{}, f.dryRun}
		for _, d := range r.Damaged {
			out.Damaged = append(out.Damaged, string(d.Session))
		}
		return a.out.json(out)
	}
	if r.Unopened > 0 {
		a.err.printf("abide: %s could not be opened, and are there as they were: add the lines of the right key file to that of the servers\n", plural(r.Unopened, "secret", "secrets"))
	}
	if a.quiet {
		return nil
	}
	sessions := plural(r.Sessions, "session", "sessions")
	switch {
	case f.abandon:
		a.err.printf("the move is abandoned; all sessions are in the data folder\n")
	case f.dryRun && len(r.Damaged) > 0 && !f.allowDamaged:
		a.err.printf("nothing would be moved to %s: delete the damaged sessions, or move them up to the damage with --allow-damaged\n", plain(r.Place))
	case f.dryRun:
		a.err.printf("would move %s with %s of events to %s\n", sessions, size(r.Bytes), plain(r.Place))
	case r.Before:
		a.err.printf("the sessions are in %s already\n", plain(r.Place))
	default:
		a.err.printf("moved %s to %s\n", sessions, plain(r.Place))
		a.err.printf("name that database in store.url of the configuration, and keep the data folder: files, commands and memory of the sessions are in it\n")
	}
	return nil
}
