package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/provider"
)

// Limits of a command that prints a key.
const (
	maxKey      = 16 << 10 // bytes of its output
	maxKeyError = 4 << 10  // bytes of its stderr that are kept
)

// keyCommandTime is how long it may take: a person may have to touch something. Tests change it.
var keyCommandTime = 30 * time.Second

// keys are the API keys that commands have printed. They are in the memory of this process
// alone.
type keys struct {
	env []string // environment of the commands

	mu    sync.Mutex
	known map[string]*printedKey // by the command
}

// A printedKey is the key that a command has printed last.
type printedKey struct {
	running chan struct{} // full while the command runs, or its key is read
	key     string        // empty if it is not known
}

// get returns the key of a command. The command is run if its key is not known, or if it is
// the one that a provider has refused.
func (k *keys) get(ctx context.Context, c provider.KeyCommand, refused string) (string, error) {
	p := k.entry(c.Command)
	select {
	case p.running <- struct{}{}:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	defer func() { <-p.running }()
	if p.key != "" && p.key != refused {
		return p.key, nil
	}
	key, err := RunKeyCommand(ctx, c, k.env)
	if err == nil {
		p.key = key
	}
	return key, err
}

func (k *keys) entry(command string) *printedKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.known[command]
	if p == nil {
		if k.known == nil || len(k.known) >= maxClients {
			k.known = make(map[string]*printedKey)
		}
		p = &printedKey{running: make(chan struct{}, 1)}
		k.known[command] = p
	}
	return p
}

// withKey returns a provider with the key that its command prints.
func (k *keys) withKey(ctx context.Context, p provider.Provider, refused string) (provider.Provider, error) {
	command := p.KeyCommand()
	if command == nil {
		return p, nil
	}
	key, err := k.get(ctx, *command, refused)
	p.APIKey, p.BearerToken = key, ""
	return p, err
}

// isRefusedKey reports whether a provider does not accept a key, which may have expired.
func isRefusedKey(err error) bool {
	failure, ok := errors.AsType[*model.Error](err)
	return ok && failure.Kind == model.KindAuth && failure.Status == 401
}

// A keyedModel is a model whose key was printed by a command. If the provider does not accept
// the key, the command is run again, and the request is made again once.
type keyedModel struct {
	model.Model
	renewed func(context.Context) (model.Model, error) // the model with another key
}

// Ask makes one attempt, or two if the key of the first has expired.
func (m keyedModel) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	begun := false
	watched := on
	if on != nil {
		watched = func(d model.Delta) {
			begun = true
			on(d)
		}
	}
	reply, err := m.Model.Ask(ctx, req, watched)
	if begun || !isRefusedKey(err) {
		return reply, err
	}
	again, err := m.renewed(ctx)
	if err != nil {
		return nil, err
	}
	return again.Ask(ctx, req, on)
}

// RunKeyCommand runs a command that prints an API key, and returns the key. The command is a
// line for sh: password managers are used with quotes and pipes. It runs in the home
// directory, because a project must not decide what a relative name means, has no terminal
// and no input, and ends with ctx or after half a minute, together with what it has started.
// Its output is never part of an error.
func RunKeyCommand(caller context.Context, c provider.KeyCommand, env []string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(caller, keyCommandTime, fmt.Errorf("it did not end within %v", keyCommandTime))
	defer cancel()
	out, said, err := runBounded(ctx, c.Command, env)
	key := strings.TrimRight(string(out), "\r\n")
	switch {
	case caller.Err() != nil:
		return "", context.Cause(caller)
	case err != nil:
		return "", keyError(c, explainKeyCommand(ctx, err, said))
	case strings.TrimSpace(key) == "":
		return "", keyError(c, "it printed nothing")
	case strings.ContainsFunc(key, func(r rune) bool { return r > unicode.MaxASCII || unicode.IsControl(r) || r == ' ' }):
		return "", keyError(c, "it printed something else than one line with a key")
	}
	return key, nil
}

