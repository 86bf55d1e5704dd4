package bridge

import (
	"context"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/abide-run/abide/internal/workspace"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

// Protocol is the version of the protocol. It is raised when an older client would be
// served wrongly, or would understand an answer wrongly, and when one side needs what an older
// one does not know; other additions do not raise it. Version 2 has Look, by which commands
// are judged, and says in a survey whether processes may be changing files: without that, a
// survey of an older workspace would be taken for one of files at rest. Version 3 confines
// commands: an older workspace would run them unconfined, and an older engine would have no way
// to run one without.
const Protocol = 3

// Headers of requests, beside the token.
const (
	identityHeader = "Abide-Workspace"
	protocolHeader = "Abide-Workspace-Protocol"
)

// Describe returns what the workspace says of itself. Another protocol is ErrProtocol.
func (c *Client) Describe(ctx context.Context) (workspace.Description, error) {
	r, err := c.rpc.Describe(ctx, &pb.DescribeRequest{})
	switch {
	case err != nil:
		return workspace.Description{}, fromWire(ctx, err)
	case r.GetProtocol() != Protocol:
		return workspace.Description{}, c.explainer.convert(ctx, otherProtocol(fmt.Sprintf("it has %d and this engine has %d; update %s", r.GetProtocol(), Protocol, older(r.GetProtocol() < Protocol, "the workspace", "this engine"))))
	case c.headers.identity != "" && r.GetIdentity() != c.headers.identity:
		return workspace.Description{}, c.explainer.convert(ctx, &answer{workspace.ErrOther.Error(), workspace.ErrOther})
	}
	about := workspace.Description{
		Identity: r.GetIdentity(), Version: r.GetVersion(), Dir: string(r.GetDirectory()), Time: timeOf(r.GetTime()),
		DiskFree: r.GetDiskFree(), DiskSize: r.GetDiskSize(), Env: textsOf(r.GetEnvironment()),
	}
	if err := checkDescription(about); err != nil {
		return workspace.Description{}, c.explainer.convert(ctx, err)
	}
	return about, nil
}

// older returns which of two sides has to be updated.
func older(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

func otherProtocol(how string) error {
	return &answer{workspace.ErrProtocol.Error() + ": " + how, workspace.ErrProtocol}
}

// Describe implements the service.
func (s *service) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	free, size := diskOf(s.about.Dir)
	return &pb.DescribeResponse{
		Identity: s.about.Identity, Version: s.about.Version, Protocol: Protocol, Directory: []byte(s.about.Dir),
		Time: timeTo(time.Now()), DiskFree: free, DiskSize: size, Environment: bytesOf(s.about.Env),
	}, nil
}

// diskOf returns the bytes that are free for the user on the disk of a folder, and all
// that it has; -1 if that is unknown.
func diskOf(dir string) (free, size int64) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return -1, -1
	}
	return int64(s.Bavail) * int64(s.Bsize), int64(s.Blocks) * int64(s.Bsize)
}

// checkWanted refuses a request that is meant for another workspace, or made in another
// protocol. Clients that do not say what they want get what is there.
func (s *Server) checkWanted(r *http.Request) error {
	if p := r.Header.Get(protocolHeader); p != "" && p != strconv.Itoa(Protocol) {
		n, err := strconv.Atoi(p)
		return fmt.Errorf("%w: it has %d and the client has %.20q; update %s", workspace.ErrProtocol, Protocol, p, older(err == nil && n < Protocol, "the client", "the workspace"))
	}
	wanted := r.Header.Get(identityHeader)
	if wanted == "" || subtle.ConstantTimeCompare([]byte(wanted), []byte(s.About.Identity)) == 1 {
		return nil
	}
	return workspace.ErrOther
}
