package bridge

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/workspace"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

// rawShowPath is the path of requests for large files beside the service. The request is a
// ShowRequest. The answer is four bytes with the length of a ShowResponse without content,
// that message, and the content, so that nobody copies the content in between. Whoever gets no
// such answer asks the service, which also knows the error.
const rawShowPath = "/abide.workspace.v1.Raw/Show"

// maxHead is the maximum length of an answer without its content.
const maxHead = 4 << 20

// A streamer is a workspace that does not read a large file into memory to show it.
type streamer interface {
	ShowStream(ctx context.Context, s *scope.Scope, r workspace.ShowRequest) (shown workspace.Shown, content *os.File, length int64, err error)
}

// showRaw answers a request for a large file.
func (s *service) showRaw(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	request := new(pb.ShowRequest)
	if err = errors.Join(err, proto.Unmarshal(body, request)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	shown, file, length, err := s.stream(r.Context(), request)
	var content io.Reader = bytes.NewReader(shown.Content)
	if file != nil {
		content = io.LimitReader(file, length)
		defer func() { _ = file.Close() }()
	}
	if err == nil {
		shown.Content = nil
		err = sendShown(w, shownTo(shown), content, length)
	}
	if err != nil {
		w.WriteHeader(http.StatusUnprocessableEntity)
	}
}

// stream returns what is shown, with the content in a file or in memory.
func (s *service) stream(ctx context.Context, r *pb.ShowRequest) (shown workspace.Shown, content *os.File, length int64, err error) {
	if files, ok := s.ws.Files.(streamer); ok {
		shown, content, length, err = files.ShowStream(ctx, scopeOf(r.GetScope()), showOf(r))
	} else {
		shown, err = s.ws.Files.Show(ctx, scopeOf(r.GetScope()), showOf(r))
	}
	if content == nil {
		length = int64(len(shown.Content))
	}
	return shown, content, length, err
}

// sendShown sends an answer. It returns an error only before it has sent anything: if the
// content turns out to be too short, the client sees that.
func sendShown(w http.ResponseWriter, head *pb.ShowResponse, content io.Reader, length int64) error {
	head.Length = length
	begin, err := proto.MarshalOptions{}.MarshalAppend(make([]byte, 4), head)
	if err != nil {
		return err
	}
	binary.BigEndian.PutUint32(begin, uint32(len(begin)-4))
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sendTime))
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(int64(len(begin))+length, 10))
	if _, err := w.Write(begin); err == nil {
		_, _ = io.Copy(w, content)
	}
	return nil
}

// sendTime is how long an answer may take that a client on a machine which has vanished does
// not read.
const sendTime = 10 * time.Minute

// rawTime is how long an answer beside the service may not come on, before the service is
// asked.
const rawTime = 5 * time.Second

// rawTransport returns what makes requests beside the service. In HTTP/1.1 nobody has to copy
// the content into frames and out of them.
func rawTransport(o ClientOptions, d *patientDialer) *http.Transport {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	secure := tlsConfig(o, "http/1.1")
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return d.connectRaw(ctx, secure) }
	return &http.Transport{
		DialContext: dial, DialTLSContext: dial, Protocols: p, DisableCompression: true,
		MaxConnsPerHost: 16, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
	}
}

// showRaw asks for a large file beside the service. It does not wait for a workspace that is
// away or silent: whoever asks the service next does.
func (c remoteFiles) showRaw(ctx context.Context, q *pb.ShowRequest) (shown workspace.Shown, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	late := time.AfterFunc(rawTime, cancel)
	defer late.Stop()
	request, err := c.rawRequest(ctx, q)
	if err != nil {
		return shown, err
	}
	response, err := c.raw.Do(request)
	if err != nil {
		return shown, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return shown, fmt.Errorf("the answer has the status %s", response.Status)
	}
	return readShown(&timedReader{response.Body, late}, response.ContentLength)
}

func (c *Client) rawRequest(ctx context.Context, q *pb.ShowRequest) (*http.Request, error) {
	body, err := proto.Marshal(q)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+rawShowPath, bytes.NewReader(body))
	if err == nil {
		r.Header.Set("Content-Type", "application/proto")
		c.headers.set(r.Header)
	}
	return r, err
}

// A timedReader puts off a timer whenever something was read.
type timedReader struct {
	io.Reader
	late *time.Timer
}

func (r *timedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.late.Reset(rawTime)
	return n, err
}

// readShown reads an answer of a known length to its end.
func readShown(in io.Reader, length int64) (shown workspace.Shown, err error) {
	var n [4]byte
	if _, err := io.ReadFull(in, n[:]); err != nil {
		return shown, err
	}
	size := int64(binary.BigEndian.Uint32(n[:]))
	if size > maxHead || size+4 > length {
		return shown, errNotWhole
	}
	head := make([]byte, size)
	if _, err := io.ReadFull(in, head); err != nil {
		return shown, err
	}
	m := new(pb.ShowResponse)
	if err := decode(head, m); err != nil {
		return shown, err
	}
	if rest := length - 4 - size; m.GetLength() != rest || rest > maxMessage {
		return shown, errNotWhole
	}
	shown = shownFrom(m)
	if shown.Content, shown.Checked, err = readContent(in, m.GetLength()); err != nil {
		return shown, err
	}
	if _, err := in.Read(n[:]); err != io.EOF {
		return shown, errNotWhole
	}
	return shown, nil
}

// readSize is how much of a file is read before it is checked. It is still in the cache of the
// processor then, and the sender goes on meanwhile.
const readSize = 256 << 10

// readContent reads the content of a file, and reports whether it is valid UTF-8.
func readContent(in io.Reader, length int64) (content []byte, valid bool, err error) {
	if length == 0 {
		return nil, false, nil
	}
	content, valid = make([]byte, length), true
	read, checked := 0, 0
	for read < len(content) {
		n, err := in.Read(content[read:min(read+readSize, len(content))])
		if read += n; n == 0 && err != nil {
			return nil, false, fmt.Errorf("%w (%w)", errNotWhole, err)
		}
		if valid {
			end := wholeRunes(content[:read])
			valid = utf8.Valid(content[checked:end])
			checked = end
		}
	}
	return content, valid && checked == len(content), nil
}

// wholeRunes returns the length of a text without a character at its end that is not complete.
func wholeRunes(text []byte) int {
	for back := 1; back <= min(utf8.UTFMax-1, len(text)); back++ {
		if start := len(text) - back; utf8.RuneStart(text[start]) {
			if utf8.FullRune(text[start:]) {
				return len(text)
			}
			return start
		}
	}
	return len(text)
}
