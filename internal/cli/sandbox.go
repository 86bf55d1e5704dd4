package cli

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"

	"github.com/abide-run/abide/internal/config"
	"github.com/abide-run/abide/internal/process/sandbox"
)

// examineSealed reports whether sealed sessions are possible.
func examineSealed(add note) {
	if err := sandbox.TrySealed(); err != nil {
		add("sealed", doubt, "abide run --sealed does not work here: %v", err)
		return
	}
	add("sealed", good, "abide run --sealed works: commands of such a session see no process, socket or network of this machine")
}

// examineSandbox reports what the kernel holds of the commands of agents.
func examineSandbox(c config.Commands, add note) {
	abi, mode := sandbox.Kernel(), sandbox.Mode(cmp.Or(c.Sandbox, string(sandbox.Auto)))
	switch {
	case mode == sandbox.Off:
		add("sandbox", doubt, "commands.sandbox is off: an allowed command can do everything that you can")
		return
	case mode == sandbox.Require && abi < sandbox.MinABI:
		add("sandbox", bad, "no command is started: commands.sandbox is require, and that needs Landlock %d (Linux 6.2), where this kernel has %s", sandbox.MinABI, version(abi))
		return
	case abi == 0:
		add("sandbox", doubt, "this kernel has no Landlock, or it is switched off: an allowed command can do everything that you can")
		return
	}
	text, state := "commands are confined by Landlock "+version(abi)+": they write in the working directory, its repository, temporary folders and their own caches", good
	for _, f := range sandbox.Report(abi, sandbox.Filters()) {
		if f.Held {
			continue
		}
		text += "; not held is that " + f.What + " (" + f.Why + ")"
		if !f.Recent {
			state = doubt
		}
	}
	add("sandbox", state, "%s", text)
	for _, path := range c.Writable {
		if _, err := os.Stat(path); err != nil {
			add("sandbox", doubt, "commands.writable names %s, which is not there: it counts as soon as it is", path)
		}
	}
}

// examineHidden reports a data folder that the sandbox cannot keep from commands, because
// it is in a folder that they may write.
func (a *app) examineHidden(c config.Commands, add note) {
	dir, err := dataFolder(a.home, "ABIDE_HOME")
	if err != nil || sandbox.Mode(c.Sandbox) == sandbox.Off {
		return // another line of the report says so
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return
	}
	work, err := os.Getwd()
	if err != nil {
		return
	}
	if at := sandbox.WritableAt(dir, work, os.Environ()); at != "" {
		add("sandbox", doubt, "the data folder %s is in %s, which commands may write: they can read and change it, with the keys in it; keep it elsewhere (--home, ABIDE_HOME), or use abide run --sealed", dir, at)
	}
}

func version(abi int) string {
	if abi == 0 {
		return "none"
	}
	return strconv.Itoa(abi)
}
