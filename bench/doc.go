// Command bench measures what a turn costs beside the least that it could cost,
// and what a search costs beside the tools of the system.
//
//	go run ./bench            all measurements
//	go run ./bench -only turn those whose name contains "turn"; "stream: ",
//	                          "request: ", "grep: " and "glob: " begin the names
//	                          of those that are no turns
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
// In the tables a pair like "1.03; 1.10" is the best block; the middle block.
package main
