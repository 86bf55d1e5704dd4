package bridge

import (
	"context"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

// maxSurveyed is the approximate maximum number of bytes of the contents in one answer to
// Survey.
const maxSurveyed = 8 << 20

// Survey implements the service.
func (s *service) Survey(ctx context.Context, r *pb.SurveyRequest) (*pb.SurveyResponse, error) {
	request := workspace.SurveyRequest{
		Dirs: texts[string](r.GetDirectories()), Only: r.GetOnly(), Known: make(map[string]protect.State), Owner: process.Owner(r.GetOwner()),
	}
	for _, owner := range r.GetKin() {
		request.Kin = append(request.Kin, process.Owner(owner))
	}
	if r.GetSince() != nil {
		request.Since = r.GetSince().AsTime()
	}
	for _, k := range r.GetKnown() {
		marks := marksOf(k.GetMarks())
		request.Known[string(k.GetPath())] = protect.State{Exists: marks != [2]protect.Mark{}, Marks: marks}
	}
	found, err := s.ws.Files.Survey(ctx, request)
	if err != nil {
		return nil, toWire(err)
	}
	answer := &pb.SurveyResponse{Folders: texts[[]byte](found.Folders), Taken: timestamppb.New(found.Taken), Missed: []byte(found.Missed), Busy: found.Busy}
	for _, t := range found.Targets {
		answer.Targets = append(answer.Targets, &pb.SurveyResponse_Target{Path: []byte(t.Path), Git: t.Git, Folder: []byte(t.Folder), Reason: []byte(t.Reason)})
	}
	size := 0
	for path, state := range found.States {
		if size += len(path) + len(state.Content) + len(state.Link); size > maxSurveyed {
			break
		}
		to := &pb.SurveyResponse_State{Path: []byte(path), Reason: []byte(found.Reasons[path])}
		if known := request.Known[path]; known.Exists && state.Exists && known.Marks == state.Marks {
			to.Unchanged = true
		} else {
			to.State = stateTo(state)
		}
		answer.States = append(answer.States, to)
	}
	return answer, nil
}

// Restore implements the service.
func (s *service) Restore(ctx context.Context, r *pb.RestoreRequest) (*pb.RestoreResponse, error) {
	return &pb.RestoreResponse{}, toWire(s.ws.Files.Restore(ctx, string(r.GetPath()), stateOf(r.GetNow()), stateOf(r.GetWant())))
}

// Survey implements workspace.Files. The answer comes in several messages if it does not fit
// into one.
func (c remoteFiles) Survey(ctx context.Context, r workspace.SurveyRequest) (workspace.Survey, error) {
	size := 0
	all := workspace.Survey{States: make(map[string]protect.State), Reasons: make(map[string]string)}
	first, err := c.survey(ctx, r, &all, &size)
	if err != nil {
		return workspace.Survey{}, err
	}
	all.Folders, all.Taken, all.Missed = texts[string](first.GetFolders()), first.GetTaken().AsTime(), brief(string(first.GetMissed()))
	all.Busy = first.GetBusy()
	for _, t := range first.GetTargets() {
		target := protect.Target{Path: string(t.GetPath()), Git: t.GetGit(), Folder: string(t.GetFolder())}
		all.Targets = append(all.Targets, workspace.SurveyTarget{Target: target, Reason: brief(string(t.GetReason()))})
	}
	if err := checkSurvey(all); err != nil {
		return workspace.Survey{}, err
	}
	rest := missing(all, r.Known)
	for before := len(rest) + 1; len(rest) > 0 && len(rest) < before; { // it ends when an answer brings nothing new: a confined workspace leaves out files for good
		before = len(rest)
		if _, err := c.survey(ctx, workspace.SurveyRequest{Known: rest, Only: true}, &all, &size); err != nil {
			return workspace.Survey{}, err
		}
		rest = missing(all, r.Known)
	}
	return all, nil
}

// missing returns the files whose states are wanted and have not come.
func missing(s workspace.Survey, known map[string]protect.State) map[string]protect.State {
	rest := make(map[string]protect.State)
	for path, state := range known {
		if _, ok := s.States[path]; !ok {
			rest[path] = state
		}
	}
	for _, t := range s.Targets {
		if _, ok := s.States[t.Path]; !ok {
			rest[t.Path] = known[t.Path]
		}
	}
	return rest
}

// maxSurvey is the maximum size of all states of a survey. The files that are looked at are
// few and small; a workspace that has more could fill the memory of the engine.
const maxSurvey = 64 << 20

// survey makes one request, adds the states of the answer, and their size.
func (c remoteFiles) survey(ctx context.Context, r workspace.SurveyRequest, all *workspace.Survey, size *int) (*pb.SurveyResponse, error) {
	request := &pb.SurveyRequest{Directories: texts[[]byte](r.Dirs), Only: r.Only, Owner: string(r.Owner)}
	for _, owner := range r.Kin {
		request.Kin = append(request.Kin, string(owner))
	}
	if !r.Since.IsZero() {
		request.Since = timestamppb.New(r.Since)
	}
	for path, state := range r.Known {
		known := &pb.SurveyRequest_Known{Path: []byte(path)}
		if state.Exists {
			known.Marks = marksTo(state.Marks)
		}
		request.Known = append(request.Known, known)
	}
	answer, err := c.rpc.Survey(ctx, request)
	if err != nil {
		return nil, fromWire(ctx, err)
	}
	for _, s := range answer.GetStates() {
		path := string(s.GetPath())
		if *size += proto.Size(s); *size > maxSurvey {
			return nil, errMoreThanAsked
		}
		if all.States[path] = stateOf(s.GetState()); s.GetUnchanged() {
			all.States[path] = r.Known[path]
		}
		if reason := brief(string(s.GetReason())); reason != "" {
			all.Reasons[path] = reason
		}
	}
	return answer, nil
}

// Restore implements workspace.Files.
func (c remoteFiles) Restore(ctx context.Context, path string, now, want protect.State) error {
	now.Content = nil // the digest tells
	_, err := c.rpc.Restore(ctx, &pb.RestoreRequest{Path: []byte(path), Now: stateTo(now), Want: stateTo(want)})
	return fromWire(ctx, err)
}

func stateTo(s protect.State) *pb.FileState {
	return &pb.FileState{
		Exists: s.Exists, Crowd: s.Crowd, Link: []byte(s.Link), Mode: s.Mode, Owner: s.UID, Group: s.GID,
		Content: s.Content, Digest: s.Digest, Aside: s.Aside, Marks: marksTo(s.Marks),
	}
}

func stateOf(s *pb.FileState) protect.State {
	return protect.State{
		Exists: s.GetExists(), Crowd: s.GetCrowd(), Link: string(s.GetLink()), Mode: s.GetMode(), UID: s.GetOwner(), GID: s.GetGroup(),
		Content: s.GetContent(), Digest: s.GetDigest(), Aside: s.GetAside(), Marks: marksOf(s.GetMarks()),
	}
}

func marksTo(marks [2]protect.Mark) []*pb.FileState_Mark {
	if marks == [2]protect.Mark{} {
		return nil
	}
	var list []*pb.FileState_Mark
	for _, m := range marks {
		list = append(list, &pb.FileState_Mark{Device: m.Dev, Inode: m.Ino, Size: m.Size, Changed: m.Changed, Mode: m.Mode})
	}
	return list
}

func marksOf(list []*pb.FileState_Mark) (marks [2]protect.Mark) {
	for i, m := range list[:min(len(list), len(marks))] {
		marks[i] = protect.Mark{Dev: m.GetDevice(), Ino: m.GetInode(), Size: m.GetSize(), Changed: m.GetChanged(), Mode: m.GetMode()}
	}
	return marks
}
