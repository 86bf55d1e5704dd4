package daemon

import (
	"github.com/abide-run/abide/internal/model/anthropic"
	"github.com/abide-run/abide/internal/model/openai"
	"github.com/abide-run/abide/internal/model/remote"
	"github.com/abide-run/abide/internal/model/responses"
)

// Wires are the APIs of providers, the default first. A new wire needs a package that
// plays the stories of remotetest, and a line here.
var Wires = remote.Kinds{
	openai.Kind,
	responses.Kind,
	anthropic.Kind,
}
