package turn

import "github.com/abide-run/abide/internal/event"

// Prompt is what the system prompt is made of.
type Prompt struct {
	System  string // the whole prompt as it was last stored
	Context string // the part of it that hooks have added
	Loaded  string // the instructions in the project's files
}

func (p *Prompt) fold(body event.Payload) {
	switch d := body.(type) {
	case event.InstructionsLoadedData:
		p.Loaded = d.Text
	case event.SystemMessageData:
		if d.EpochID == "" { // a message with an epoch is the summary of a compaction, not the prompt
			p.System, p.Context = d.Content, d.Context
		}
	}
}
