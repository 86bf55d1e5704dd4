package turn

import (
	"cmp"

	"github.com/abide-run/abide/internal/event"
)

// Setup is the configuration of the session, its clients' tools, its model and mode.
type Setup struct {
	Config   event.SessionConfiguredData
	Declared event.ClientDeclaredData
	Tools    []event.ExternalTool // the tools of clients as they were last declared
	Offered  int                  // a number that changes whenever the offered tools may have changed
	Model    string
	mode     string // the mode of the session; a message can name another one for its turn
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
	case event.SkillsFoundData, event.MCPOfferedData, event.MCPFoundData:
		p.Offered++
	case event.ModeChangedData:
		p.mode = d.NewMode
	case event.SessionModelChangeData:
		p.Model = d.NewModel
	}
}

// Can returns the kinds of questions that some client of the session can answer.
func (s *State) Can() event.ClientDeclaredData { return s.Setup.Declared }

// Settings returns the configuration of the session.
func (s *State) Settings() event.SessionConfiguredData { return s.Setup.Config }

// ReadSettings returns the configuration without copying it, which must not be changed. It is
// valid as long as the state is.
func (s *State) ReadSettings() *event.SessionConfiguredData { return &s.Setup.Config }

// Mode returns the mode in which the agent works now: the mode of the message that
// it works on, or else the mode of the session.
func (s *State) Mode() string {
	if s.Turn != nil && s.Turn.Mode != "" {
		return s.Turn.Mode
	}
	return cmp.Or(s.Setup.mode, event.ModeInteractive)
}

// external returns the client's tool of that name.
func (s *State) external(name string) (event.ExternalTool, bool) {
	for _, t := range s.Setup.Tools {
		if t.Name == name {
			return t, true
		}
	}
	return event.ExternalTool{}, false
}
