// Package tui is the chat: a session at a terminal, for a person who works in it.
//
//   - It is an ordinary client: whatever it does, another client can do.
//   - The scrollback of the terminal gets what is stored, in the order of the log, once.
//     What is not stored yet, such as an answer that is arriving, is below it in the live
//     region, which is never higher than the terminal less two rows.
//   - A question never takes the keys of a person who is typing, and Enter and Space never
//     approve anything.
//   - Leaving stops nothing. Esc and Ctrl-C stop the turn, and say so.
//
// A Bubble Tea program takes in keys and events one after the other; the screen package
// draws, because finished lines and the live region have to be written together.
package tui
