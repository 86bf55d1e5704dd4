package tui

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tui/markdown"
	"github.com/abide-run/abide/internal/tui/text"
)

// A slashCommand is a command of the chat.
type slashCommand struct {
	name, about string
	do          func(c *chat, rest string) tea.Cmd
}

// slashCommands returns the commands of the chat.
func (c *chat) slashCommands() []slashCommand {
	list := []slashCommand{
		{"help", "commands and keys", func(c *chat, _ string) tea.Cmd { return tea.Batch(c.page(newPager(helpTitle, c.help())), c.bring()) }},
		{"model", "change the model: /model NAME", (*chat).setModel},
		{"mode", "change the mode: interactive, plan or autopilot", (*chat).setMode},
		{"plan", "plan mode: nothing is changed before you approve a plan", func(c *chat, _ string) tea.Cmd { return c.setMode(event.ModePlan) }},
		{"compact", "summarise the older part of the conversation", (*chat).compact},
		{"diff", "what this session has changed in files", func(c *chat, _ string) tea.Cmd { return c.showChanges() }},
		{"rewind", "go back to an earlier message", func(c *chat, _ string) tea.Cmd { return c.rewindPicker() }},
		{"fork", "go on in a copy of this session: /fork NAME", (*chat).fork},
		{"sessions", "open another session", func(c *chat, _ string) tea.Cmd { return c.sessionPicker() }},
		{"new", "begin a new session", func(c *chat, _ string) tea.Cmd { return c.open("") }},
		{"rename", "name this session: /rename NAME", (*chat).rename},
		{"tasks", "commands in the background", func(c *chat, _ string) tea.Cmd { return c.tasksPicker() }},
		{"attach", "give the terminal to a command in the background; Ctrl-] takes it back", func(c *chat, _ string) tea.Cmd { return c.attachOnly() }},
		{"copy", "copy the last answer; /copy code its last code block, /copy 2 the answer before", (*chat).copy},
		{"export", "write the log to a file: /export FILE", (*chat).export},
		{"quit", "leave; the session stays", func(c *chat, _ string) tea.Cmd { c.leaving = true; return nil }},
	}
	for _, r := range c.opts.Reports {
		list = append(list, slashCommand{r.Name, r.About, func(c *chat, _ string) tea.Cmd { return c.report(r) }})
	}
	return list
}

// slash carries out a command of the chat. It reports false if the text is a path or a
// sentence and no command.
func (c *chat) slash(said string) (tea.Cmd, bool) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(said, "/"), " ")
	for _, cmd := range c.slashCommands() {
		if cmd.name == name {
			return cmd.do(c, strings.TrimSpace(rest)), true
		}
	}
	if !c.isCommand("/"+name) && (name == "" || strings.ContainsAny(name, "/.\n")) {
		return nil, false
	}
	return c.invoke(name, strings.TrimSpace(rest), said), true
}

// keyHelp are the keys of the chat.
const keyHelp = `Enter            send; while a turn runs, the message waits for its end
Ctrl-S           send now, to the turn that runs
Shift-Enter      line break; also Alt-Enter, Ctrl-J, or \ before Enter
Esc              stop the turn; twice in an empty editor: go back in the conversation
Ctrl-C           clear the draft, or stop the turn; twice: leave
Ctrl-D           leave, in an empty editor
↑ ↓  Ctrl-R      earlier messages; search them
Ctrl-O  PgUp     the whole conversation, with thoughts, arguments and output
Ctrl-T           commands in the background
Ctrl-G           write the message in $EDITOR
Tab              answer the question that waits; complete a word
Ctrl-Z           suspend
@file  !command  name a file; run a command of your own and share its output`

// helpTitle is the title of the page with commands and keys.
const helpTitle = "help"

// help returns the commands and keys.
func (c *chat) help() []text.Line {
	lines := []text.Line{text.Styled("Keys", text.Style{Bold: true})}
	lines = append(lines, text.Lines(keyHelp, text.Style{})...)
	lines = append(lines, nil, text.Styled("Commands", text.Style{Bold: true}))
	for _, cmd := range c.slashCommands() {
		lines = append(lines, text.Plain(fmt.Sprintf("/%-15s %s", cmd.name, cmd.about)))
	}
	if len(c.brought.list) > 0 {
		lines = append(lines, nil, text.Styled("Of skills, MCP servers and other clients", text.Style{Bold: true}))
	}
	for _, info := range c.brought.list {
		lines = append(lines, text.Plain(fmt.Sprintf("/%-15s %s", text.OneLine(info.Name), about(info))))
	}
	return lines
}

