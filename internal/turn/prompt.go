package turn

import "github.com/abide-run/abide/internal/event"

// Prompt is what the system prompt is made of.
type Prompt struct {
	System  string // the prompt as it was last stored
	Context string // what hooks have added to it
	Loaded  string // what the project's files tell the model
}

func (p *Prompt) fold(body event.Payload) {
	switch d := body.(type) {
	case event.InstructionsLoadedData:
		p.Loaded = d.Text
	case event.SystemMessageData:
		if d.EpochID == "" { // else it is what a compaction tells the model
			p.System, p.Context = d.Content, d.Context
		}
	}
}
