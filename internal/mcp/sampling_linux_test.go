package mcp

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
)

func sampleRequest(key string, again bool) sentRequest {
	return sentRequest{Server: "one", Tool: "sample", Key: key, Again: again, Arguments: json.RawMessage("{}")}
}

func TestAServerAsksTheModelIfItMay(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		w := newWorkplace(t, mode)
		w.server.Sampling = true
		e := w.engine()
		e.Answers <- "well STOP and no further"
		r, err := e.call(sampleRequest("k1", false))()
		if err != nil || r.Text != "m be brief/hello/well  stopSequence" {
			t.Fatalf("the answer of the model: %+v, %v", r, err)
		}
		e.Answers <- "no"
		r, err = e.call(sampleRequest("k2", false))()
		var refused *Declined
		if mode == "older" && r.Text != "the user says no" || mode == "good" && !errors.As(err, &refused) {
			t.Fatalf("a refusal: %+v, %v", r, err)
		}
		e.Answers <- "broken"
		r, err = e.call(sampleRequest("k3", false))()
		if why := "the model could not be asked: it is broken"; mode == "older" && r.Text != why || mode == "good" && (!errors.As(err, &refused) || refused.Error() != why) {
			t.Fatalf("a failure of the model: %+v, %v", r, err)
		}
		if first, second := <-e.Questions, <-e.Questions; first == second || first == "" {
			t.Errorf("the request %q has the key of the one before, and would get its permission", second)
		}
		if e.pid(t) == 0 {
			t.Error("the server is gone")
		}
	})
}

func TestAServerAsksNoModelUnlessItMay(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		e := newWorkplace(t, mode).engine()
		r, err := e.call(sampleRequest("k1", false))()
		if r.Text != samplingOff && (err == nil || err.Error() != samplingOff) || len(e.Questions) > 0 {
			t.Fatalf("the model is asked: %+v, %v", r, err)
		}
	})
}

// A request of the model that is not answered when the engine is killed is made by the next one,
// as the same request, and the answer completes the call.
func TestARequestOfTheModelSurvivesTheEngine(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		w := newWorkplace(t, mode)
		w.server.Sampling = true
		first := startKillableEngine(t, engineOrder{Dir: w.dir, Server: w.server, Request: sampleRequest("k1", false)})
		key := first.line("asked")
		first.kill()
		e := w.engine()
		result := e.call(sampleRequest("k1", true))
		if again := <-e.Questions; again != key || key == "" {
			t.Fatalf("the request %q is %q for the next engine", key, again)
		}
		e.Answers <- "well"
		if r, err := result(); err != nil || r.Text != "m be brief/hello/well endTurn" {
			t.Fatalf("the answer of the model: %+v, %v", r, err)
		}
	})
}

// A request of the model ends with the call that it belongs to.
func TestARequestOfTheModelEndsWithItsCall(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		w := newWorkplace(t, mode)
		w.server.Sampling = true
		e := w.engine()
		result := e.call(sampleRequest("k1", false))
		<-e.Questions
		e.cancel()
		if _, err := result(); err == nil {
			t.Error("a call that was stopped has a result")
		}
		c, err := e.Set.client("one")
		if err != nil {
			t.Fatal(err)
		}
		await(t, "the end of the request of the model", func() bool { return !c.isAsking() })
	})
}

func TestAServerAsksTheModelNotForEver(t *testing.T) {
	w := newWorkplace(t, "greedy")
	w.server.Sampling = true
	e := w.engine()
	result := e.call(sentRequest{Server: "one", Tool: "pester", Key: "k1", Arguments: json.RawMessage("{}")})
	for range maxQuestions {
		<-e.Questions
	}
	if r, err := result(); err != nil || r.Text != "refused 8" {
		t.Fatalf("a server that asks the model 24 times: %+v, %v", r, err)
	}
}

func TestRequestsOfTheModelAreBounded(t *testing.T) {
	c := &client{journal: openJournal("", "one"), config: Server{MCPServer: event.MCPServer{Sampling: true}}}
	if _, _, err := c.duringCalls(t.Context()); err == nil {
		t.Error("the model can be asked without a call")
	}
	for calls := range 2 {
		c.mu.Lock()
		c.uses++
		c.beginUseLocked()
		c.mu.Unlock()
		for range maxSamples {
			if _, _, err := c.duringCalls(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := c.duringCalls(t.Context()); err == nil {
			t.Errorf("for %d calls the model can be asked for ever", calls+1)
		}
	}
}

func TestSampleOfReadsAllOrNothing(t *testing.T) {
	long := strings.Repeat("x", maxSampleSize)
	for text, why := range map[string]string{
		`{"messages":[{"role":"user","content":{"type":"text","text":"a"}}]}`: "",
		`{"messages":[]}`: "messages",
		`{"messages":[{"role":"system","content":{"type":"text","text":"a"}}]}`:                                          "role",
		`{"messages":[{"role":"user","content":{"type":"image","data":"AAAA","mimeType":"image/png"}}]}`:                 "nothing but text",
		`{"messages":[{"role":"user","content":{"type":"text","text":"a"}}],"tools":[{"name":"t","inputSchema":{}}]}`:    "tools",
		`{"systemPrompt":"s","messages":[{"role":"user","content":{"type":"text","text":"` + long + `"}}]}`:              "bytes at most",
		`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}],"maxTokens":7}`: "",
	} {
		p := readSample(t, text)
		q, err := sampleOf(p)
		switch {
		case (err == nil) != (why == ""), err != nil && !strings.Contains(err.Error(), why):
			t.Errorf("%.80s: %v", text, err)
		case p.MaxTokens == 7 && (q.MaxTokens != 7 || q.Messages[0].Text != "ab"):
			t.Errorf("%s is read as %+v", text, q)
		}
	}
}
