package bridge

import (
	"net/http"

	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

// ReadContent is readContent, for tests.
var ReadContent = readContent

// Dialer is dialer, for tests.
var Dialer = dialer

// OnRequest calls a function with the path of each HTTP request that the client makes from
// now on.
func (c *Client) OnRequest(each func(path string)) {
	for _, client := range []*http.Client{c.http, c.raw} {
		client.Transport = observed{client.Transport.(*http.Transport), each}
	}
}

type observed struct {
	*http.Transport
	each func(path string)
}

func (o observed) RoundTrip(r *http.Request) (*http.Response, error) {
	o.each(r.URL.Path)
	return o.Transport.RoundTrip(r)
}

// FencedMethods returns the methods of the service that are fenced.
func FencedMethods() (names []string) {
	methods := pb.File_workspace_proto.Services().ByName("WorkspaceService").Methods()
	for i := range methods.Len() {
		if name := string(methods.Get(i).Name()); !reading["/abide.workspace.v1.WorkspaceService/"+name] {
			names = append(names, name)
		}
	}
	return names
}
