// Package archtest keeps what the documents say about the source tree true.
//
// It holds tests only: that packages import only from the layers below their own,
// that the picture in docs/ARCHITECTURE.md has all of them, that every package
// says what it is for, that only a part's own file assigns a part of turn.State,
// that the engine reads every field that settings reach it through, and that nothing
// is left for later in a comment.
package archtest
