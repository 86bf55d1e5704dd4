package remotetest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote"
)

// A Subject is a wire that is put to the test.
type Subject struct {
	New   func(remote.Config) *remote.Client
	Serve func(net.Listener, model.Model, Options) *Server

	Path      string // path at which requests arrive at the server
	KeyHeader string // header that has the API key
	KeyPrefix string // text before the key in that header

	// Arrived is what the model behind the wire is asked: the tail, for one
	// thing, is text by then.
	Arrived func(*model.Request) *model.Request
	// KeepsReasoning says that reasoning comes back to where it came from.
	KeepsReasoning bool

	// Reply is a reply in one piece that says x.
	Reply string
	// Stream is a streamed reply that says these texts.
	Stream func(texts ...string) string
	// Failure is the data of the event with which a provider gives up.
	Failure func(kind, code, message string) string

	// Of the stream that the server sends for a text of one piece: with which
	// event the model has finished, and how many there are.
	Finished, Events int
}

// Run puts a wire to the test.
func Run(t *testing.T, s Subject) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Subject)
	}{
		{"AskingOverTheWireIsAskingTheModel", testAsking},
		{"ReasoningGoesBackToWhereItCameFrom", testReasoning},
		{"UsageIsSplitIntoNewAndCached", testUsage},
		{"AStreamThatNobodyAskedForIsRead", testUnaskedStream},
		{"AReplyThatIsNotStreamedThoughAskedIsRead", testUnstreamed},
		{"ALineOfTenMegabytesIsRead", testLongLine},
		{"WhoAsksIsToldByTheStrongestToken", testTokens},
		{"ConnectionsAreUsedAgain", testConnections},
		{"ARedirectNeverTakesTheRequestElsewhere", testRedirectElsewhere},
		{"ARedirectThatDropsTheRequestIsNotFollowed", testRedirectDropping},
		{"ARedirectAtTheSameHostIsFollowedWithTheWholeRequest", testRedirectHere},
		{"ManySessionsShareAClient", testManySessions},
		{"ABaseURLThatMakesNoSenseIsReported", testBaseURL},
		{"AWrongBaseURLIsNamedWithARightOne", testWrongBase},
		{"NoUsageIsNegative", testNegativeUsage},
		{"FurtherMembersOfTheBodyAreSent", testExtraBody},
		{"TheQueryOfTheBaseURLStays", testQuery},
		{"TheModelsOfAProviderCanBeListed", testModels},

		{"EveryRefusalHasItsKind", testRefusals},
		{"ErrorsOfTheModelKeepTheirKindOverTheWire", testModelErrors},
		{"AStreamCutAnywhereIsAnErrorOrTheWholeReply", testCutStream},
		{"AReplyCutAtAnyByteIsAnError", testCutReply},
		{"NobodyListening", testNobody},
		{"TroubleOnTheWayNamesTheHost", testTrouble},
		{"AnUntrustedCertificateIsNamedAsSuch", testCertificate},
		{"NoErrorContainsAKey", testSecrets},
		{"AMissingKeyIsNotCalledAWrongOne", testMissingKey},

		{"GivingUpReturnsTheCallersReason", testGivingUp},
		{"SilenceEndsTheRequest", testSilence},
		{"ASlowReplyIsNoSilence", testSlow},
		{"SignsOfLifeAreNoAnswer", testSignsOfLife},
		{"ChatterAfterTheEndKeepsNoAnswer", testChatterAfterTheEnd},
		{"TheWholeRequestCanBeLimited", testTimeout},
		{"AFinishedReplyDoesNotWaitForTheProvider", testLastWords},
		{"GivingUpOnAFinishedReplyStillReturnsIt", testGivingUpLate},
		{"RetryAfterMayBeADate", testRetryDate},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, s) })
	}
}

// Ask is a model made of a function.
type Ask func(context.Context, *model.Request, func(model.Delta)) (*model.Reply, error)

// Ask calls the function.
func (f Ask) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	return f(ctx, req, on)
}

// Says is a model that answers everything with the same words.
func Says(text string) model.Model {
	return Ask(func(context.Context, *model.Request, func(model.Delta)) (*model.Reply, error) {
		return &model.Reply{Text: text, Finish: "stop", Usage: model.Usage{Input: 5, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 1}}, nil
	})
}

// Hello is a request.
var Hello = &model.Request{Model: "m", System: "s", Messages: []*model.Message{{Role: model.User, Text: "hello"}}}

// Always gives every request the same fault.
func Always(f Fault) Options {
	return Options{Fault: func(int, []byte) Fault { return f }}
}

// Client starts a server and returns it with a client.
func (s Subject) Client(t testing.TB, m model.Model, o Options, c remote.Config) (*Server, *remote.Client) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := s.Serve(l, m, o)
	t.Cleanup(server.Close)
	c.BaseURL = server.URL
	if c.Transport == nil {
		c.Transport = newTransport(t)
	}
	return server, s.New(c)
}

func newTransport(t testing.TB) *http.Transport {
	transport := new(http.Transport)
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// Pieces is what was told of a reply while it arrived.
type Pieces struct {
	Text, Reasoning string
	Arguments       map[string]string // arguments by id and name of the call
}

// Add takes a piece.
func (h *Pieces) Add(d model.Delta) {
	h.Text += d.Text
	h.Reasoning += d.Reasoning
	if d.Arguments != "" {
		if h.Arguments == nil {
			h.Arguments = make(map[string]string)
		}
		h.Arguments[d.CallID+" "+d.CallName] += d.Arguments
	}
}

// Check fails unless the pieces make up the reply. Calls may have been taken
// back.
func (h *Pieces) Check(t interface{ Errorf(string, ...any) }, r *model.Reply) {
	all := Pieces{Text: r.Text, Arguments: make(map[string]string)}
	if r.Reasoning != nil {
		all.Reasoning = r.Reasoning.Text
	}
	for _, c := range r.Calls {
		if key := c.ID + " " + c.Name; len(c.Arguments) > len("{}") || h.Arguments[key] != "" { // a call without arguments has no pieces
			all.Arguments[key] = string(c.Arguments)
		}
	}
	if len(r.Calls) == 0 {
		all.Arguments = h.Arguments
	}
	if diff := cmp.Diff(all, *h, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the pieces are not the reply (-reply +pieces):\n%s", diff)
	}
}

// WantError fails unless err is a *model.Error of this kind, in one sentence.
func WantError(t testing.TB, err error, kind model.Kind) *model.Error {
	t.Helper()
	var e *model.Error
	if !errors.As(err, &e) {
		t.Fatalf("err = %v (%T), want a *model.Error of kind %s", err, err, kind)
	}
	if e.Kind != kind {
		t.Errorf("kind = %s, want %s (%s)", e.Kind, kind, e.Message)
	}
	if strings.ContainsAny(e.Message, "\n\r") || len(e.Message) > 600 || !strings.Contains(e.Message, ";") {
		t.Errorf("the message is not one sentence with a way out: %q", e.Message)
	}
	return e
}

// Same compares messages, and everything that has some, by what is said in them.
var Same = cmp.Options{cmpopts.IgnoreUnexported(model.Message{}, model.Tools{}), cmpopts.EquateEmpty()}

// answer is a handler that sends a body.
func answer(w http.ResponseWriter, status int, contentType, body string) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}
