package turn

import (
	"strings"
	"time"

	"github.com/abide-run/abide/internal/event"
)

// About is what lists of sessions say.
type About struct {
	Started   time.Time
	Name      string
	AutoNamed bool   // nobody gave the session its name
	Summary   string // the first line of the first message
	Totals    event.Totals
}

// summary is the first line of a text, cut to what fits a list.
func summary(text string) string {
	const most = 100
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(line); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return line
}
