package bridge

import (
	"math"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/process/sandbox"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

func bytesOf(texts []string) [][]byte {
	if texts == nil {
		return nil
	}
	all := make([][]byte, len(texts))
	for i, t := range texts {
		all[i] = []byte(t)
	}
	return all
}

func textsOf(all [][]byte) []string {
	if len(all) == 0 {
		return nil
	}
	texts := make([]string, len(all))
	for i, b := range all {
		texts[i] = string(b)
	}
	return texts
}

func timeTo(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func timeOf(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime().Local()
}

func specTo(s process.Spec) *pb.Spec {
	p := &pb.Spec{
		Key: s.Key, Owner: string(s.Owner), Command: []byte(s.Command), Arguments: bytesOf(s.Args), Directory: []byte(s.Dir),
		Title: []byte(s.Title), Class: string(s.Class), Stdin: s.Stdin, Quota: s.Quota, Limits: &pb.Limits{
			Time: durationpb.New(s.Limits.Time), Memory: s.Limits.Memory, Processes: int64(s.Limits.Processes),
		},
	}
	p.Root, p.Family, p.Free, p.Require, p.Offline = []byte(s.Root), string(s.Family), s.Free, s.Require, s.Offline
	if s.Env != nil {
		p.Environment = &pb.Environment{Variables: bytesOf(s.Env)}
	}
	if s.TTY != nil {
		p.Terminal = sizeTo(*s.TTY)
	}
	return p
}

func specOf(p *pb.Spec) process.Spec {
	s := process.Spec{
		Key: p.GetKey(), Owner: process.Owner(p.GetOwner()), Command: string(p.GetCommand()), Args: textsOf(p.GetArguments()), Dir: string(p.GetDirectory()),
		Title: string(p.GetTitle()), Class: process.Class(p.GetClass()), Stdin: p.GetStdin(), Quota: p.GetQuota(), Limits: process.Limits{
			Time: p.GetLimits().GetTime().AsDuration(), Memory: p.GetLimits().GetMemory(), Processes: clamp(p.GetLimits().GetProcesses()),
		},
	}
	s.Root, s.Family, s.Free, s.Require, s.Offline = string(p.GetRoot()), process.Owner(p.GetFamily()), p.GetFree(), p.GetRequire(), p.GetOffline()
	if p.GetEnvironment() != nil {
		s.Env = append([]string{}, textsOf(p.GetEnvironment().GetVariables())...) // an empty environment is not nil
	}
	if p.GetTerminal() != nil {
		size := sizeOf(p.GetTerminal())
		s.TTY = &size
	}
	return s
}

func sizeTo(s process.Size) *pb.Size { return &pb.Size{Rows: uint32(s.Rows), Columns: uint32(s.Cols)} }

func sizeOf(s *pb.Size) process.Size {
	return process.Size{Rows: uint16(min(s.GetRows(), math.MaxUint16)), Cols: uint16(min(s.GetColumns(), math.MaxUint16))}
}

func inputTo(in process.Input) *pb.Input {
	return &pb.Input{Key: in.Key, Data: in.Data, Close: in.Close}
}

func inputOf(in *pb.Input) process.Input {
	return process.Input{Key: in.GetKey(), Data: in.GetData(), Close: in.GetClose()}
}

func streamTo(s process.Stream) pb.Stream { return pb.Stream(s) }

func streamOf(s pb.Stream) process.Stream {
	switch s {
	case pb.Stream_STREAM_STDOUT:
		return process.Stdout
	case pb.Stream_STREAM_STDERR:
		return process.Stderr
	}
	return process.Both
}

func processTo(i process.Info) *pb.Process {
	p := &pb.Process{
		Id: string(i.ID), Key: i.Key, Owner: string(i.Owner), Command: []byte(i.Command), Arguments: bytesOf(i.Args), Directory: []byte(i.Dir),
		Title: []byte(i.Title), Class: string(i.Class), Terminal: i.TTY, Stdin: i.Stdin, Profile: string(i.Profile), Free: i.Free,
		State: string(i.State), Reason: []byte(i.Reason), Pid: int64(i.PID), Created: timeTo(i.Created), Started: timeTo(i.Started), Ended: timeTo(i.Ended),
		Reading: i.Reading, Lingering: i.Lingering, Gone: i.Gone, Unkept: i.Unkept, Seen: i.Seen, Dropped: i.Dropped, Folder: []byte(i.Files.Dir), OutputFile: []byte(i.Files.Output),
		Output: &pb.Process_Counts{Bytes: i.Output.Bytes, Stdout: i.Output.Stdout, Stderr: i.Output.Stderr, Omitted: i.Output.Omitted},
	}
	if i.Exit != nil {
		p.Exit = &pb.Process_Exit{Code: int32(i.Exit.Code), Signal: i.Exit.Signal, Raw: i.Exit.Raw}
	}
	for _, pid := range i.Survivors {
		p.Survivors = append(p.Survivors, int64(pid))
	}
	return p
}

func processOf(p *pb.Process) process.Info {
	i := process.Info{
		ID: process.ID(p.GetId()), Key: p.GetKey(), Owner: process.Owner(p.GetOwner()), Command: string(p.GetCommand()), Args: textsOf(p.GetArguments()), Dir: string(p.GetDirectory()),
		Title: string(p.GetTitle()), Class: process.Class(p.GetClass()), TTY: p.GetTerminal(), Stdin: p.GetStdin(), Profile: sandbox.Profile(p.GetProfile()), Free: p.GetFree(),
		State: process.State(p.GetState()), Reason: brief(string(p.GetReason())), PID: clamp(p.GetPid()), Created: timeOf(p.GetCreated()), Started: timeOf(p.GetStarted()), Ended: timeOf(p.GetEnded()),
		Reading: p.GetReading(), Lingering: p.GetLingering(), Gone: p.GetGone(), Unkept: p.GetUnkept(), Seen: p.GetSeen(), Dropped: p.GetDropped(), Files: process.Files{Dir: string(p.GetFolder()), Output: string(p.GetOutputFile())},
		Output: countsOf(p.GetOutput()),
	}
	if e := p.GetExit(); e != nil {
		i.Exit = &process.Exit{Code: int(e.GetCode()), Signal: e.GetSignal(), Raw: e.GetRaw()}
	}
	for _, pid := range p.GetSurvivors() {
		i.Survivors = append(i.Survivors, clamp(pid))
	}
	return i
}

func countsOf(c *pb.Process_Counts) process.Output {
	return process.Output{Bytes: c.GetBytes(), Stdout: c.GetStdout(), Stderr: c.GetStderr(), Omitted: c.GetOmitted()}
}

func readTo(h *pb.Handle, r process.ReadRequest) *pb.OutputRequest {
	return &pb.OutputRequest{Handle: h, Offset: r.Offset, Until: r.Until, Limit: int64(r.Limit), Stream: streamTo(r.Stream), Wait: r.Wait}
}

func readOf(r *pb.OutputRequest) process.ReadRequest {
	return process.ReadRequest{Offset: r.GetOffset(), Until: r.GetUntil(), Limit: clamp(r.GetLimit()), Stream: streamOf(r.GetStream()), Wait: r.GetWait()}
}

func chunkTo(c process.Chunk) *pb.OutputResponse {
	r := &pb.OutputResponse{Data: c.Data, Next: c.Next, Omitted: c.Omitted, End: c.End}
	for _, run := range c.Runs {
		r.Runs = append(r.Runs, &pb.OutputResponse_Run{Stream: streamTo(run.Stream), Offset: run.Offset, Length: int64(run.Len), Time: timeTo(run.Time)})
	}
	return r
}

func chunkOf(r *pb.OutputResponse) process.Chunk {
	c := process.Chunk{Data: r.GetData(), Next: r.GetNext(), Omitted: r.GetOmitted(), End: r.GetEnd()}
	for _, run := range r.GetRuns() {
		c.Runs = append(c.Runs, process.Run{Stream: streamOf(run.GetStream()), Offset: run.GetOffset(), Len: clamp(run.GetLength()), Time: timeOf(run.GetTime())})
	}
	return c
}

func truncationTo(t *process.TruncationInfo) *pb.ViewResponse_Truncation {
	if t == nil {
		return nil
	}
	return &pb.ViewResponse_Truncation{
		OriginalBytes: int64(t.OriginalBytes), RetainedBytes: int64(t.RetainedBytes), OmittedBytes: int64(t.OmittedBytes), Strategy: t.Strategy,
	}
}

func truncationOf(t *pb.ViewResponse_Truncation) *process.TruncationInfo {
	if t == nil {
		return nil
	}
	return &process.TruncationInfo{
		OriginalBytes: int(t.GetOriginalBytes()), RetainedBytes: int(t.GetRetainedBytes()), OmittedBytes: int(t.GetOmittedBytes()), Strategy: t.GetStrategy(),
	}
}
