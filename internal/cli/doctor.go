package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/folder"
)

func (a *app) doctorCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check that everything is as it should be, and say what to do",
		Long: `Looks at the configuration, the data folder and its disk, the log, the shell, the
keys and the model's endpoint. Nothing is changed. The exit code is 1 if something
does not work.`,
		Args: arguments(0, 0, "no argument"),
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

// A finding is what a look at one thing gave.
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

// examine looks at everything. What depends on something that is bad is left
// out.
func (a *app) examine(ctx context.Context) []finding {
	var list []finding
	add := func(what, state, format string, args ...any) {
		list = append(list, finding{what, state, fmt.Sprintf(format, args...)})
	}
	loaded, err := a.settings()
	switch {
	case err != nil:
		add("configuration", bad, "%v", err)
		return list
	case len(loaded.Ignored) > 0:
		add("configuration", doubt, "%d keys of a folder that is not trusted are ignored; see abide trust", len(loaded.Ignored))
	default:
		add("configuration", good, "%d values are set", len(loaded.Origins))
	}
	dir, err := dataFolder(a.home, "ABIDE_HOME")
	var data *folder.Folder
	if err == nil {
		data, err = folder.Open(dir)
	}
	if err != nil {
		add("data folder", bad, "%v", err)
		return list
	}
	add("data folder", good, "%s", data.Dir())
	examineDisk(data.Dir(), add)
	a.examineLog(ctx, add)
	examineShell(add)
	provider, _, err := chosen(loaded.Config)
	if err != nil {
		add("model", bad, "%v", err)
		return list
	}
	examineEndpoint(ctx, provider, add)
	return list
}

type note func(what, state, format string, args ...any)

// examineDisk looks at how much room there is, and what a sync costs.
func examineDisk(dir string, add note) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err == nil {
		free := int64(s.Bavail) * int64(s.Bsize)
		state := good
		switch {
		case free < 64<<20:
			state = bad
		case free < 1<<30:
			state = doubt
		}
		add("disk", state, "%d MiB are free; when nothing is left, nothing is accepted any more", free>>20)
	}
	took, err := syncSpeed(dir)
	switch {
	case err != nil:
		add("sync", bad, "a file cannot be written and synced: %v", err)
	case took > 100*time.Millisecond:
		add("sync", doubt, "%v for a small write; each turn waits for two of them", took.Round(time.Millisecond))
	default:
		add("sync", good, "%v for a small write", took.Round(time.Microsecond))
	}
}

// syncSpeed is the middle of a few small synced writes.
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

// examineLog asks the engine what it has.
func (a *app) examineLog(ctx context.Context, add note) {
	err := a.visit(ctx, func(c *client.Client) error {
		list, err := c.List(ctx, "")
		if err != nil {
			return err
		}
		damaged := slices.DeleteFunc(slices.Clone(list), func(s api.SessionInfo) bool { return s.Abide == nil || s.Abide.Damage == "" })
		if len(damaged) > 0 {
			add("log", doubt, "%d of %d sessions are damaged; abide sessions verify says where", len(damaged), len(list))
		} else {
			add("log", good, "%d sessions", len(list))
		}
		return nil
	})
	if err != nil {
		add("log", bad, "%v", err)
	}
}

func examineShell(add note) {
	if path, err := exec.LookPath("bash"); err == nil {
		add("shell", good, "%s", path)
	} else {
		add("shell", doubt, "bash is not in PATH: commands will not run")
	}
}

// examineEndpoint asks the model's endpoint for a sign of life, and for the time.
func examineEndpoint(ctx context.Context, p *api.Provider, add note) {
	if p == nil {
		add("model", good, "the offline model, which needs no key; set OPENAI_API_KEY or a [model] in the configuration for another")
		return
	}
	if p.APIKey == "" {
		add("key", doubt, "there is none for %s; that is fine for a local server", p.BaseURL)
	} else {
		add("key", good, "there is one for %s", p.BaseURL)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(p.BaseURL, "/")+"/models", nil)
	if err != nil {
		add("endpoint", bad, "%s is no address: %v", p.BaseURL, errors.Unwrap(err))
		return
	}
	req.Header.Set("Authorization", "Bearer "+p.APIKey)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		add("endpoint", bad, "%s does not answer: %v", p.BaseURL, errors.Unwrap(err))
		return
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		add("endpoint", bad, "%s refuses the key (%s)", p.BaseURL, resp.Status)
	case resp.StatusCode >= 500:
		add("endpoint", doubt, "%s has a problem of its own (%s)", p.BaseURL, resp.Status)
	default:
		add("endpoint", good, "%s answers (%s)", p.BaseURL, resp.Status)
	}
	examineClock(resp.Header.Get("Date"), add)
}

// examineClock compares the clock with another one.
func examineClock(date string, add note) {
	theirs, err := http.ParseTime(date)
	if err != nil {
		return
	}
	if off := time.Since(theirs).Abs(); off > 2*time.Minute {
		add("clock", doubt, "it is %v off from that of the endpoint: times in the log are wrong by that much", off.Round(time.Second))
	} else {
		add("clock", good, "as that of the endpoint")
	}
}

func (a *app) printFindings(list []finding) error {
	t := &table{head: []string{"WHAT", "STATE", "FINDING"}}
	for _, f := range list {
		t.add(f.What, f.State, plain(f.Text))
	}
	return a.print(t)
}
