package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tui/block"
	"github.com/abide-run/abide/internal/tui/text"
)

const demoHelp = `Show in about half a minute what abide is for, without a key. A scripted agent fixes a
real bug in a small project, with real tools. Its slow test run goes to the background, a
question waits for you, and the engine is killed with kill -9. Then another engine goes
on, the question is answered by a second client, and nothing is lost.

Everything is in a temporary folder, which is removed at the end.`

// demoPause is the time that a person has to read a part of the demo.
const demoPause = 1500 * time.Millisecond

func (a *app) demoCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "demo",
		Short:   "Show in half a minute what abide is for",
		Long:    demoHelp,
		Example: "  abide demo\n  abide demo --keep",
		Args:    arguments(0, 0, "no arguments"),
	}
	keep := c.Flags().Bool("keep", false, "keep the folder, to look around in it")
	pause := c.Flags().Duration("pause", demoPause, "`TIME` to read between two parts; none if stdout is not a terminal")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		d := &demo{app: a, ctx: cmd.Context(), pause: *pause, paint: paint(a.out), began: time.Now()}
		if terminal(a.out) == nil && !cmd.Flags().Changed("pause") {
			d.pause = 0
		}
		return d.run(*keep)
	}
	return c
}

// A demo is one run of abide demo.
type demo struct {
	app   *app
	ctx   context.Context
	pause time.Duration
	paint painter
	began time.Time
	part  int

	program string // path of this program
	dir     string // folder of the demo
	project string // folder in it in which the agent works
	home    string // data folder
	session event.SessionID
	engine  *exec.Cmd // the engine; nil if none was started
	talk    *block.Conversation
	seen    event.Seq
	allowed bool // true when the question is answered
	told    bool // true when the agent was told of the end of the tests
}

// run tells the story from its beginning to its end.
func (d *demo) run(keep bool) (err error) {
	if err := d.prepare(); err != nil {
		return fmt.Errorf("cannot prepare the demo: %w", err)
	}
	defer func() {
		err = errors.Join(err, d.tidy(keep))
	}()
	for _, part := range []func() error{d.start, d.work, d.kill, d.answer, d.finish} {
		if err := part(); err != nil {
			return err
		}
		if d.ctx.Err() != nil {
			return context.Cause(d.ctx)
		}
	}
	d.next(keep)
	return d.app.out.err
}

// demoFiles are the files of the project: a program with a bug, a test of it that takes
// its time, and a step that needs a person's permission.
var demoFiles = map[string]string{
	"slug.sh": `# Prints the address of a page: slug.sh "Hello World" prints hello-world.
printf '%s\n' "$1" | tr 'A-Z' 'a-z' | sed 's/ /-/'
`,
	"test.sh": `# test.sh quick makes one check; test.sh all makes twelve, and is slow.
failed=0
check() {
  got=$(sh slug.sh "$1")
  if [ "$got" = "$2" ]; then echo "ok    $1 -> $got"; else echo "FAIL  $1 -> $got, want $2"; failed=1; fi
}
check "Hello Big World" hello-big-world
if [ "$1" = all ]; then
  for word in one two three four five six seven eight nine ten eleven; do
    sleep "$2"
    check "Part $word of it" "part-$word-of-it"
  done
fi
exit $failed
`,
	"publish.sh": `echo "published slug 1.1" | tee published
`,
}

// demoScenario is what the scripted model says; PAUSE is the time between two slow checks.
//
//go:embed demo.json
var demoScenario string

// demoSlowTest is the description of the command that runs in the background.
const demoSlowTest = "Run all tests"

// demoTask is what the agent is asked.
const demoTask = "The test fails. Fix slug.sh, run all tests, and publish it."

