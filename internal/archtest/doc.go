// Package archtest keeps what the documents say about the source tree true.
//
// It holds tests only: that packages import each other as the diagram in
// docs/ARCHITECTURE.md shows, that every package says what it is for, and that
// nothing is left for later in a comment.
package archtest
