package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
)

const memoryHelp = `Memory is a set of Markdown pages that you can read and edit: those of a project are
in .abide/memory, and your own are in the configuration directory. New sessions get
both. Inside a project these commands work on the project's pages, unless --user is
given.`

const memoryExamples = `  abide memory show
  abide memory show decisions
  abide memory edit requests
  abide memory consolidate 0198c2f1 --wait
  abide memory forget 0198c2f1`

func (a *app) memoryCommand() *cobra.Command {
	c := group(&cobra.Command{
		Use:     "memory",
		Short:   "Read, search, edit, revert and forget memory",
		Long:    memoryHelp,
		Example: memoryExamples,
	})
	c.AddCommand(a.memoryShowCommand(), a.memorySearchCommand(), a.memoryEditCommand(), a.memoryHistoryCommand(),
		a.memoryRevertCommand(), a.memoryRecalledCommand(), a.memoryForgetCommand(), a.memoryConsolidateCommand())
	return c
}

// userFlag adds the --user flag to a command.
func userFlag(c *cobra.Command) *bool {
	return c.Flags().Bool("user", false, "use your own pages instead of the project's")
}

// here returns the working directory, which selects the pages of a project.
func here() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	return dir
}

func (a *app) memoryShowCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "show [PAGE]",
		Short:   "List the pages of memory, or print one",
		Example: "  abide memory show\n  abide memory show decisions --version 3",
		Args:    arguments(0, 1, "at most one PAGE"),
	}
	asJSON, user := jsonFlag(c), userFlag(c)
	version := c.Flags().Int("version", 0, "print version `N` instead of the latest")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		p := api.MemoryParams{Cwd: here(), User: *user, Version: *version}
		if len(args) == 1 {
			p.Page = args[0]
		}
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			found, err := c.Memory(cmd.Context(), p)
			switch {
			case err != nil:
				return err
			case *asJSON:
				return a.out.json(found)
			case p.Page != "":
				return a.out.buffered(func(w io.Writer) error {
					_, err := io.WriteString(w, plainLines(found.Books[0].Pages[0].Text))
					return err
				})
			}
			return a.printBooks(found.Books)
		})
	}
	return c
}

// plainLines returns a text without control characters, line by line.
func plainLines(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		cut, end := strings.CutSuffix(line, "\n")
		if lines[i] = plain(cut); end {
			lines[i] += "\n"
		}
	}
	return strings.Join(lines, "")
}

func (a *app) printBooks(books []api.MemoryBook) error {
	t := &table{head: []string{"PAGE", "FACTS", "VERSION", "FILE"}}
	for _, b := range books {
		for _, p := range b.Pages {
			facts := strconv.Itoa(p.Facts)
			if p.Damage != "" {
				facts = "damaged"
			}
			t.add(plain(p.Name), facts, strconv.Itoa(p.Version), plain(p.Path))
			if p.Damage != "" && !a.quiet {
				a.err.printf("abide: %s: %s\n", plain(p.Path), oneLine(p.Damage))
			}
		}
	}
	if len(t.rows) > 0 {
		return a.print(t)
	}
	if !a.quiet {
		a.err.printf("there is no memory here yet; set extract_threshold in [memory], or use: abide memory consolidate SESSION\n")
	}
	return nil
}

func (a *app) memorySearchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "search WORD…",
		Short:   "Find lines of memory that contain all words, ignoring case",
		Example: "  abide memory search sqlite journal",
		Args:    arguments(1, -1, "at least one WORD"),
	}
	asJSON := jsonFlag(c)
	most := c.Flags().Int("max", 50, "show at most `N` lines")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		p := api.MemorySearchParams{Cwd: here(), Query: strings.Join(args, " "), Max: *most}
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			found, err := c.SearchMemory(cmd.Context(), p)
			switch {
			case err != nil:
				return err
			case *asJSON:
				return a.out.json(found)
			case len(found.Matches) == 0:
				if !a.quiet {
					a.err.printf("no matches\n")
				}
				return nil
			}
			t := &table{head: []string{"PAGE", "LINE", "TEXT"}}
			for _, m := range found.Matches {
				t.add(plain(m.Page), strconv.Itoa(m.Line), oneLine(m.Text))
			}
			return a.print(t)
		})
	}
	return c
}

func (a *app) memoryEditCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "edit PAGE",
		Short: "Edit or create a page of memory",
		Long: `Open a page in $VISUAL or $EDITOR, or read its new text from a file. The previous
version is kept (abide memory history). If the page was changed in the meantime,
nothing is written. You can also edit the files directly.`,
		Example: "  abide memory edit decisions\n  abide memory edit notes --file notes.md --user",
		Args:    arguments(1, 1, "one PAGE"),
	}
	asJSON, user := jsonFlag(c), userFlag(c)
	file := c.Flags().String("file", "", "read the text from `FILE`; - is standard input")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		p := api.MemoryEditParams{Cwd: here(), Page: args[0], User: *user}
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			before, err := existing(cmd.Context(), c, p)
			if err != nil {
				return err
			}
			p.Was = before.Digest
			if p.Text, err = a.newText(cmd.Context(), *file, p.Page, before.Text); err != nil {
				return err
			}
			done, err := c.EditMemory(cmd.Context(), p)
			return a.edited(done, err, *asJSON)
		})
	}
	return c
}

