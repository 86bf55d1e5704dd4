package keeper

import (
	"strconv"
	"syscall"

	"github.com/abide-run/abide/internal/process/sys"
)

// oomScore is the descriptor of the file with the OOM score of this keeper; -1 if it cannot
// be written.
var oomScore = -1

// makePrivate keeps other processes of the user out of this keeper: its commands must not
// read the environments of other commands in its memory, nor make it run what a sandbox
// would not let them. The file with the OOM score is opened before, because it belongs to
// root afterwards.
func makePrivate() {
	sys.SetDumpable(true) // the program may have done without it already
	fd, err := syscall.Open("/proc/self/oom_score_adj", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err == nil {
		oomScore = fd
	}
	sys.SetDumpable(false)
}

// setOOMScore raises the OOM score, so that the kernel ends the command that is
// started next before other processes when memory runs out. The returned function
// restores the score of the keeper.
func setOOMScore(score int) (restore func()) {
	var b [16]byte
	n, err := syscall.Pread(oomScore, b[:], 0)
	if err != nil {
		return func() {}
	}
	was := b[:n]
	if now, err := strconv.Atoi(string(was[:max(n-1, 0)])); err != nil || now >= score {
		return func() {}
	}
	syscall.Pwrite(oomScore, []byte(strconv.Itoa(score)), 0)
	return func() { syscall.Pwrite(oomScore, was, 0) }
}
