package keeper

import (
	"errors"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/abide-run/abide/internal/process/record"
	"github.com/abide-run/abide/internal/process/sys"
)

const (
	maxConns   = 64
	maxRequest = 4*MaxInput + 4096 // bytes: one byte of input may be encoded as four
	maxLaunch  = 64 << 20          // bytes of a launch record
	maxKeys    = 512               // keys of inputs that are remembered, to recognise a repeated one
	maxUnsent  = 1 << 20           // bytes that are buffered for a daemon that does not read
)

// daemons are the connections of a keeper to daemons, and how it gets more of them.
type daemons struct {
	conns    []*conn
	listener int       // descriptor of the listening socket; -1 if there is none
	listenAt time.Time // time of the next attempt to listen
	orphan   bool      // true if the daemon that started this keeper is gone: the next one must be able to connect
}

// inputs is the standard input of the command, and what daemons have to write to it.
type inputs struct {
	stdin   int             // descriptor of the standard input; -1 if there is none
	waiting []*conn         // connections with an input that is not written yet, in order
	written map[uint64]bool // hashed keys of the last inputs
	order   []uint64        // the same keys, the oldest first
}

// A conn is a connection to a daemon.
type conn struct {
	fd       int
	shown    bool   // true if the other end is a daemon: it has shown that it can open the journal
	files    []int  // descriptors that came with requests and are not used yet
	in       []byte // received bytes of a request that is not complete
	out      []byte // bytes that are not sent yet
	watching bool   // true if changes are reported here
	armed    bool   // true if the next output after an offset is reported here
	after    int64  // the offset after which that output begins
	input    *input // input that is not written yet; the next request waits for it
	closed   bool
}

// An input is data that is being written to the standard input of the command.
type input struct {
	key  uint64 // hash of the key of the input; zero if it has none
	data []byte // bytes that are not written yet
	eof  bool   // true if standard input is closed after the data
	last bool   // true if data is what ends the input of a terminal
}

func newConn(fd int) *conn { return &conn{fd: fd} }

var errGone = errors.New("nobody is there any more")

// awaitRequest blocks until a complete request was received, or the daemon has closed the
// connection.
func (c *conn) awaitRequest() (record.Record, error) {
	var rights [64]byte
	for seen := 0; ; {
		if i := slices.Index(c.in[seen:], '\n'); i >= 0 {
			r, err := record.Parse(c.in[:seen+i])
			c.in = slices.Clone(c.in[seen+i+1:]) // frees the memory of a long launch
			return r, err
		}
		seen = len(c.in)
		n, m, _, _, err := syscall.Recvmsg(c.fd, buf[:], rights[:], syscall.MSG_CMSG_CLOEXEC)
		switch {
		case err == syscall.EINTR:
			continue
		case err == nil && n == 0, err == syscall.ECONNRESET:
			return record.Record{}, errGone
		case err != nil:
			return record.Record{}, err
		case len(c.in) > maxLaunch:
			return record.Record{}, syscall.EMSGSIZE
		}
		c.files = append(c.files, filesIn(rights[:m])...)
		c.in = append(c.in, buf[:n]...)
	}
}

// awaitLaunch blocks until the daemon sends a launch. It ignores requests that
// concern the last command, and closes their connections so that nobody waits for an
// answer.
func (c *conn) awaitLaunch() (r record.Record, err error) {
	for err == nil && r.Kind != Launch {
		if r, err = c.awaitRequest(); r.Kind == Meet && len(c.files) > 0 {
			syscall.Close(c.files[0])
			c.files = c.files[1:]
		}
	}
	return r, err
}

// filesIn returns the descriptors in a control message.
func filesIn(control []byte) (files []int) {
	messages, _ := syscall.ParseSocketControlMessage(control)
	for i := range messages {
		more, _ := syscall.ParseUnixRights(&messages[i])
		files = append(files, more...)
	}
	return files
}