// existing returns a page, or an empty page if it does not exist.
func existing(ctx context.Context, c *client.Client, p api.MemoryEditParams) (api.MemoryPage, error) {
	list, err := c.Memory(ctx, api.MemoryParams{Cwd: p.Cwd, User: p.User})
	if err != nil {
		return api.MemoryPage{}, err
	}
	if !slices.ContainsFunc(list.Books[0].Pages, func(m api.MemoryPage) bool { return m.Name == p.Page }) {
		return api.MemoryPage{}, nil
	}
	one, err := c.Memory(ctx, api.MemoryParams{Cwd: p.Cwd, User: p.User, Page: p.Page})
	if err != nil {
		return api.MemoryPage{}, err
	}
	return one.Books[0].Pages[0], nil
}

// newText returns the new text of a page: from a file, stdin or an editor.
func (a *app) newText(ctx context.Context, file, page, before string) (string, error) {
	switch file {
	case "":
		return a.inEditor(ctx, page, before)
	case "-":
		text, err := io.ReadAll(a.in)
		return string(text), err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", usagef("--file: %w", err)
	}
	return string(text), nil
}

// inEditor lets a person edit a text.
func (a *app) inEditor(ctx context.Context, page, before string) (string, error) {
	editor := os.Getenv("VISUAL")
	if editor == "" {
		editor = os.Getenv("EDITOR")
	}
	if editor == "" {
		return "", usagef("neither VISUAL nor EDITOR is set; set one, or use --file FILE")
	}
	dir, err := os.MkdirTemp("", "abide-memory-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, page+".md")
	if before == "" {
		before = fmt.Sprintf("---\ntitle: %s\n---\n\n", page)
	}
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", editor+` "$1"`, "edit", path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w; the page was not changed", editor, err)
	}
	text, err := os.ReadFile(path)
	return string(text), err
}

func (a *app) edited(done api.MemoryEdited, err error, asJSON bool) error {
	switch {
	case err != nil:
		return err
	case asJSON:
		return a.out.json(done)
	}
	a.out.printf("%s is now version %d\n", plain(done.Path), done.Version)
	return nil
}

func (a *app) memoryHistoryCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "history PAGE",
		Short:   "List the versions of a page",
		Example: "  abide memory history decisions\n  abide memory show decisions --version 3",
		Args:    arguments(1, 1, "one PAGE"),
	}
	asJSON, user := jsonFlag(c), userFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			list, err := c.MemoryHistory(cmd.Context(), api.MemoryParams{Cwd: here(), User: *user, Page: args[0]})
			switch {
			case err != nil:
				return err
			case *asJSON:
				return a.out.json(list)
			}
			t := &table{head: []string{"VERSION", "WRITTEN", "SIZE"}}
			for _, v := range list.Versions {
				t.add(strconv.Itoa(v.Version), age(v.Time, time.Now()), size(v.Bytes))
			}
			return a.print(t)
		})
	}
	return c
}

func (a *app) memoryRevertCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "revert PAGE VERSION",
		Short:   "Restore an earlier version of a page",
		Long:    "Restore the text of an earlier version of a page as a new version. The current version\nis kept.",
		Example: "  abide memory revert decisions 3",
		Args:    arguments(2, 2, "PAGE and VERSION"),
	}
	asJSON, user := jsonFlag(c), userFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		version, err := strconv.Atoi(args[1])
		if err != nil || version < 1 {
			return usagef("%q is not a version number (list the versions with: abide memory history %s)", args[1], args[0])
		}
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			done, err := c.RevertMemory(cmd.Context(), api.MemoryParams{Cwd: here(), User: *user, Page: args[0], Version: version})
			return a.edited(done, err, *asJSON)
		})
	}
	return c
}

func (a *app) memoryForgetCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "forget SESSION",
		Short: "Remove from memory what came only from a session",
		Long: `Remove from all pages, and from all their versions, the facts that came only from a
session. Facts that also came from other sessions are kept, without a reference to
this one. The session's history up to now is not read for memory again. This cannot
be undone. To forget a session that was deleted, give its full id, in the folder that
it worked in.`,
		Example: "  abide memory forget 0198c2f1",
		Args:    arguments(1, 1, "one SESSION"),
	}
	asJSON := jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			p := api.MemoryForgetParams{SessionID: event.SessionID(args[0]), Cwd: here()}
			info, err := find(cmd.Context(), c, args[0])
			if err == nil {
				p.SessionID = info.SessionID
			}
			return a.forget(cmd.Context(), c, p, err, *asJSON)
		})
	}
	return c
}

