package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/server/notify"
)

// Notify says who is told when a session waits for a person, or has ended its turn. Nobody is
// if neither Command nor Webhook is set.
type Notify struct {
	Command    string
	Webhook    string
	SecretFile string          // path of the file with the key of the webhook's signatures; none if empty
	On         []string        // kinds of notifications; all if empty
	Delay      time.Duration   // time that a person has to answer a question before it is told
	Again      []time.Duration // pauses before further attempts; the default of package notify if nil
}

// notify tells people what happens in the sessions of an engine, until this process ends.
func (n *Node) notify(e *engine) {
	c := n.config.Notify
	if c.Command == "" && c.Webhook == "" {
		return
	}
	secret, err := c.secret()
	if err != nil {
		n.log.Error("nobody is told when a session waits or ends", "err", err)
		return
	}
	to, err := notify.New(notify.Options{
		Host: e.host, Log: n.log, File: filepath.Join(n.folder.Dir(), "notify.json"), Env: process.PlainEnv(), Start: e.tools.processes.StartOwn,
		Command: c.Command, Webhook: c.Webhook, Secret: secret, Kinds: c.On, Delay: c.Delay, Again: c.Again,
	})
	if err != nil {
		n.log.Error("nobody is told when a session waits or ends", "err", err)
		return
	}
	n.work.Go(func() { to.Run(n.ctx) })
}

// secret returns the key of the webhook's signatures; empty if there is none.
func (c Notify) secret() (string, error) {
	if c.SecretFile == "" {
		return "", nil
	}
	b, err := os.ReadFile(c.SecretFile)
	key := strings.TrimSpace(string(b))
	if err == nil && key == "" {
		err = fmt.Errorf("notify.secret_file: %s is empty", c.SecretFile)
	}
	return key, err
}
