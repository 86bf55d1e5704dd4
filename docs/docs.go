// Package docs holds the documents that a program reads.
package docs

import _ "embed"

// Events is the text of EVENTS.md. Its tables have a row for every kind of events.
//
//go:embed EVENTS.md
var Events string
