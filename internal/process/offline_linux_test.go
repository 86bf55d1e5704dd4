package process

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/abide-run/abide/internal/process/sandbox"
)

// networkWays are ways to the network, or to somebody on this machine who is on it, that a
// command without a network may not have.
var networkWays = []escape{
	{name: "TCP to the loopback address", do: func(w world) error { return dial("tcp4", fmt.Sprint("127.0.0.1:", w.Port)) }},
	{name: "TCP to any address", do: func(w world) error { return dial("tcp4", fmt.Sprint("0.0.0.0:", w.Port)) }},
	{name: "TCP to the address of the machine", do: func(w world) error { return dial("tcp4", fmt.Sprintf("%s:%d", w.Outer, w.Port)) }},
	{name: "TCP over IPv6", do: func(w world) error { return dial("tcp6", fmt.Sprint("[::1]:", w.Port)) }},
	{name: "TCP over IPv6 to an address of version 4", do: connectMapped},
	{name: "multipath TCP", do: func(w world) error { return connectMultipath(w.Port) }},
	{name: "TCP with fast open", do: func(w world) error { return fastOpen(w.Port) }},
	{name: "UDP to the loopback address", do: func(w world) error { return exchangePackets(w.Port) }},
	{name: "UDP to the address of the machine", do: func(w world) error { return sendPacket(w.Outer, w.Port) }},
	{name: "UDP to everybody", do: func(w world) error { return sendPacket("255.255.255.255", w.Port) }},
	{name: "UDP to a group", do: func(w world) error { return sendPacket("224.0.0.1", w.Port) }},
	{name: "SCTP", do: func(w world) error { return connectBy(unix.SOCK_STREAM, unix.IPPROTO_SCTP, w.Port) }},
	{name: "UDP-Lite", do: func(w world) error { return connectOut(unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE, w) }},
	{name: "a raw socket", do: func(world) error { return makes(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW) }, root: true},
	{name: "a raw socket of IPv6", do: func(world) error { return makes(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_RAW) }, root: true},
	{name: "ICMP by a raw socket", do: func(world) error { return makes(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) }, root: true},
	{name: "ICMP by a socket for echoes", do: func(w world) error { return connectOut(unix.SOCK_DGRAM, unix.IPPROTO_ICMP, w) }},
	{name: "a socket for packets", do: func(world) error { return makes(unix.AF_PACKET, unix.SOCK_RAW, 0) }, root: true},
	{name: "a socket for packets in a namespace of its own", script: `unshare -Ur ip link show | grep -q '^2:'`},
	{name: "a socket to the host of a virtual machine", do: func(world) error { return makes(unix.AF_VSOCK, unix.SOCK_STREAM, 0) }},
	{name: "a socket of SMC", do: func(world) error { return makes(unix.AF_SMC, unix.SOCK_STREAM, 0) }},
	{name: "a socket of TIPC", do: func(world) error { return makes(unix.AF_TIPC, unix.SOCK_STREAM, 0) }},
	{name: "a socket of Bluetooth", do: func(world) error { return makes(unix.AF_BLUETOOTH, unix.SOCK_RAW, 1) }},
	{name: "a socket of CAN", do: func(world) error { return makes(unix.AF_CAN, unix.SOCK_RAW, 1) }},
	{name: "a socket of XDP", do: func(world) error { return makes(unix.AF_XDP, unix.SOCK_RAW, 0) }, root: true},
	{name: "a socket of the kernel's cryptography", do: func(world) error { return makes(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) }},
	{name: "sockets by io_uring", do: func(world) error { return setUpRing() }},
	{name: "an abstract socket", do: func(w world) error { return dial("unix", "@"+w.Abstract) }},
	{name: "an abstract socket for packets", do: func(w world) error { return sendTo("@" + w.Abstract + "-packets") }},
	{name: "interfaces of the machine by netlink", do: func(world) error { return seesInterfaces() }},
	{name: "interfaces of the machine by /proc", script: `[ "$(grep -c : /proc/net/dev)" -gt 1 ]`},
	{name: "interfaces of the machine by another process", script: `[ "$(grep -c : /proc/$PID/net/dev)" -gt 1 ]`, open: true},
	{name: "an interface of its own", script: `ip link add abide0 type dummy`, root: true},
	{name: "a tunnel", do: makeTunnel, root: true},
	{name: "the namespace of another process", do: joinNamespace, since: 1},
	{name: "the namespace of another process by a descriptor", do: joinByDescriptor, root: true},
	{name: "the namespace of the first process", script: `nsenter --net=/proc/1/ns/net true`, root: true},
	{name: "the namespace of another process as root of its own", script: `unshare -Ur nsenter --net=/proc/$PID/ns/net true`, barred: true},
	{name: "a socket of another process", do: takeSocket, since: 1},
	{name: "sockets that were left open", script: `ls -l /proc/self/fd | grep -q socket`, barred: true},
	{name: "a socket with a path", do: func(w world) error { return dial("unix", w.Socket) }, open: true},
	{name: "a socket for packets with a path", do: func(w world) error { return sendTo(w.Socket + "-packets") }, open: true},
	{name: "a proxy with a path", do: useProxy, open: true},
	{name: "a connection that somebody hands over", do: receiveConnection, open: true},
}