// ErrKeyCommand is the reason of the error of a command that printed no key.
var ErrKeyCommand = errors.New("the command printed no key")

var errKeyTooLong = fmt.Errorf("it printed more than %d KiB", maxKey>>10)

func keyError(c provider.KeyCommand, why string) error {
	setting := c.Setting
	if setting == "" {
		setting = "api_key_command"
	}
	return &model.Error{Kind: model.KindAuth, Err: ErrKeyCommand, Message: fmt.Sprintf("%s gave no key: %s; run the command yourself to see what is wrong, or set a key in another way", setting, why)}
}

// explainKeyCommand returns why a command failed: with its exit status and the first line that
// it said, or because of a limit.
func explainKeyCommand(ctx context.Context, err error, said []byte) string {
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case errors.Is(err, errKeyTooLong):
		return errKeyTooLong.Error()
	case ctx.Err() != nil:
		return context.Cause(ctx).Error()
	case !ended:
		return err.Error()
	}
	why := exit.Error() // "exit status 1", or the signal
	switch exit.ExitCode() {
	case 126, 127: // the shell repeats the word that it took for a program, which may be the key: think of $(pass show key)
		return why + ": the shell could not run a program that the line names"
	}
	if line := firstLine(said); line != "" {
		why += ": " + line
	}
	return why
}

// firstLine returns the first line of a text that is not blank, without control characters.
func firstLine(text []byte) string {
	const enough = 200
	for line := range strings.Lines(strings.ToValidUTF8(string(text), "?")) {
		line = strings.TrimSpace(strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return ' '
			}
			return r
		}, line))
		if runes := []rune(line); len(runes) > enough {
			return string(runes[:enough]) + "…"
		}
		if line != "" {
			return line
		}
	}
	return ""
}

// runBounded runs a command line and returns its output, and what it wrote to stderr. It waits
// for the process only when the output has ended or the time is over: until then nobody else
// can have the number of its group, which is killed.
func runBounded(ctx context.Context, line string, env []string) (out, said []byte, err error) {
	cmd := exec.Command("/bin/sh", "-c", line)
	cmd.Env = append([]string{}, env...) // nil would be the environment of this process
	cmd.Dir = "/"
	if home, err := os.UserHomeDir(); err == nil && isFolder(home) {
		cmd.Dir = home
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stderr := &prefixWriter{}
	cmd.Stderr, cmd.WaitDelay = stderr, time.Second
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, nil, err
	}
	read := make(chan error, 1)
	go func() {
		var failed error
		if out, failed = io.ReadAll(io.LimitReader(stdout, maxKey+1)); len(out) > maxKey {
			failed = errKeyTooLong
		}
		read <- failed
	}()
	ended := make(chan error, 1)
	wait := func() { go func() { ended <- cmd.Wait() }() }
	select {
	case err = <-read:
		if err != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
		wait()
	case <-ctx.Done():
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		wait()
		waited := <-ended // it closes the pipe, which ends the reader
		<-read
		return nil, stderr.bytes(), errors.Join(context.Cause(ctx), waited)
	}
	select {
	case waited := <-ended:
		if errors.Is(waited, exec.ErrWaitDelay) {
			waited = nil // it has left a process behind, which holds stderr
		}
		err = errors.Join(err, waited)
	case <-ctx.Done(): // its output has ended, and it has not
		if cmd.Process.Signal(syscall.Signal(0)) == nil { // nobody has waited for it yet, so the number of the group is its own
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
		err = errors.Join(context.Cause(ctx), <-ended)
	}
	return out, stderr.bytes(), err
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// A prefixWriter keeps the beginning of what is written.
type prefixWriter struct {
	mu   sync.Mutex
	kept bytes.Buffer
}

func (w *prefixWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept.Write(b[:min(len(b), maxKeyError-w.kept.Len())])
	return len(b), nil
}

func (w *prefixWriter) bytes() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Clone(w.kept.Bytes())
}