// prepare makes the folder of the demo.
func (d *demo) prepare() (err error) {
	if d.program, err = os.Executable(); err != nil {
		return err
	}
	if d.dir, err = os.MkdirTemp("", "abide-demo-"); err != nil {
		return err
	}
	d.project, d.home = filepath.Join(d.dir, "project"), filepath.Join(d.dir, "home")
	d.app.home = d.home
	slow := "0.3"
	if d.pause > 0 {
		slow = "1"
	}
	files := map[string]string{
		"scenario.json":    strings.ReplaceAll(demoScenario, "PAUSE", slow),
		"home/config.toml": "[permissions]\nallow = [\"bash(sh test.sh *)\"]\n",
	}
	for name, content := range demoFiles {
		files["project/"+name] = content
	}
	for name, content := range files {
		path := filepath.Join(d.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return err
		}
	}
	d.talk = block.New(block.Options{Describe: describeEvent, Asked: askedAbout})
	return nil
}

// tidy ends what was started and removes the folder.
func (d *demo) tidy(keep bool) error {
	if d.engine != nil {
		stopping := d.command("stop", string(d.session))
		stopping.Run() // what is left of the work of a demo that has failed
		d.engine.Process.Signal(syscall.SIGTERM)
		d.engine.Wait()
	}
	if keep {
		return nil
	}
	return os.RemoveAll(d.dir)
}

// tell begins a part of the story, and leaves time to read it.
func (d *demo) tell(format string, a ...any) {
	d.part++
	d.rest()
	d.app.out.printf("\n%s\n", d.paint.in(bold, fmt.Sprintf("%d. %s", d.part, fmt.Sprintf(format, a...))))
	d.rest()
}

// rest waits until a person has read what is there.
func (d *demo) rest() {
	select {
	case <-time.After(d.pause):
	case <-d.ctx.Done():
	}
}

// command returns a command of this program that works with the data folder of the demo.
func (d *demo) command(args ...string) *exec.Cmd {
	c := exec.CommandContext(d.ctx, d.program, append([]string{"--home", d.home}, args...)...)
	c.Args[0] = "abide"
	c.Dir = d.project
	return c
}