func connectMapped(w world) error {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return unix.Connect(fd, &unix.SockaddrInet6{Port: w.Port, Addr: [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}})
}

// connectBy connects to the loopback address with a protocol.
func connectBy(kind, protocol, port int) error {
	fd, err := unix.Socket(unix.AF_INET, kind, protocol)
	if err != nil {
		return err
	}
	return unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
}

// connectOut connects to the address of the machine with a protocol for packets, which
// succeeds if there is a way to it.
func connectOut(kind, protocol int, w world) error {
	fd, err := unix.Socket(unix.AF_INET, kind, protocol)
	if err != nil {
		return err
	}
	return unix.Connect(fd, &unix.SockaddrInet4{Port: w.Port, Addr: [4]byte(net.ParseIP(w.Outer).To4())})
}

// sendPacket sends a packet, which succeeds if there is a way to the address.
func sendPacket(address string, port int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1); err != nil {
		return err
	}
	return unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrInet4{Port: port, Addr: [4]byte(net.ParseIP(address).To4())})
}

// setUpRing makes a ring of io_uring, which could make sockets without their system calls.
func setUpRing() error {
	for _, e := range escapes {
		if e.name == "use io_uring" {
			return e.do(world{})
		}
	}
	return errors.New("there is no such escape")
}

// seesInterfaces succeeds if there is another interface than one for the loopback address.
func seesInterfaces() error {
	list, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, i := range list {
		if i.Flags&net.FlagLoopback == 0 {
			return nil
		}
	}
	return errors.New("there is nothing but the loopback address")
}

func makeTunnel(world) error {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR, 0)
	if err != nil {
		return err
	}
	request, err := unix.NewIfreq("abide1")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_TUN)
	return unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
}

func joinByDescriptor(w world) error {
	fd, err := unix.PidfdOpen(w.PID, 0)
	if err != nil {
		return err
	}
	return unix.Setns(fd, unix.CLONE_NEWNET)
}

// takeSocket takes the connection that another process has as its standard input.
func takeSocket(w world) error {
	fd, err := unix.PidfdOpen(w.Connected, 0)
	if err != nil {
		return err
	}
	socket, err := unix.PidfdGetfd(fd, 0, 0)
	if err != nil {
		return err
	}
	_, err = unix.Getpeername(socket)
	return err
}

// useProxy speaks with a listener on the network through a socket with a path.
func useProxy(w world) error {
	c, err := net.Dial("unix", w.Socket+"-proxy")
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	line, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && line != "from the network\n" {
		err = fmt.Errorf("the proxy said %q", line)
	}
	return err
}