// report shows a text of the program.
func (c *chat) report(r Report) tea.Cmd {
	id, columns := c.session.ID, c.columns
	return c.do(func(ctx context.Context) (func() tea.Cmd, error) {
		s, err := r.Text(ctx, id, columns)
		return func() tea.Cmd { return c.page(newPager(r.Name, text.Parse(s))) }, err
	})
}

// request makes a request and says what came of it.
func (c *chat) request(done string, f func(ctx context.Context) error) tea.Cmd {
	return c.do(func(ctx context.Context) (func() tea.Cmd, error) {
		err := f(ctx)
		return func() tea.Cmd { c.notify(done); return c.tick() }, err
	})
}

// setModel changes the model, or shows which there are.
func (c *chat) setModel(name string) tea.Cmd {
	id := c.session.ID
	if name != "" {
		return c.request("the model is now "+name, func(ctx context.Context) error {
			return c.opts.Client.SwitchModel(ctx, api.SwitchParams{SessionID: id, ModelID: name})
		})
	}
	return c.do(func(ctx context.Context) (func() tea.Cmd, error) {
		models, err := c.opts.Client.Models(ctx)
		p := &picker{title: "model", filters: true, hint: "Enter chooses · Esc closes", pick: func(c *chat, v any) tea.Cmd { return c.setModel(v.(string)) }}
		for _, m := range models {
			p.choices = append(p.choices, choice{text.Plain(text.OneLine(m.ID)), m.ID + " " + m.Name, m.ID})
		}
		return func() tea.Cmd { return c.page(p) }, err
	})
}

func (c *chat) setMode(mode string) tea.Cmd {
	switch mode {
	case event.ModeInteractive, event.ModePlan, event.ModeAutopilot:
	default:
		c.notify("the modes are interactive, plan and autopilot; this is " + c.status.mode)
		return nil
	}
	if mode == c.status.mode && mode == event.ModePlan {
		mode = event.ModeInteractive // a second /plan ends it
	}
	id := c.session.ID
	return c.do(func(ctx context.Context) (func() tea.Cmd, error) {
		err := c.opts.Client.SetMode(ctx, id, mode)
		return func() tea.Cmd { c.status.mode = mode; c.notify(mode + " mode"); return c.tick() }, err
	})
}

func (c *chat) compact(instructions string) tea.Cmd {
	id := c.session.ID
	c.notify("compacting the conversation")
	return tea.Batch(c.tick(), c.do(func(ctx context.Context) (func() tea.Cmd, error) {
		r, err := c.opts.Client.Compact(ctx, api.CompactParams{SessionID: id, CustomInstructions: instructions})
		said := "compacted"
		if !r.Success {
			said = "not compacted"
			if r.Error != "" {
				said += ": " + r.Error
			}
		}
		return func() tea.Cmd { c.notify(said); return c.tick() }, err
	}))
}

func (c *chat) rename(name string) tea.Cmd {
	if name == "" {
		c.notify("give a name: /rename NAME")
		return nil
	}
	id := c.session.ID
	return c.request("the session is now "+name, func(ctx context.Context) error { return c.opts.Client.Rename(ctx, id, name) })
}

func (c *chat) export(name string) tea.Cmd {
	if name == "" {
		c.notify("name a file: /export FILE")
		return nil
	}
	id := c.session.ID
	return c.request("written to "+name, func(ctx context.Context) error { return c.opts.Export(ctx, id, name) })
}

func (c *chat) fork(name string) tea.Cmd {
	id := c.session.ID
	return c.do(func(ctx context.Context) (func() tea.Cmd, error) {
		r, err := c.opts.Client.Fork(ctx, api.ForkParams{SessionID: id, Name: name})
		return func() tea.Cmd { return c.open(r.SessionID) }, err
	})
}

