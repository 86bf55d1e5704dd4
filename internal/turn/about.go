package turn

import (
	"strings"
	"time"

	"github.com/abide-run/abide/internal/event"
)

// About is what lists of sessions show.
type About struct {
	Started   time.Time
	Name      string
	AutoNamed bool   // the name was suggested by a program, not given by a person
	Summary   string // the first line of the first message
	Totals    event.Totals
}

func (a *About) fold(s *State, body event.Payload) {
	switch d := body.(type) {
	case event.SessionStartData:
		a.Started, _ = time.Parse(time.RFC3339, d.StartTime)
	case event.SessionNamedData:
		a.Name, a.AutoNamed = d.Name, d.Auto
	case event.UserMessageData:
		if a.Summary == "" {
			a.Summary = summary(d.Content)
		}
	case event.AssistantUsageData:
		if s.Turn != nil {
			a.Totals.Add(d)
		}
	}
}

// summary returns the first line of a text, cut to the length that lists show.
func summary(text string) string {
	const most = 100
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(line); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return line
}
