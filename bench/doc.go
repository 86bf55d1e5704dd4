// Command bench compares the cost of a turn with the least that it could cost, and the
// cost of searches and commands with that of the tools of the system.
//
//	go run ./bench            all measurements
//	go run ./bench -only turn those whose name contains "turn"; "stream: ",
//	                          "request: ", "grep: ", "glob: ", "command: ",
//	                          "context: ", "follow: ", "memory: ", "recall: ",
//	                          "load: ", "start: ", "long: " and "chat: " begin the names of measurements that
//	                          are not plain turns
//	go run ./bench -dir DIR   with the sessions' files in DIR
//	go run ./bench -abide BIN also start the built program, and measure its memory
//
// The model is a server in another process that answers at once (package instant). The
// floor, the least that is possible, is a loop over HTTP with one synced file for each
// session (package floor). Its own figures are printed as well, because a slow floor
// would prove nothing. The contenders run in alternating blocks (package compare); the
// results are the ratios of the best and of the median blocks.
//
// A workload is what is measured. A contender is a way to do it: it opens sessions and
// runs turns in them. All contenders run all workloads, and each is compared with the
// floor. One contender is "wire": our client for Chat Completions with the floor's file,
// and nothing else.
//
// Two more tables are about all wires. The cost of each chunk of a stream is compared
// with a reader of the same bytes that only checks that they are JSON. The cost of a
// request with 1000 turns of history is compared with json.Marshal of the same messages.
//
// Commands are measured in several ways. A turn with a command is a workload like the
// others: the floor forks a shell, appends and syncs twice more, and asks the model once
// more. The start of a command under its keeper is compared with a shell that does
// nothing. Many commands are run, one after the other and at the same time, and it is
// checked that nothing is left of them. Turns of the built program in which a command
// prints a gigabyte are compared with the same command writing to a file through a pipe.
// Limits that have to hold are in parentheses.
//
// A session with a small window has 10,000 turns with calls of random size, in another
// process. The time of a turn, the memory of the process and the number of compactions
// should be the same in the last tenth as in the first.
//
// Sessions are followed over HTTP by many readers, which are another process. The events are
// compared with the same bytes written to as many sockets, one write for each event.
//
// Turns are measured while 1,000 idle sessions are remembered, one of which always fails,
// and compared with the same turns without that. In the end all other sessions have to
// be remembered, and no turn may have waited for a job.
//
// Facts, constraints and preferences are mentioned early, in four languages, and asked for
// after many compactions and consolidations: it is counted how many of them are in the request
// that is answered, beside compaction without memory and beside the newest messages alone. The
// model follows fixed rules that do not know the facts.
//
// Loading a session of 1000 turns is compared with a reader of the same events that only
// verifies their chain. The allocated bytes show how much is decoded.
//
// The built program is started on folders in which many sessions wait for an answer, and
// its memory is measured. It also exports, resumes and pages through sessions of 35,000,
// 70,000 and 140,000 events, which should take twice as long for twice as many events.
//
// Sessions are begun with 20 MCP servers with 50 tools each, which are this program, and without,
// by turns. A call of a tool, from its stored start to its stored result, is compared with the
// same call through the SDK for MCP, and the memory for a server that runs with that of the
// server.
//
// The chat is measured at a real terminal whose screen is emulated: the time until it can be typed
// into, the first screen and a page of a session of 10,000 events, its memory, its processor time
// while 1,000 pieces of an answer arrive in each second, and how soon keys are shown on a terminal
// that takes 1 kB in a second. What the packages of the chat cost at the start of every command is
// what the runtime says of their initialisation.
//
// Each command creates a folder with some files. If thousands of files were removed in
// the last minutes, some file systems take long to create a new one (ext4 looks for an
// inode that was not used recently), so -dir should name a folder that other programs do
// not use for temporary files.
//
// In the tables, a pair such as "1.03; 1.10" is the best block and the median block.
package main
