package sqlite

import "syscall"

// changeTime returns when a file was changed last.
func changeTime(st *syscall.Stat_t) syscall.Timespec { return st.Ctimespec }
