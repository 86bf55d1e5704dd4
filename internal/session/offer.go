package session

import (
	"bytes"
	"slices"
	"sync"

	"github.com/abide-run/abide/internal/model"
)

// offers are the sets of tools that sessions offer to their models. Most sessions
// offer the same set, and its encoded form is larger than everything else of an idle
// session. Sessions with the same provider share it.
type offers struct {
	mu   sync.Mutex
	sets []offered // the newest first
}

type offered struct {
	provider string
	tools    *model.Tools
}

// mostOffers is how many sets are remembered. Other sets are not shared.
const mostOffers = 32

// share returns the set with these tools for a provider.
func (o *offers) share(provider string, list []model.Tool) *model.Tools {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.sets {
		if s.provider == provider && slices.EqualFunc(s.tools.List, list, sameTool) {
			return s.tools
		}
	}
	made := &model.Tools{List: list}
	o.sets = slices.Insert(o.sets, 0, offered{provider, made})
	if len(o.sets) > mostOffers {
		o.sets = slices.Delete(o.sets, mostOffers, len(o.sets))
	}
	return made
}

// An offer is the set of tools that a session offers to its model, and what it was
// made for. The set is kept as long as it is the same, because its encoded form is
// kept with it.
type offer struct {
	tools   *model.Tools // nil if it has to be made
	version int          // the state's count of changes that may change the set
	mode    string       // the mode that the tools are offered in
}

func sameTool(a, b model.Tool) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Parameters, b.Parameters)
}
