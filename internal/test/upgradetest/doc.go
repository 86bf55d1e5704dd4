// Package upgradetest goes on with data folders that earlier versions of the
// program have written.
//
// It holds tests only. Each archive in testdata is a data folder as the program
// left it, with the files that its sessions worked on: after an orderly end, with
// questions open, or after kill -9. The folders are never written anew: that
// today's program reads what yesterday's wrote is what is tested. Four things have
// to hold:
//
//   - Every chain verifies, every session loads, and none is quarantined.
//   - An engine on a copy lists the open questions, continues the turn of each one
//     that is answered, and answers another message in every session.
//   - turn.Next says after every event of every session what it said when the
//     traces in testdata were written, for a process that has just started and for
//     others, in which everything is under way, somebody has hooks, or the window is
//     full. Where it changes, the trace also says how the session stands.
//   - A session that is loaded at any position is the same as one that has taken in
//     the events up to there one by one. What is known to differ is listed with its
//     reason, and the list is checked, too: an entry that no longer differs fails.
//
// To write a folder for a new feature, add a scenario to write_test.go and run
//
//	go test ./internal/test/upgradetest -run TestWriteFolders -write BINARY -scenario NAME
//
// with the BINARY of the version that the folder is to stand for, by its absolute path.
// Then run TestNextSaysWhatItSaidOfOldLogs with -update, which writes all traces: every
// line that changes in one that was there is a decision to be argued for.
package upgradetest
