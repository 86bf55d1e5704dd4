package rest

import "net/http"

func (s *Server) document(w http.ResponseWriter, _ *http.Request) error {
	return reply(w, http.StatusOK, Document(s.opts.Version))
}

// Document is not written yet.
func Document(string) any { return map[string]any{} }