// forget forgets a session. absent is why there is no such session; nil if there is one. A session that is
// not there was deleted if memory has something of it; otherwise nobody knows what was meant.
func (a *app) forget(ctx context.Context, c *client.Client, p api.MemoryForgetParams, absent error, asJSON bool) error {
	gone, err := c.Forget(ctx, p)
	switch {
	case err != nil:
		return err
	case absent != nil && gone.Facts == 0:
		return usagef("%v; nothing was forgotten: for a session that was deleted, give its full id, in the folder that it worked in", absent)
	case asJSON:
		return a.out.json(gone)
	}
	a.out.printf("forgot session %s; facts removed: %d\n", plain(string(p.SessionID)), gone.Facts)
	return nil
}

func (a *app) memoryConsolidateCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "consolidate SESSION",
		Short: "Add a session to memory now",
		Long: `Schedule a job that adds what is new in a session to the pages of memory, and print
the id of the job. The engine does the work in the background; with --wait, wait until
it is done.`,
		Example: "  abide memory consolidate 0198c2f1 --wait\n  abide jobs",
		Args:    arguments(1, 1, "one SESSION"),
	}
	asJSON := jsonFlag(c)
	wait := c.Flags().Bool("wait", false, "wait until the job is done")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withNode(cmd.Context(), func(c *client.Client) error {
			info, err := find(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			id, err := c.Consolidate(cmd.Context(), info.SessionID)
			if err != nil {
				return err
			}
			if *asJSON {
				err = a.out.json(api.JobParams{JobID: id})
			} else {
				a.out.printf("%s\n", id)
			}
			if *wait && err == nil {
				err = c.WaitJob(cmd.Context(), id)
			}
			return err
		}, waitingLifetime(*wait))
	}
	return c
}

func (a *app) jobsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "jobs [SESSION]",
		Short: "List the jobs that maintain memory",
		Long: `List the jobs that maintain memory, of all sessions or of one. A job that has failed
too often is set aside until you retry it; other jobs do not wait for it.`,
		Example: "  abide jobs\n  abide jobs retry 0198c2f1",
		Args:    arguments(0, 1, "at most one SESSION"),
	}
	asJSON := jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			var id event.SessionID
			if len(args) == 1 {
				info, err := find(cmd.Context(), c, args[0])
				if err != nil {
					return err
				}
				id = info.SessionID
			}
			list, err := c.Jobs(cmd.Context(), id)
			switch {
			case err != nil:
				return err
			case *asJSON:
				return a.out.json(list)
			}
			return a.printJobs(list.Jobs)
		})
	}
	c.AddCommand(a.jobsRetryCommand())
	return c
}

func (a *app) printJobs(list []api.Job) error {
	if len(list) == 0 {
		if !a.quiet {
			a.err.printf("there are no jobs\n")
		}
		return nil
	}
	ids := make([]string, len(list))
	for i, j := range list {
		ids[i] = string(j.SessionID)
	}
	short := shorten(ids)
	t := &table{head: []string{"JOB", "KIND", "SESSION", "STATUS", "DUE", "FAILED", "ERROR"}}
	for _, j := range list {
		due := "-"
		if j.Due != "" {
			due = j.Due
		}
		t.add(plain(j.JobID), plain(j.Kind), plain(short[string(j.SessionID)]), j.Status, due, strconv.Itoa(j.Attempts), oneLine(j.Error))
	}
	return a.print(t)
}

func (a *app) jobsRetryCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "retry JOB",
		Short:   "Retry a job that was set aside",
		Example: "  abide jobs retry 0198c2f1",
		Args:    arguments(1, 1, "one JOB"),
	}
	wait := c.Flags().Bool("wait", false, "wait until the job is done")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withNode(cmd.Context(), func(c *client.Client) error {
			id, err := findJob(cmd.Context(), c, args[0])
			if err == nil {
				err = c.RetryJob(cmd.Context(), id)
			}
			if err == nil && *wait {
				err = c.WaitJob(cmd.Context(), id)
			}
			return err
		}, waitingLifetime(*wait))
	}
	return c
}

// findJob finds a job by its id, or by the start of it.
func findJob(ctx context.Context, c *client.Client, name string) (string, error) {
	list, err := c.Jobs(ctx, "")
	if err != nil {
		return "", err
	}
	var found []string
	for _, j := range list.Jobs {
		if strings.HasPrefix(j.JobID, name) {
			found = append(found, j.JobID)
		}
	}
	switch len(found) {
	case 0:
		return "", usagef("there is no job %q (list the jobs with: abide jobs)", name)
	case 1:
		return found[0], nil
	}
	return "", usagef("job id %q is ambiguous: %d jobs start with it:\n  %s", name, len(found), strings.Join(found, "\n  "))
}

// waitingLifetime returns the lifetime of a command that waits for a job or does not.
func waitingLifetime(waits bool) lifetime {
	if waits {
		return oneCommand
	}
	return visitor
}