// showChanges shows the changes of files in the conversation.
func (c *chat) showChanges() tea.Cmd {
	id := c.session.ID
	return c.do(func(ctx context.Context) (func() tea.Cmd, error) {
		events, err := readEvents(ctx, c.opts.Client, id, 0, 0)
		var lines []text.Line
		for _, e := range events {
			d, err := event.As[event.ToolCompleteData](e)
			if e.Type != event.ToolComplete || err != nil || d.Result == nil || !strings.Contains(d.Result.DetailedContent, "\n@@") {
				continue
			}
			name, _, _ := strings.Cut(strings.TrimPrefix(d.Result.DetailedContent, "\ndiff --git a"), " b/")
			lines = append(lines, nil, text.Styled(text.OneLine(name), text.Style{Bold: true}))
			lines = append(lines, markdown.Diff(text.Clean(d.Result.DetailedContent))...)
		}
		if len(lines) == 0 {
			lines = []text.Line{text.Plain("this session has changed no file with its own tools")}
		}
		return func() tea.Cmd { return c.page(newPager("changes", lines)) }, err
	})
}

// maxCopied is the number of bytes that terminals take into the clipboard.
const maxCopied = 74994

// copy puts an answer, or a code block of it, into the clipboard.
func (c *chat) copy(what string) tea.Cmd {
	nth := 1
	if n, err := strconv.Atoi(what); err == nil && n > 0 {
		nth = n
	}
	id := c.session.ID
	return c.do(func(ctx context.Context) (func() tea.Cmd, error) {
		answer, err := c.answerBefore(ctx, id, nth)
		if err != nil {
			return nil, err
		}
		if what == "code" {
			answer = lastCode(answer)
		}
		return func() tea.Cmd { c.toClipboard(answer); return c.tick() }, nil
	})
}

// answerBefore returns the text of the model's nth answer from the end; empty if there is
// none.
func (c *chat) answerBefore(ctx context.Context, id event.SessionID, nth int) (string, error) {
	events, err := readEvents(ctx, c.opts.Client, id, 0, 0)
	for i := len(events) - 1; i >= 0; i-- {
		d, err := event.As[event.AssistantMessageData](events[i])
		if events[i].Type != event.AssistantMessage || err != nil || d.Content == "" {
			continue
		}
		if nth--; nth == 0 {
			return d.Content, nil
		}
	}
	return "", err
}

// lastCode returns the last code block of a text.
func lastCode(s string) string {
	var block, last []string
	inside := false
	for line := range strings.SplitSeq(s, "\n") {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && inside:
			last, inside = block, false
		case fence:
			block, inside = nil, true
		case inside:
			block = append(block, line)
		}
	}
	return strings.Join(last, "\n")
}

// toClipboard asks the terminal to put a text into the clipboard, also through tmux.
func (c *chat) toClipboard(s string) {
	switch {
	case s == "":
		c.notify("there is nothing to copy")
		return
	case len(s) > maxCopied:
		c.notify("too long for the clipboard of a terminal: write it to a file with /export")
		return
	}
	sequence := "\x1b]52;c;" + base64.StdEncoding.EncodeToString([]byte(s)) + "\a"
	c.screen.Send(sequence)
	if os.Getenv("TMUX") != "" {
		c.screen.Send("\x1bPtmux;" + strings.ReplaceAll(sequence, "\x1b", "\x1b\x1b") + "\x1b\\")
	}
	c.notify(plural(len(s), "byte copied, if the terminal lets programs copy", "bytes copied, if the terminal lets programs copy"))
}

// own runs a command of the person in the session. Its output is shown, and sent with the
// next message.
func (c *chat) own(command string) tea.Cmd {
	if c.ownTask != "" {
		c.editor.Set("!" + command)
		c.notify("another command of yours runs; Ctrl-C ends it")
		return nil
	}
	c.ownTask = command
	id, cl := c.session.ID, c.opts.Client
	return tea.Batch(c.tick(), func() tea.Msg {
		task, err := cl.Exec(c.ctx, api.ShellExecParams{SessionID: id, Command: command})
		if err != nil {
			return func() tea.Cmd { c.ownTask = ""; c.fail(err); return c.tick() }
		}
		c.send(func() tea.Cmd { c.ownID = task; return nil })
		out, last, err := c.output(id, task)
		return func() tea.Cmd { return c.ownEnded(command, out, last, err) }
	})
}

