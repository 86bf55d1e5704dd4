// Command bench measures what a turn costs beside the least that it could cost,
// and what searches and commands cost beside the tools of the system.
//
//	go run ./bench            all measurements
//	go run ./bench -only turn those whose name contains "turn"; "stream: ",
//	                          "request: ", "grep: ", "glob: ", "command: ",
//	                          "context: ", "memory: ", "load: ", "start: " and
//	                          "long: " begin the names of those that are no plain turns
//	go run ./bench -dir DIR   with the sessions' files in DIR
//	go run ./bench -abide BIN also start the built program, and weigh it
//
// The model is a server in a process of its own that answers at once (package
// instant). The least is a bare loop over HTTP and one synced file per session
// (package floor); its own figures are printed, for a slow floor proves nothing.
// Contenders work in alternating blocks (package compare), and what counts are
// the ratios of the best and of the middle blocks.
//
// A workload is what is measured, a contender how it is done: opening sessions
// that take turns. All contenders run all workloads, each of them against the
// floor. One of them is "wire": our client for Chat Completions and the floor's
// file, and nothing else.
//
// Two more tables are about all wires. A stream is measured for each chunk, beside
// a reader of the same bytes that only makes sure that they are JSON; a request
// with 1000 turns of history beside what json.Marshal needs for the same
// messages.
//
// Commands are measured in several ways. A turn with one of them is a workload like
// the others: the floor forks a shell, appends and syncs twice more, and asks the
// model once more. The start of a command under its keeper stands beside a shell
// that does nothing; many commands, one after the other and at once, are followed
// by a look at what is left of them, which has to be nothing; and turns of the built
// program in which a command prints a gigabyte stand beside the same command
// through one pipe to a file. Limits that are meant to hold are in parentheses.
//
// A session in a small window has 10,000 turns with calls of random size, in a
// process of its own: what a turn takes, what the process weighs and how often the
// context is compacted should be the same in the last tenth as in the first.
//
// Turns while 1,000 idle sessions are remembered, one of which always fails, stand
// beside the same turns while they are left alone. In the end all others have to be,
// and no turn may have waited for a job.
//
// A session of 1000 turns that is brought into memory stands beside a reader of the
// same events that only verifies their chain. How much is decoded shows in the bytes
// that are allocated.
// The built program is started on folders in which many sessions wait for an answer,
// and weighed; and it exports, resumes and pages through sessions of 35,000, 70,000
// and 140,000 events, which should take twice as long for twice as many.
//
// A command makes a folder with some files. Where thousands of files were removed
// in the last minutes some file systems take long to make a new one (ext4 looks for
// an inode that was not in use just now), so -dir should name a folder that is not
// where everybody's temporary files are.
//
// In the tables a pair like "1.03; 1.10" is the best block; the middle block.
package main
