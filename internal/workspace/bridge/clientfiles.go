package bridge

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"connectrpc.com/connect"

	"github.com/abide-run/abide/internal/workspace"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

// Stat implements workspace.Files.
func (c remoteFiles) Stat(ctx context.Context, p workspace.Path) (workspace.Info, error) {
	r, err := c.rpc.Stat(ctx, &pb.StatRequest{Path: pathTo(p)})
	if err != nil {
		return workspace.Info{}, fromWire(ctx, err)
	}
	return infoOf(r.GetInfo()), nil
}

// List implements workspace.Files.
func (c remoteFiles) List(ctx context.Context, p workspace.Path, o workspace.ListOptions) (workspace.Listing, error) {
	r, err := c.rpc.ListDir(ctx, &pb.ListDirRequest{
		Path: pathTo(p), Recursive: o.Recursive, Offset: int64(o.Offset), Limit: int64(o.Limit),
	})
	if err != nil {
		return workspace.Listing{}, fromWire(ctx, err)
	}
	l := workspace.Listing{Total: int(r.GetTotal())}
	for _, e := range r.GetEntries() {
		l.Entries = append(l.Entries, infoOf(e))
	}
	return l, nil
}

// ReadFile implements workspace.Files.
func (c remoteFiles) ReadFile(ctx context.Context, p workspace.Path) ([]byte, error) {
	r, err := c.rpc.ReadFile(ctx, &pb.ReadFileRequest{Path: pathTo(p)})
	if err != nil {
		return nil, fromWire(ctx, err)
	}
	return r.GetContent(), nil
}

// WriteFile implements workspace.Files.
func (c remoteFiles) WriteFile(ctx context.Context, p workspace.Path, content []byte, o workspace.WriteOptions) error {
	if len(content) > workspace.MaxFile {
		return &fs.PathError{Op: "write", Path: p.String(), Err: workspace.ErrTooLarge}
	}
	_, err := c.rpc.WriteFile(ctx, &pb.WriteFileRequest{Path: pathTo(p), Options: optionsTo(o), Content: content})
	return fromWire(ctx, err)
}

// Mkdir implements workspace.Files.
func (c remoteFiles) Mkdir(ctx context.Context, p workspace.Path) error {
	_, err := c.rpc.Mkdir(ctx, &pb.MkdirRequest{Path: pathTo(p)})
	return fromWire(ctx, err)
}

// Rename implements workspace.Files.
func (c remoteFiles) Rename(ctx context.Context, from, to workspace.Path) error {
	_, err := c.rpc.Rename(ctx, &pb.RenameRequest{From: pathTo(from), To: pathTo(to)})
	return fromWire(ctx, err)
}

// Delete implements workspace.Files.
func (c remoteFiles) Delete(ctx context.Context, p workspace.Path, everything bool) error {
	_, err := c.rpc.Delete(ctx, &pb.DeleteRequest{Path: pathTo(p), Everything: everything})
	return fromWire(ctx, err)
}

// Open implements workspace.Files.
func (c remoteFiles) Open(ctx context.Context, p workspace.Path, offset int64) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancel(ctx)
	in, err := c.rpc.ReadRaw(ctx, &pb.ReadRawRequest{Path: pathTo(p), Offset: offset})
	if err != nil {
		cancel()
		return nil, fromWire(ctx, err)
	}
	r := &rawReader{ctx: ctx, cancel: cancel, in: in}
	if !in.Receive() { // the first message is empty: the file is open
		err := r.end()
		_ = r.Close()
		return nil, err
	}
	return r, nil
}

// A rawReader reads the messages of a stream as one file.
type rawReader struct {
	ctx    context.Context
	cancel context.CancelFunc
	in     *connect.ServerStreamForClient[pb.ReadRawResponse]
	rest   []byte
}

func (r *rawReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if !r.in.Receive() {
			return 0, r.end()
		}
		r.rest = r.in.Msg().GetContent()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *rawReader) end() error {
	if err := r.in.Err(); err != nil {
		return fromWire(r.ctx, err)
	}
	return io.EOF
}

func (r *rawReader) Close() error {
	r.cancel() // the server need not send the rest
	_ = r.in.Close()
	return nil
}

// Create implements workspace.Files.
func (c remoteFiles) Create(ctx context.Context, p workspace.Path, o workspace.WriteOptions) (workspace.Draft, error) {
	ctx, cancel := context.WithCancel(ctx)
	d := &rawWriter{ctx: ctx, cancel: cancel}
	out, err := c.rpc.WriteRaw(ctx)
	if err != nil {
		cancel()
		return nil, fromWire(ctx, err)
	}
	d.out = out
	begin := &pb.WriteRawRequest_Begin{Path: pathTo(p), Options: optionsTo(o)}
	return d, d.send(&pb.WriteRawRequest{Part: &pb.WriteRawRequest_Begin_{Begin: begin}})
}

// A rawWriter sends a file as messages of a stream.
type rawWriter struct {
	ctx    context.Context
	cancel context.CancelFunc
	out    *connect.ClientStreamForClientSimple[pb.WriteRawRequest, pb.WriteRawResponse]
	done   bool
}

func (w *rawWriter) Write(p []byte) (int, error) {
	if w.done {
		return 0, fs.ErrClosed
	}
	written := 0
	for len(p) > 0 {
		part := p[:min(len(p), chunk)]
		if err := w.send(&pb.WriteRawRequest{Part: &pb.WriteRawRequest_Content{Content: part}}); err != nil {
			return written, err
		}
		written += len(part)
		p = p[len(part):]
	}
	return written, nil
}

// send sends a message. If the server has ended the stream, its answer says why.
func (w *rawWriter) send(m *pb.WriteRawRequest) error {
	err := w.out.Send(m)
	if errors.Is(err, io.EOF) {
		return w.finish()
	}
	return fromWire(w.ctx, err)
}

// Commit implements workspace.Draft.
func (w *rawWriter) Commit() error {
	if w.done {
		return fs.ErrClosed
	}
	if err := w.send(&pb.WriteRawRequest{Part: &pb.WriteRawRequest_Commit_{Commit: &pb.WriteRawRequest_Commit{}}}); err != nil {
		return err
	}
	return w.finish()
}

// finish ends the stream and returns the error of the server.
func (w *rawWriter) finish() error {
	w.done = true
	_, err := w.out.CloseAndReceive()
	err = fromWire(w.ctx, err)
	w.cancel()
	return err
}

// Close implements workspace.Draft.
func (w *rawWriter) Close() error {
	if !w.done {
		w.done = true
		w.cancel()
		_, _ = w.out.CloseAndReceive() // the answer is an error, because nothing was committed
	}
	return nil
}