// maxOwn is how much of the output of a command of the person is kept.
const maxOwn = 256 << 10

// output reads the output of a command to its end.
func (c *chat) output(id event.SessionID, task string) (string, api.Task, error) {
	p := api.TaskOutputParams{SessionID: id, TaskID: task, Wait: true}
	var b strings.Builder
	for {
		r, err := c.opts.Client.TaskOutput(c.ctx, p)
		if err != nil {
			return b.String(), r.Task, err
		}
		if b.Len() < maxOwn {
			b.Write(r.Data)
		}
		if r.End {
			return b.String(), r.Task, nil
		}
		p.Offset = r.Next
	}
}

// ownEnded shows what a command of the person has put out.
func (c *chat) ownEnded(command, out string, task api.Task, err error) tea.Cmd {
	c.ownTask, c.ownID = "", ""
	if err != nil {
		c.fail(err)
		return c.tick()
	}
	ending := task.Status
	if task.ExitCode != nil {
		ending = fmt.Sprintf("exit code %d", *task.ExitCode)
	}
	c.screen.Append(nil, text.Line{{Text: "! ", Style: text.Style{Colour: text.Magenta, Bold: true}}, {Text: text.OneLine(command)}, {Text: "  " + ending, Style: text.Style{Faint: true}}})
	lines := strings.Split(strings.Trim(text.Clean(out), "\n"), "\n")
	const most = 200
	if more := len(lines) - most; more > 0 {
		c.screen.Append(text.Styled(fmt.Sprintf("… %d lines …", more), text.Style{Faint: true}))
		lines = lines[more:]
	}
	for _, l := range lines {
		c.screen.Append(text.Plain(l))
	}
	c.editor.Fold(fmt.Sprintf("output of %s, %s", text.Plain(text.OneLine(command)).Cut(30), ending), fmt.Sprintf("I ran this command (%s):\n\n```\n$ %s\n%s\n```\n\n", ending, command, strings.TrimRight(out, "\n")))
	c.editor.Insert(" ")
	c.notify("the output goes with your next message; Backspace removes it")
	return c.tick()
}

// endOwn ends the command of the person.
func (c *chat) endOwn() tea.Cmd {
	id, task := c.session.ID, c.ownID
	if task == "" {
		return nil
	}
	return c.do(func(ctx context.Context) (func() tea.Cmd, error) {
		_, err := c.opts.Client.StopTask(ctx, api.TaskParams{SessionID: id, TaskID: task})
		return func() tea.Cmd { return nil }, err
	})
}

// externalEditor lets the person write the message in another editor.
func (c *chat) externalEditor() tea.Cmd {
	name := os.Getenv("VISUAL")
	if name == "" {
		name = os.Getenv("EDITOR")
	}
	if name == "" {
		c.notify("set EDITOR to the editor to use")
		return nil
	}
	file, err := os.CreateTemp("", "abide-*.md")
	if err == nil {
		_, err = file.WriteString(c.editor.Text())
		if closed := file.Close(); err == nil {
			err = closed
		}
	}
	if err != nil {
		c.fail(err)
		return nil
	}
	c.screen.Pause() // while keys are still read, so that the editor does not get what the terminal answers
	cmd := &program{exec.Command("sh", "-c", name+` "$1"`, "sh", file.Name()), c}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.opts.In, c.opts.Out, c.opts.Out
	return tea.Exec(&execution{cmd}, func(err error) tea.Msg {
		return func() tea.Cmd { return c.edited(file.Name(), err) }
	})
}

// edited takes in what was written in another editor.
func (c *chat) edited(file string, err error) tea.Cmd {
	defer os.Remove(file)
	c.columns, c.rows = c.terminal.size()
	c.screen.Resize(c.columns, c.rows)
	b, readErr := os.ReadFile(file)
	switch {
	case err != nil:
		c.notify("the editor failed, so the draft is as it was: " + err.Error())
	case readErr != nil:
		c.fail(readErr)
	default:
		c.editor.Set(strings.TrimRight(string(b), "\n"))
	}
	return c.tick()
}
