// Command bench measures what programs pay that use abide through the real SDK
// for Go: in the same run, beside the engine in this process without a protocol.
//
//	go run ./bench -abide BIN            all measurements
//	go run ./bench -abide BIN -only send those whose name contains "send"
//	go run ./bench -abide BIN -dir DIR   with the data folders in DIR
//
// Both sides have real sessions in a real store that syncs every append, do the
// same around a turn, and ask the same model: a server in a process of its own
// that answers at once. They work in alternating blocks, and what counts are the
// ratios of the best and of the middle blocks. The SDK's own work is part of its
// side; how much computing that is, is shown: it is what no server can save.
//
// A stream counts only if every letter of it came, once and in order. Pieces that
// come faster than a client can be expected to follow reach it joined.
package main
