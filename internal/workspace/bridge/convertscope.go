package bridge

import (
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/workspace"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

func modeOf(write bool) scope.Mode {
	if write {
		return scope.Write
	}
	return scope.Read
}

func texts[To, From ~string | ~[]byte](list []From) []To {
	var all []To
	for _, text := range list {
		all = append(all, To(text))
	}
	return all
}

func rulesTo(rules []scope.Rule) []*pb.Rule {
	var list []*pb.Rule
	for _, r := range rules {
		list = append(list, &pb.Rule{Target: []byte(r.Target), Write: r.Mode == scope.Write})
	}
	return list
}

func rulesOf(rules []*pb.Rule) []scope.Rule {
	var list []scope.Rule
	for _, r := range rules {
		list = append(list, scope.Rule{Target: string(r.GetTarget()), Mode: modeOf(r.GetWrite())})
	}
	return list
}

func scopeTo(s *scope.Scope) *pb.Scope {
	data, to := s.Data(), new(pb.Scope)
	for _, a := range data.Allow {
		to.Allow = append(to.Allow, &pb.Scope_Allowance{Path: []byte(a.Path), Write: a.Mode == scope.Write})
	}
	for _, d := range data.Deny {
		to.Deny = append(to.Deny, &pb.Scope_Denial{Names: texts[[]byte](d.Names), Write: d.Mode == scope.Write, Device: d.Dev, Inode: d.Ino})
	}
	return to
}

func scopeOf(s *pb.Scope) *scope.Scope {
	var data scope.Data
	for _, a := range s.GetAllow() {
		data.Allow = append(data.Allow, scope.Allowance{Path: string(a.GetPath()), Mode: modeOf(a.GetWrite())})
	}
	for _, d := range s.GetDeny() {
		data.Deny = append(data.Deny, scope.Denial{Names: texts[string](d.GetNames()), Mode: modeOf(d.GetWrite()), Dev: d.GetDevice(), Ino: d.GetInode()})
	}
	return data.Scope()
}

func findingTo(f scope.Finding) *pb.Finding {
	return &pb.Finding{Verdict: pb.Verdict(f.Verdict), Path: []byte(f.Path), Rule: []byte(f.Rule), Protected: []byte(f.Protected)}
}

// findingOf converts a finding. A verdict that is not known here is a denial, because it
// may be one.
func findingOf(f *pb.Finding) scope.Finding {
	verdict := scope.Verdict(f.GetVerdict())
	if verdict != scope.Unlisted && verdict != scope.Allowed {
		verdict = scope.Denied
	}
	return scope.Finding{Verdict: verdict, Path: string(f.GetPath()), Rule: string(f.GetRule()), Protected: string(f.GetProtected())}
}

// scopeKinds pairs the kinds of files with their names on the wire.
var scopeKinds = map[scope.Kind]pb.FileInfo_Kind{
	scope.Regular: pb.FileInfo_KIND_FILE, scope.Folder: pb.FileInfo_KIND_FOLDER,
	scope.Link: pb.FileInfo_KIND_LINK, scope.Special: pb.FileInfo_KIND_OTHER,
}

func scopeKindOf(kind pb.FileInfo_Kind) scope.Kind {
	for k, name := range scopeKinds {
		if name == kind {
			return k
		}
	}
	return scope.Special
}

func judgementTo(j workspace.Judgement) *pb.JudgeResponse_Judgement {
	to := &pb.JudgeResponse_Judgement{Content: j.Content}
	if j.Path != "" {
		to.Finding = findingTo(j.Finding)
	}
	if j.Err != nil {
		to.Problem = reasonTo(j.Err)
	} else {
		to.Kind = scopeKinds[j.Kind]
	}
	return to
}

// judgementOf converts the answer to a question. What a session protects is known here
// and not in the workspace.
func judgementOf(j *pb.JudgeResponse_Judgement, s *scope.Scope, q workspace.Question) workspace.Judgement {
	of := workspace.Judgement{Finding: findingOf(j.GetFinding())}
	if of.Path != "" && of.Protected == "" {
		of.Protected = s.Protection(of.Path, q.Mode)
	}
	if j.GetProblem() != nil {
		of.Err = errorOf(j.GetProblem())
		return of
	}
	of.Kind = scopeKindOf(j.GetKind())
	if of.Content = j.GetContent(); of.Content == nil && q.Most > 0 {
		of.Content = []byte{}
	}
	return of
}

func rootsTo(roots []workspace.SearchRoot) []*pb.SearchRoot {
	var list []*pb.SearchRoot
	for _, r := range roots {
		list = append(list, &pb.SearchRoot{Path: []byte(r.Path), Given: []byte(r.Given)})
	}
	return list
}

func rootsOf(roots []*pb.SearchRoot) []workspace.SearchRoot {
	var list []workspace.SearchRoot
	for _, r := range roots {
		list = append(list, workspace.SearchRoot{Path: string(r.GetPath()), Given: string(r.GetGiven())})
	}
	return list
}

func limitsTo(l workspace.Limits) *pb.SearchLimits {
	return &pb.SearchLimits{Keep: int64(l.Keep), PerGroup: int64(l.PerGroup), Text: int64(l.Text)}
}

func limitsOf(l *pb.SearchLimits) workspace.Limits {
	return workspace.Limits{Keep: clamp(l.GetKeep()), PerGroup: clamp(l.GetPerGroup()), Text: clamp(l.GetText())}
}

func foundTo(f workspace.Found) *pb.SearchResponse {
	to := &pb.SearchResponse{
		Missing: texts[[]byte](f.Missing), Folders: f.Folders, Count: f.Count, Puts: f.Puts,
		Problems: int64(f.Problems), Problem: []byte(f.Problem),
	}
	for _, g := range f.Groups {
		group := &pb.SearchResponse_Group{Name: []byte(g.Name), Count: g.Count}
		for _, it := range g.Items {
			group.Items = append(group.Items, &pb.SearchResponse_Item{Text: []byte(it.Text), Number: it.Number, Context: it.Context, Counts: it.Counts})
		}
		to.Groups = append(to.Groups, group)
	}
	return to
}

func foundOf(f *pb.SearchResponse) workspace.Found {
	of := workspace.Found{
		Missing: texts[string](f.GetMissing()), Folders: f.GetFolders(), Count: f.GetCount(), Puts: f.GetPuts(),
		Problems: clamp(f.GetProblems()), Problem: brief(string(f.GetProblem())),
	}
	for _, g := range f.GetGroups() {
		group := workspace.Group{Name: string(g.GetName()), Count: g.GetCount()}
		for _, it := range g.GetItems() {
			group.Items = append(group.Items, workspace.Item{Text: string(it.GetText()), Number: it.GetNumber(), Context: it.GetContext(), Counts: it.GetCounts()})
		}
		of.Groups = append(of.Groups, group)
	}
	return of
}
