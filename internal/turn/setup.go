package turn

import (
	"cmp"

	"github.com/abide-run/abide/internal/event"
)

// Setup is what the session was told to be like.
type Setup struct {
	Config   event.SessionConfiguredData
	Declared event.ClientDeclaredData
	Tools    []event.ExternalTool // the tools of clients, as last declared
	Offered  int                  // changes when the offered tools may have changed
	Model    string
	mode     string // the mode that the session works in, unless a message names another
}

func (p *Setup) fold(body event.Payload) {
	switch d := body.(type) {
	case event.SessionStartData:
		p.Model = d.SelectedModel
	case event.SessionConfiguredData:
		p.Config = d
		p.Offered++
	case event.ClientDeclaredData:
		p.Declared = d
		p.Offered++
	case event.ToolsDeclaredData:
		p.Tools = d.Tools
		p.Offered++
	case event.SkillsFoundData:
		p.Offered++
	case event.ModeChangedData:
		p.mode = d.NewMode
	case event.SessionModelChangeData:
		p.Model = d.NewModel
	}
}

// Can returns what some client of the session has said that it can answer.
func (s *State) Can() event.ClientDeclaredData { return s.Setup.Declared }

// Settings returns the configuration of the session.
func (s *State) Settings() event.SessionConfiguredData { return s.Setup.Config }

// Mode is the mode in which the agent works now: that of the message it works
// on, or else that of the session.
func (s *State) Mode() string {
	if s.Turn != nil && s.Turn.Mode != "" {
		return s.Turn.Mode
	}
	return cmp.Or(s.Setup.mode, event.ModeInteractive)
}

// external returns the client tool of that name.
func (s *State) external(name string) (event.ExternalTool, bool) {
	for _, t := range s.Setup.Tools {
		if t.Name == name {
			return t, true
		}
	}
	return event.ExternalTool{}, false
}
