package bridge

import (
	"context"
	"net/http"
	"time"

	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

// maxAnswers is how many large answers of a connection are in memory at the same time: further
// requests for some wait until the client has read one of them.
const maxAnswers = 4

// maxSearches is how many searches of a connection run, or have their results in memory, at the
// same time. A search may take long, and its result is bounded, so searches have a limit of their
// own: nothing else waits for them.
const maxSearches = 16

// answerTime is how long a client may take nothing of an answer before the answer is given up.
const answerTime = time.Minute

// largeAnswers are the requests whose answers can be large and are in memory as a whole. Those
// that are sent in parts, and those that wait for something else, are not among them.
var largeAnswers = map[string]bool{
	pb.WorkspaceServiceListDirProcedure:  true,
	pb.WorkspaceServiceReadFileProcedure: true,
	pb.WorkspaceServiceLookProcedure:     true,
	pb.WorkspaceServiceJudgeProcedure:    true,
	pb.WorkspaceServiceShowProcedure:     true,
	pb.WorkspaceServiceListProcedure:     true,
	pb.WorkspaceServiceCollectProcedure:  true,
	pb.WorkspaceServiceSurveyProcedure:   true,
	pb.WorkspaceServiceChangesProcedure:  true,
}

// searches are the requests that look through many files before they answer.
var searches = map[string]bool{
	pb.WorkspaceServiceGrepProcedure: true,
	pb.WorkspaceServiceGlobProcedure: true,
}

// answersKey is the key of the answers of a connection in its context.
type answersKey struct{}

// answers are those answers of a connection that are limited. Each of them is an element of a channel.
type answers struct{ large, searches chan struct{} }

// withAnswers returns the context of a connection that has no answers yet.
func withAnswers(ctx context.Context) context.Context {
	return context.WithValue(ctx, answersKey{}, answers{make(chan struct{}, maxAnswers), make(chan struct{}, maxSearches)})
}

// limitOf returns the channel in which the answer to a request counts, or nil if it does not.
func (a answers) limitOf(path string) chan struct{} {
	switch {
	case largeAnswers[path]:
		return a.large
	case searches[path]:
		return a.searches
	}
	return nil
}

// limitAnswers lets a connection have few large answers at a time, and a client that does not
// read one of them lose it.
func limitAnswers(to http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w = patientWriter{w}
		of, _ := r.Context().Value(answersKey{}).(answers)
		limit := of.limitOf(r.URL.Path)
		if limit == nil {
			to.ServeHTTP(w, r)
			return
		}
		select {
		case limit <- struct{}{}:
			defer func() { <-limit }()
			to.ServeHTTP(w, r)
		case <-r.Context().Done(): // the client has left
		}
	})
}

// A patientWriter gives up an answer of which the client takes nothing for answerTime.
type patientWriter struct{ http.ResponseWriter }

func (w patientWriter) Write(p []byte) (n int, err error) {
	control := http.NewResponseController(w.ResponseWriter)
	for first := true; first || len(p) > 0; first = false {
		part := p[:min(len(p), writtenAtOnce)]
		_ = control.SetWriteDeadline(time.Now().Add(answerTime)) // every connection of the server has deadlines
		m, err := w.ResponseWriter.Write(part)
		n += m
		if err != nil {
			return n, err
		}
		p = p[len(part):]
	}
	_ = control.SetWriteDeadline(time.Time{}) // the next part may come much later
	return n, nil
}

// writtenAtOnce is how much of an answer has to be taken within answerTime.
const writtenAtOnce = 1 << 20

// Unwrap lets [http.ResponseController] find what it needs.
func (w patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements [http.Flusher], which streams need.
func (w patientWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }
