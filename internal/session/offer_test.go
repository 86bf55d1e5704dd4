package session

import (
	"fmt"
	"testing"

	"github.com/abide-run/abide/internal/model"
)

func TestSessionsThatOfferTheSameShareIt(t *testing.T) {
	var o offers
	list := func(names ...string) (tools []model.Tool) {
		for _, name := range names {
			tools = append(tools, model.Tool{Name: name, Description: "does " + name, Parameters: []byte(`{}`)})
		}
		return tools
	}
	first := o.share("p", list("a", "b"))
	if o.share("p", list("a", "b")) != first {
		t.Error("an equal set is made again")
	}
	other := list("a", "b")
	other[1].Parameters = []byte(`{"type":"object"}`)
	for name, set := range map[string]*model.Tools{
		"another provider": o.share("q", list("a", "b")), "fewer": o.share("p", list("a")), "another order": o.share("p", list("b", "a")), "other parameters": o.share("p", other),
	} {
		if set == first {
			t.Errorf("%s: it is shared", name)
		}
	}
	for i := range 2 * mostOffers {
		o.share("p", list(fmt.Sprint(i)))
	}
	if len(o.sets) != mostOffers {
		t.Errorf("%d sets are remembered", len(o.sets))
	}
	if again := o.share("p", list("a", "b")); again == first || len(again.List) != 2 {
		t.Error("a set that was let go is not made again")
	}
}