// listen opens the socket in the folder of the process if the daemon that started
// this keeper is gone. It is tried again later if it fails, as on a full disk. The
// path names the folder by its descriptor, because the path of a folder may be longer
// than the path of a socket may be.
func (k *keeper) listen() {
	if !k.orphan || k.listener >= 0 {
		return
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err == nil {
		k.listener = fd
		err = syscall.Bind(fd, &syscall.SockaddrUnix{Name: "/proc/self/fd/" + strconv.Itoa(k.dir) + "/" + SocketFile})
	}
	if err == nil {
		err = syscall.Listen(fd, maxConns)
	}
	k.listenAt = time.Time{}
	if err != nil {
		k.unlisten()
		k.listenAt = time.Now().Add(lastRound)
	}
}

func (k *keeper) unlisten() {
	if k.listener >= 0 {
		syscall.Unlinkat(k.dir, SocketFile)
		syscall.Close(k.listener)
		k.listener = -1
	}
}

// events returns the events to poll for.
func (c *conn) events() int16 {
	var e int16
	if c.input == nil { // requests are handled one after the other
		e |= sys.PollIn
	}
	if len(c.out) > 0 {
		e |= sys.PollOut
	}
	return e
}

// serve accepts connections, receives requests and sends answers.
func (k *keeper) serve() {
	for _, c := range k.conns {
		if k.ready(c.fd) {
			c.flush()
			if c.input == nil {
				k.receive(c)
			}
		}
	}
	if k.ready(k.listener) {
		k.accept()
	}
	for _, c := range k.conns {
		k.orphan = k.orphan || c.fd == launchFD && c.closed
	}
	k.listen() // before the connection is closed, so that the next daemon finds the socket
	k.conns = slices.DeleteFunc(k.conns, func(c *conn) bool {
		if !c.closed || c.input != nil { // an input that was received is still delivered
			return false
		}
		syscall.Close(c.fd)
		return true
	})
	k.noteDaemons(time.Now())
}

func (k *keeper) accept() {
	fd, _, err := syscall.Accept4(k.listener, syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK)
	if err != nil {
		return
	}
	if len(k.conns) >= maxConns { // those who show nothing keep no daemon out
		if i := slices.IndexFunc(k.conns, func(c *conn) bool { return !c.shown }); i >= 0 {
			syscall.Close(k.conns[i].fd)
			k.conns = slices.Delete(k.conns, i, i+1)
		}
	}
	k.addConn(fd, false)
}

// addConn adds a connection.
func (k *keeper) addConn(fd int, shown bool) {
	if len(k.conns) >= maxConns {
		syscall.Close(fd)
		return
	}
	c := newConn(fd)
	c.shown = shown
	k.conns = append(k.conns, c)
}

// isShown reports whether the other end of a connection is a daemon: it has sent the journal,
// open for reading, along with its first byte. Every process of the user can connect to the
// socket, also a command that a sandbox keeps from the data folder. Such a command can get a
// descriptor of the journal that reads nothing, so that is no proof.
func (c *conn) isShown() bool {
	for _, fd := range c.files {
		var theirs, ours syscall.Stat_t
		same := syscall.Fstat(fd, &theirs) == nil && syscall.Fstat(stateFD, &ours) == nil && theirs.Dev == ours.Dev && theirs.Ino == ours.Ino
		c.shown = c.shown || same && sys.Reads(fd)
		syscall.Close(fd)
	}
	c.files = nil
	return c.shown
}

// receive reads requests and carries them out.
func (k *keeper) receive(c *conn) {
	var rights [64]byte
	n, m, _, _, err := syscall.Recvmsg(c.fd, buf[:], rights[:], syscall.MSG_CMSG_CLOEXEC)
	if err == syscall.EAGAIN || err == syscall.EINTR {
		return
	}
	c.files = append(c.files, filesIn(rights[:m])...)
	if err != nil || n <= 0 || len(c.in)+n > maxRequest || !c.shown && !c.isShown() {
		c.closed = true
		return
	}
	c.in = append(c.in, buf[:n]...)
	k.handleRequests(c)
}

// handleRequests carries out the requests that are complete.
func (k *keeper) handleRequests(c *conn) {
	for c.input == nil {
		i := slices.Index(c.in, '\n')
		if i < 0 {
			break
		}
		r, err := record.Parse(c.in[:i])
		c.in = c.in[:copy(c.in, c.in[i+1:])]
		if err != nil {
			c.closed = true
			return
		}
		k.handleRequest(c, r)
	}
	if len(c.in) == 0 {
		c.in = resetBuffer(c.in)
	}
}

// handleRequest carries out one request.
func (k *keeper) handleRequest(c *conn, r record.Record) {
	switch r.Kind {
	case Watch:
		c.watching = true
		c.sendLine(journalRecord(Changed))
		if k.reading {
			c.send(record.New(Reading).WithFlag("yes", true))
		}
	case Meet:
		if len(c.files) > 0 {
			syscall.SetNonblock(c.files[0], true)
			k.addConn(c.files[0], true)
			c.files = c.files[1:]
		}
	case Arm:
		c.armed, c.after = true, r.Int("at")
		k.reportSize()
	case Stdin:
		k.queueInput(c, r)
	case Consume:
		k.log.Consume(r.Int("at"))
		c.answer(nil)
	case Rest:
		k.after, k.endAt = time.Duration(r.Int("after")), time.Time{}
		c.answer(nil)
	case Resize:
		if k.terminal < 0 {
			c.answer(errors.New("the process has no terminal"))
			return
		}
		c.answer(k.resize(uint16(r.Int("rows")), uint16(r.Int("cols"))))
	case Signal:
		c.answer(k.signalGroup(syscall.Signal(r.Int("signal"))))
	case Stop:
		if after := time.Duration(r.Int("interrupt")); after > 0 {
			k.interrupt(r.Get("reason"), after)
		} else {
			k.stop(r.Get("reason"), time.Duration(r.Int("grace")))
		}
		c.answer(nil)
	default:
		c.answer(errors.New("unknown request " + strconv.Quote(r.Kind)))
	}
}

func (c *conn) answer(err error) {
	if err != nil {
		c.send(record.New(Refused).With("reason", err.Error()))
		return
	}
	c.send(record.New(OK))
}

func (c *conn) send(r record.Record) { c.sendLine(r.Line()) }

// sizeLine is encoded only once, because it may be sent for every read of output.
var sizeLine = record.New(Size).Line()

func (c *conn) sendLine(line []byte) {
	c.out = append(c.out, line...)
	c.flush()
}

// resetBuffer returns the buffer without content if it is small, and frees it otherwise.
func resetBuffer(b []byte) []byte {
	if cap(b) > 4096 {
		return nil
	}
	return b[:0]
}

func (c *conn) flush() {
	for len(c.out) > 0 {
		n, err := syscall.SendmsgN(c.fd, c.out, nil, nil, syscall.MSG_NOSIGNAL|syscall.MSG_DONTWAIT)
		if err == syscall.EINTR {
			continue
		}
		if err == syscall.EAGAIN && len(c.out) < maxUnsent {
			return
		}
		if err != nil {
			c.closed, c.out = true, nil
			return
		}
		c.out = c.out[:copy(c.out, c.out[n:])]
	}
	c.out = resetBuffer(c.out)
}

// reportChange reports to all watching connections that the journal has new records.
func (k *keeper) reportChange() {
	line := journalRecord(Changed)
	for _, c := range k.conns {
		if c.watching && !c.closed && !(k.free && c.fd == launchFD) { // the launch socket gets a Free record instead
			c.sendLine(line)
		}
	}
}

// journalRecord returns a record with the present length of the journal. Everything up
// to there that must be synced is synced, because the keeper has only one thread.
func journalRecord(kind string) []byte {
	var s syscall.Stat_t
	syscall.Fstat(stateFD, &s)
	return record.New(kind).WithInt("at", s.Size).Line()
}

// reportSize reports new output to the connections that are armed.
func (k *keeper) reportSize() {
	for _, c := range k.conns {
		if c.armed && !c.closed && k.log.Totals().Bytes > c.after {
			c.armed = false
			c.sendLine(sizeLine)
		}
	}
}

// queueInput queues an input, unless one with the same key was delivered before.
func (k *keeper) queueInput(c *conn, r record.Record) {
	key := uint64(0)
	if text := r.Get("key"); text != "" {
		key = hash(text)
		k.after, k.endAt = 0, time.Time{}
	}
	switch {
	case key != 0 && k.written[key]:
		c.answer(nil)
	case k.stdin < 0:
		c.answer(errors.New("closed"))
	default:
		c.input = &input{key: key, data: []byte(r.Get("data")), eof: r.Flag("close")}
		k.waiting = append(k.waiting, c)
		k.writeInputs()
	}
}

// writeInputs writes the queued inputs until the pipe or terminal is full.
func (k *keeper) writeInputs() {
	for len(k.waiting) > 0 {
		c := k.waiting[0]
		done, err := k.writeOnce(c.input)
		if !done {
			return
		}
		c.input = nil
		k.waiting = k.waiting[1:]
		c.answer(err)
	}
}

// writeOnce writes as much of an input as fits, unless one with the same key was delivered: it
// may have been sent again while the first one waited. One that failed was not delivered.
func (k *keeper) writeOnce(in *input) (done bool, err error) {
	if in.key != 0 && k.written[in.key] {
		return true, nil
	}
	done, err = k.writeInput(in)
	if done && err == nil {
		k.rememberKey(in.key)
	}
	if done {
		k.noteActivity()
	}
	return done, err
}

// writeInput writes as much of an input as fits. It is done if all was written, or if
// standard input is closed.
func (k *keeper) writeInput(in *input) (done bool, err error) {
	if done, err = k.writeData(in); !done || err != nil || !in.eof {
		return done, err
	}
	if k.stdin == k.terminal && k.stdin >= 0 && !in.last { // a terminal is not closed: its input ends when that is typed
		in.data, in.last = k.endKeys(), true
		if done, _ := k.writeData(in); !done { // a terminal that cannot be written to is closed
			return false, nil
		}
	}
	k.closeStdin()
	return true, nil
}

// writeData writes as much of the data of an input as fits.
func (k *keeper) writeData(in *input) (done bool, err error) {
	for len(in.data) > 0 {
		if k.stdin < 0 {
			return true, errors.New("closed")
		}
		n, err := syscall.Write(k.stdin, in.data)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return false, nil
		case err != nil:
			k.closeStdin()
			return true, errors.New("closed")
		case n > 0:
			k.noteTyped(in.data[:n])
		}
		in.data = in.data[n:]
	}
	return true, nil
}

func (k *keeper) closeStdin() {
	if k.stdin >= 0 && k.stdin != k.terminal {
		syscall.Close(k.stdin)
	}
	k.stdin = -1
}

// rememberKey stores the key of an input that was delivered.
func (k *keeper) rememberKey(key uint64) {
	if key == 0 {
		return
	}
	k.written[key] = true
	if k.order = append(k.order, key); len(k.order) > maxKeys {
		delete(k.written, k.order[0])
		k.order = k.order[1:]
	}
}

// hash returns the FNV-1a hash of a text.
func hash(text string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return h
}