// shell shows a command as it would be typed, and what it prints.
func (d *demo) shell(args ...string) error {
	d.typed("abide " + strings.Join(args, " "))
	c := d.command(args...)
	var errs bytes.Buffer
	c.Stdout, c.Stderr = d.app.out, &errs
	if err := c.Run(); err != nil {
		return fmt.Errorf("abide %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return nil
}

func (d *demo) typed(line string) { d.app.out.printf("%s\n", d.paint.in(green, "$ "+line)) }

// start starts an engine and gives the agent its task.
func (d *demo) start() error {
	d.tell("A project has a bug, and an agent gets the task to fix it. An engine runs in the background.")
	if err := d.serve(); err != nil {
		return err
	}
	d.typed(fmt.Sprintf("abide run --detach %q", demoTask))
	out, err := d.command("run", "--quiet", "--detach", "--scenario", filepath.Join(d.dir, "scenario.json"), "-p", demoTask).Output()
	if err != nil {
		return fmt.Errorf("cannot give the agent its task: %w", err)
	}
	d.session = event.SessionID(strings.TrimSpace(string(out)))
	d.app.out.printf("%s\n", d.session)
	return nil
}

// serve starts an engine and waits until it serves.
func (d *demo) serve() error {
	d.typed("abide serve &")
	c := d.command("serve")
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	d.engine = c
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the engine does not start: %w", err)
	}
	d.app.out.printf("%s\n", d.paint.in(faint, fmt.Sprintf("[%d] %s", c.Process.Pid, strings.TrimSpace(line))))
	return nil
}

// work shows what the agent does until it asks.
func (d *demo) work() error {
	d.tell("It works with real tools. The slow test run goes to the background, and then it needs your permission.")
	if err := d.watch(func(e event.Event) bool { return e.Type == event.PermissionAsked }); err != nil {
		return err
	}
	d.rest()
	return d.shell("questions")
}

// kill kills the engine, and shows what goes on without it.
func (d *demo) kill() error {
	d.tell("Now the worst happens: the engine is killed. The question is on disk, and the tests run on without it.")
	d.typed(fmt.Sprintf("kill -9 %d", d.engine.Process.Pid))
	if err := d.engine.Process.Kill(); err != nil {
		return err
	}
	ended := d.engine.Wait()
	d.app.out.printf("%s\n", d.paint.in(faint, fmt.Sprintf("[%d] %v", d.engine.Process.Pid, ended)))
	d.engine = nil
	return d.shell("ps")
}

// answer starts another engine, and answers the question from another client.
func (d *demo) answer() error {
	d.tell("Another engine takes over. A second client answers the question, and the turn goes on where it was.")
	if err := d.serve(); err != nil {
		return err
	}
	d.typed(fmt.Sprintf("abide answer %s yes", d.session))
	var said bytes.Buffer
	c := d.command("answer", string(d.session), "yes")
	c.Stdout, c.Stderr = io.Discard, &said
	if err := c.Start(); err != nil {
		return err
	}
	var answering sync.WaitGroup
	var failed error
	answering.Go(func() { failed = c.Wait() })
	err := d.watch(func(e event.Event) bool {
		switch e.Type {
		case event.SystemNotification:
			d.told = true
		case event.PermissionDone:
			d.allowed = true
		case event.AssistantMessage:
			m, err := event.As[event.AssistantMessageData](e)
			return err == nil && d.told && d.allowed && len(m.ToolRequests) == 0
		}
		return false
	})
	answering.Wait()
	if failed != nil {
		return fmt.Errorf("abide answer: %w: %s", failed, strings.TrimSpace(said.String()))
	}
	return err
}

// finish shows that nothing is missing.
func (d *demo) finish() error {
	d.tell("Nothing is missing: the output and the exit code of the tests, and every event of the log.")
	task, err := d.slowTest()
	if err != nil {
		return err
	}
	for _, args := range [][]string{{"logs", task}, {"ps", "--all"}, {"sessions", "verify", string(d.session)}} {
		if err := d.shell(args...); err != nil {
			return err
		}
		d.rest()
	}
	return nil
}

// slowTest returns the id of the command that ran in the background.
func (d *demo) slowTest() (id string, err error) {
	err = d.app.withVisitor(d.ctx, func(c *client.Client) error {
		list, err := c.Tasks(d.ctx, api.TasksParams{SessionID: d.session, All: true})
		for _, t := range list.Tasks {
			if t.Description == demoSlowTest {
				id = t.TaskID
			}
		}
		return err
	})
	if id == "" && err == nil {
		err = errors.New("the command that ran in the background is not listed")
	}
	return id, err
}

// next says what to try next.
func (d *demo) next(keep bool) {
	d.app.out.printf("\n%s\n", d.paint.in(bold, fmt.Sprintf("That took %.0f seconds. Try next:", time.Since(d.began).Seconds())))
	if keep {
		d.app.out.printf("  abide --home %s --resume %s   # this session, in the chat\n", d.home, d.session)
	}
	d.app.out.printf("  abide                            # talk to an agent; the offline model needs no key\n" +
		"  abide run 'Run `make test`'      # one task, for people and scripts\n" +
		"  abide serve &                    # an engine that goes on when you close the terminal\n" +
		"  abide doctor                     # is everything right here?\n")
}

// watch shows the events of the session until one of them ends the wait.
func (d *demo) watch(over func(event.Event) bool) error {
	columns := cmp.Or(width(d.app.out), 100)
	encoder := text.Encoder{NoColour: !d.paint.colours, NoStyle: !d.paint.colours, ASCII: !knowsUTF8()}
	return d.app.withVisitor(d.ctx, func(c *client.Client) error {
		events := newLogFeed(c, d.session)
		events.after = d.seen
		look := time.NewTicker(50 * time.Millisecond)
		defer look.Stop()
		for {
			for e, err := range events.take(d.ctx) {
				if err != nil {
					return err
				}
				d.seen = e.Seq
				for _, l := range d.talk.Add(e, columns) {
					d.app.out.printf("%s\n", encoder.Encode(l))
				}
				if over(e) {
					return nil
				}
			}
			select {
			case <-look.C:
			case <-d.ctx.Done():
				return context.Cause(d.ctx)
			case <-c.Done():
				return fmt.Errorf("lost the connection to the engine: %w", c.Err())
			}
		}
	})
}
