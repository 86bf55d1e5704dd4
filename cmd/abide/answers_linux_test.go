package main

import (
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// twoNotes makes the model ask for two permissions at once.
const twoNotes = "Call note with value 'X' and note with value 'Y', then reply with both results"

// shownSession returns the id of the session that a run at a terminal has printed.
func shownSession(t *testing.T, shown string) string {
	t.Helper()
	found := regexp.MustCompile(`session ([0-9a-f-]+)`).FindStringSubmatch(shown)
	if found == nil {
		t.Fatalf("the terminal does not show the session: %q", shown)
	}
	return found[1]
}

// requestAbout returns the id of the open question that contains a text.
func requestAbout(t *testing.T, dir, text string) string {
	t.Helper()
	list := output(t, dir, "questions", "--json")
	found := regexp.MustCompile(`"request_id":"([^"]+)","kind":"permission","question":"[^"]*` + text).FindStringSubmatch(list)
	if found == nil {
		t.Fatalf("no open question contains %s: %s", text, list)
	}
	return found[1]
}

// answerElsewhere answers a question from another program, which ends because of the
// question that is left.
func answerElsewhere(t *testing.T, dir, id, request, answer string) {
	t.Helper()
	p := command(t, dir, "answer", id, request, answer)
	p.Path, p.Args[0] = lookPath(t, "abide-tools"), "abide-tools"
	if err := p.Run(); err != nil && p.ProcessState.ExitCode() != 5 {
		t.Fatalf("abide answer: %v; %s", err, p.stderr)
	}
}

// A yes is half typed when somebody else answers the question. It is not the answer to
// the next question, which takes its place on the screen.
func TestAYesForAQuestionThatIsGoneDoesNotAnswerTheNextOne(t *testing.T) {
	t.Parallel()
	x, dir := newTerminal(t), t.TempDir()
	p := x.start(dir, "abide-tools", "run", twoNotes)
	must(t, p.Start())
	id := shownSession(t, x.await(`note X.*instead:`))
	x.typed("y")
	x.await(`y`) // the terminal has it
	answerElsewhere(t, dir, id, requestAbout(t, dir, "note X"), "yes")
	x.await(`\(answered elsewhere.*note Y.*instead:`)
	x.typed("\n")
	x.await(`note Y.*instead:|noted Y`) // an empty line is no answer, so it is asked again
	if got := notes(t, dir); strings.Contains(got, "Y") {
		t.Fatalf("the yes for the first question approved the second: %q", got)
	}
	x.typed("y\n")
	x.await(`noted X\r\nnoted Y`)
	if code := x.awaitExit(p); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// A whole line is typed while the program does not look, and so does the answer of
// somebody else come. Whichever it sees first, the line answers no other question.
func TestALineThatWasTypedForAnotherQuestionIsDiscarded(t *testing.T) {
	t.Parallel()
	x, dir := newTerminal(t), t.TempDir()
	engine := command(t, dir, "serve")
	engine.Path, engine.Args[0] = lookPath(t, "abide-tools"), "abide-tools"
	engine.begin()
	engine.await("serves .*engine")
	defer engine.Process.Signal(syscall.SIGTERM)
	p := x.start(dir, "abide-tools", "run", twoNotes)
	must(t, p.Start())
	id := shownSession(t, x.await(`note X.*instead:`))
	pid := p.pid()
	must(t, syscall.Kill(pid, syscall.SIGSTOP))
	answerElsewhere(t, dir, id, requestAbout(t, dir, "note X"), "yes")
	x.typed("y\n")
	x.await(`y\r\n`)
	must(t, syscall.Kill(pid, syscall.SIGCONT))
	x.await(`answered elsewhere.*note Y.*instead:`)
	x.typed("huh\n") // a reply to this line shows that the lines before it were read
	x.await(`is no answer.*note Y.*instead:|noted Y`)
	if got := notes(t, dir); strings.Contains(got, "Y") {
		t.Fatalf("the yes for the first question approved the second: %q", got)
	}
	x.typed("n\n")
	x.awaitExit(p)
}

// What is typed while nothing is asked stays in the terminal, for the shell. What was typed
// for a question does not: the shell would run it.
func TestWhatIsTypedWhileNothingIsAskedIsLeftForTheShell(t *testing.T) {
	t.Parallel()
	x, dir := newTerminal(t), t.TempDir()
	p := x.start(dir, "abide", "-c", `abide run --quiet "Ask me: Q?"; read line; echo "read: $line"`)
	p.Path, p.Args[0] = lookPath(t, "sh"), "sh"
	must(t, p.Start())
	x.await(`answer:`)
	x.typed("y")
	x.await(`y`)
	id := regexp.MustCompile(`"session_id":"([^"]+)"`).FindStringSubmatch(output(t, dir, "questions", "--json"))[1]
	if got := output(t, dir, "answer", id, "from elsewhere"); got != "User responded: from elsewhere\n" {
		t.Errorf("the other one is told %q", got)
	}
	x.await(`^\r\n\S*\(answered elsewhere.*User responded: from elsewhere`)
	x.typed("next\n")
	x.await(`read: next`)
	x.awaitExit(p)
}

// A question mark explains the answers and how the command was understood; neither it nor
// a slip of the finger brings the whole question again.
func TestAnExplanationDoesNotRepeatTheChange(t *testing.T) {
	t.Parallel()
	x, dir := newTerminal(t), t.TempDir()
	p := x.start(dir, "abide", "run", `Use create with {"path":".envrc","file_text":"first line\n"}`)
	must(t, p.Start())
	x.await(`\+first line.*instead:`)
	for _, keys := range []string{"?", "huh", ""} {
		x.typed(keys + "\n")
		shown := x.await(`instead:`)
		if strings.Contains(shown, "first line") || !strings.Contains(shown, "? may it ") {
			t.Errorf("after %q the terminal shows %q", keys, shown)
		}
		if keys == "?" && !regexp.MustCompile(`(?s)asked because.*\n  y  yes, .*\n  n  no; the turn ends\r\n.*\n  d       show everything that the question carries\r\n  Ctrl-C  stop the turn\r\n  Ctrl-D  leave`).MatchString(shown) {
			t.Errorf("the explanation is %q", shown)
		}
	}
	x.typed("d\n")
	x.await(`\+first line.*instead:`)
	x.typed("n\n")
	x.awaitExit(p)
}

// What happens after the answer of somebody else is not printed on the line of the question.
func TestAQuestionThatIsAnsweredElsewhereEndsItsLine(t *testing.T) {
	t.Parallel()
	x, dir := newTerminal(t), t.TempDir()
	p := x.start(dir, "abide-tools", "run", "Use note with value 'X', then reply with the result")
	must(t, p.Start())
	id := shownSession(t, x.await(`note X.*instead:`))
	x.typed("y")
	x.await(`y`)
	answerElsewhere(t, dir, id, requestAbout(t, dir, "note X"), "rather not")
	x.await(`^\r\n\S*\(answered elsewhere.*✗.*User feedback: rather not`)
	x.awaitExit(p)
}

// Whatever ends a run that asks something begins on a line of its own, says nothing of an
// answer that nobody gave, and leaves nothing for the shell.
func TestWhatEndsARunThatAsksBeginsALine(t *testing.T) {
	for name, c := range map[string]struct {
		leave func(x *terminal, dir, id string)
		says  string
		code  int
	}{
		"Ctrl-C": {func(x *terminal, _, _ string) { x.typed("\x03") }, `^(\^C)?\r\n(✗[^\r]*\r\n)?abide: interrupted: stopped the turn`, 130},
		"quit":   {func(x *terminal, _, _ string) { x.typed("\x1c") }, `^(\^\\)?\r\nabide: left`, 131},
		"stop": {func(x *terminal, dir, id string) { output(x.t, dir, "stop", id) },
			`^\r\n\(stopped elsewhere, [^\r]*\r\n(✗[^\r]*\r\n)?abide: the turn was stopped by another client`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, dir := newTerminal(t), t.TempDir()
			p := x.start(dir, "abide-tools", "run", "Use note with value 'X', then reply with the result")
			p.Env = append(p.Env, "NO_COLOR=1")
			p.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			must(t, p.Start())
			id := shownSession(t, x.await(`note X.*instead:`))
			x.typed("y")
			x.await(`y`)
			c.leave(x, dir, id)
			if shown := x.await(`stopped the turn|: left|by another client`); !regexp.MustCompile(c.says).MatchString(shown) {
				t.Errorf("the terminal shows %q", shown)
			}
			if code := x.awaitExit(p); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
		})
	}
}