// receiveConnection gets a connection on the network from somebody who has one.
func receiveConnection(w world) error {
	c, err := net.Dial("unix", w.Socket+"-gift")
	if err != nil {
		return err
	}
	defer c.Close()
	out := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := c.(*net.UnixConn).ReadMsgUnix(make([]byte, 1), out)
	if err != nil {
		return err
	}
	messages, err := unix.ParseSocketControlMessage(out[:n])
	if err != nil || len(messages) != 1 {
		return fmt.Errorf("%d messages, %w", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	_, err = unix.Getpeername(fds[0])
	return err
}

// startNetwork starts what a way to the network leads to.
func (p *prison) startNetwork() {
	p.Outer = "127.0.0.1"
	if addresses, err := net.InterfaceAddrs(); err == nil {
		for _, a := range addresses {
			if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() {
				p.Outer = ip.IP.String()
			}
		}
	}
	if p.Outer != "127.0.0.1" {
		p.accept("tcp4", fmt.Sprintf("%s:%d", p.Outer, p.Port), func(c net.Conn) {})
	}
	p.startConnected(fmt.Sprint("127.0.0.1:", p.Port))
	behind := p.accept("tcp4", "127.0.0.1:0", func(c net.Conn) { io.WriteString(c, "from the network\n") }).Addr().String()
	p.accept("unix", p.Socket+"-proxy", func(c net.Conn) {
		if to, err := net.Dial("tcp4", behind); err == nil {
			defer to.Close()
			io.Copy(c, to)
		}
	})
	p.accept("unix", p.Socket+"-gift", func(c net.Conn) {
		to, err := net.Dial("tcp4", behind)
		if err != nil {
			return
		}
		defer to.Close()
		if f, err := to.(*net.TCPConn).File(); err == nil {
			c.(*net.UnixConn).WriteMsgUnix([]byte("x"), unix.UnixRights(int(f.Fd())), nil)
			f.Close()
		}
	})
}

// startConnected starts a process that has a connection as its standard input.
func (p *prison) startConnected(address string) {
	c, err := net.Dial("tcp4", address)
	must(p.t, err)
	defer c.Close()
	f, err := c.(*net.TCPConn).File()
	must(p.t, err)
	defer f.Close()
	sleeper := exec.Command("sleep", "1000")
	sleeper.Stdin = f
	must(p.t, sleeper.Start())
	p.t.Cleanup(func() { sleeper.Process.Kill(); sleeper.Wait() })
	p.Connected = sleeper.Process.Pid
}

// accept listens until the test ends, and serves each connection.
func (p *prison) accept(network, address string, serve func(net.Conn)) net.Listener {
	l, err := net.Listen(network, address)
	must(p.t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serve(c)
			c.Close()
		}
	}()
	p.t.Cleanup(func() { l.Close(); <-done })
	return l
}

// offline makes the commands of a prison have no network.
func (p *prison) offline(name string, o sandbox.Options) *Manager {
	o.Hidden, o.Temp, o.Offline = []string{p.Data}, []string{p.base + "/tmp"}, true
	s := sandbox.Open(o)
	p.t.Cleanup(s.Close)
	return open(p.t, p.base+"/"+name, Options{Sandbox: s})
}

// TestNetworkOff tries every way to the network: without a sandbox, where it has to work,
// and with commands.network = "off".
func TestNetworkOff(t *testing.T) {
	if sandbox.Kernel() == 0 {
		skipOrFail(t, "landlock", "this kernel has no Landlock")
	}
	p := newPrison(t)
	p.startNetwork()
	free, off, bare := p.m, p.offline("off", sandbox.Options{}), p.offline("bare", sandbox.Options{Mode: sandbox.Off})
	if info, _, err := off.Start(t.Context(), Spec{Key: "try", Owner: me, Command: "true", Dir: p.base}); err != nil {
		skipOrFail(t, "namespaces", err.Error())
	} else if _, err := off.WaitGone(t.Context(), me, info.ID); err != nil {
		t.Fatal(err)
	}
	tried, held := 0, 0
	for _, e := range networkWays {
		if e.root && os.Getuid() != 0 {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			p.m = free
			there, printed := p.try(t, e, Spec{Free: true})
			if !there && !e.barred {
				t.Logf("this machine has no such way: %s", printed)
			}
			p.m = off
			worked, printed := p.try(t, e, Spec{})
			if worked && !e.open || !worked && e.open && there {
				t.Errorf("it worked: %v, and docs/SECURITY.md says otherwise; it printed %s", worked, printed)
			}
			tried++
			if !worked {
				held++
			}
			p.m = bare
			if worked, printed := p.try(t, e, Spec{}); worked && !e.open && e.since == 0 {
				t.Errorf("without Landlock it worked, and printed %s", printed)
			}
		})
	}
	t.Logf("as user %d: %d ways to the network were tried, and %d are held", os.Getuid(), tried, held)
}

// TestNetworkOffOfAnOrdinaryUser runs TestNetworkOff as a user without rights.
func TestNetworkOffOfAnOrdinaryUser(t *testing.T) { runAsOrdinaryUser(t, "TestNetworkOff") }

// TestLoopbackWorksWithoutANetwork has two processes of one command speak with each other.
func TestLoopbackWorksWithoutANetwork(t *testing.T) {
	p := newPrison(t)
	p.m = p.offline("off", sandbox.Options{Mode: sandbox.Off})
	worked, printed := p.try(t, escape{script: `ip -o addr show lo | grep -q 127.0.0.1 && ip link show lo | grep -q UP`}, Spec{})
	if !worked && strings.Contains(printed, "namespaces") {
		skipOrFail(t, "namespaces", printed)
	}
	if !worked {
		t.Errorf("there is no loopback interface that is up: %s", printed)
	}
}

// TestWhatTheNetworkLeavesOpenIsDocumented holds docs/SECURITY.md against the ways to the
// network.
func TestWhatTheNetworkLeavesOpenIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/SECURITY.md")
	must(t, err)
	for _, e := range networkWays {
		if e.open && !strings.Contains(string(text), e.name) {
			t.Errorf("docs/SECURITY.md does not say that nothing holds this: %s", e.name)
		}
	}
}
