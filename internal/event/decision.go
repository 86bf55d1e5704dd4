package event

// A Decision says what allowed a call. It is stored when the call begins, so that a call
// that is made again after a crash does exactly what was decided, whatever the rules say
// by then.
type Decision struct {
	By         string   `json:"by"`                   // one of the By constants below
	Rules      []string `json:"rules,omitempty"`      // texts of the rules that allow it, or a part of it
	Grants     []Grant  `json:"grants,omitempty"`     // grants that allow it, or a part of it
	RequestID  string   `json:"requestId,omitempty"`  // permission request that a person has approved
	Command    string   `json:"command,omitempty"`    // command line that is run, made of the judged words; if empty, that of the arguments is run
	SearchPath string   `json:"searchPath,omitempty"` // value of PATH with which a command was judged, and with which it is run; if empty, that of the session is
	Paths      []string `json:"paths,omitempty"`      // files that rules or grants allow, without links; if empty, those of the arguments
}

// The values of [Decision.By].
const (
	ByNothing = "nothing" // the call needs no permission
	ByScope   = "scope"   // the scope of the session contains all files that it uses
	ByRule    = "rule"    // rules allow it, or rules and grants together
	ByGrant   = "grant"   // grants allow it
	BySet     = "set"     // nobody is asked in this session
	ByHook    = "hook"    // a hook allows it
	ByAnswer  = "answer"  // a person allows it, as it was shown
)

// FromWords reports whether a command is run from the words that were judged, and not
// from the text of the model.
func (d *Decision) FromWords() bool { return d != nil && d.Command != "" }
