package bridge

import (
	"io/fs"
	"math"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/abide-run/abide/internal/workspace"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

func pathOf(p *pb.Path) workspace.Path {
	return workspace.Path{Root: string(p.GetRoot()), Name: string(p.GetName())}
}

func pathTo(p workspace.Path) *pb.Path { return &pb.Path{Root: []byte(p.Root), Name: []byte(p.Name)} }

func optionsOf(o *pb.WriteOptions) workspace.WriteOptions {
	return workspace.WriteOptions{New: o.GetNew(), Perm: fs.FileMode(o.GetPermissions()).Perm()}
}

func optionsTo(o workspace.WriteOptions) *pb.WriteOptions {
	return &pb.WriteOptions{New: o.New, Permissions: uint32(o.Perm.Perm())}
}

// clamp converts a number from the wire to an int from 0 to the maximum of an int32.
func clamp(n int64) int { return int(max(min(n, math.MaxInt32), 0)) }

// kinds pairs the types of files with their names on the wire.
var kinds = []struct {
	mode fs.FileMode
	kind pb.FileInfo_Kind
}{
	{0, pb.FileInfo_KIND_FILE},
	{fs.ModeDir, pb.FileInfo_KIND_FOLDER},
	{fs.ModeSymlink, pb.FileInfo_KIND_LINK},
	{fs.ModeNamedPipe, pb.FileInfo_KIND_PIPE},
	{fs.ModeSocket, pb.FileInfo_KIND_SOCKET},
	{fs.ModeDevice | fs.ModeCharDevice, pb.FileInfo_KIND_CHARACTER_DEVICE},
	{fs.ModeDevice, pb.FileInfo_KIND_BLOCK_DEVICE},
}

func kindTo(mode fs.FileMode) pb.FileInfo_Kind {
	for _, k := range kinds {
		if k.mode == mode.Type() {
			return k.kind
		}
	}
	return pb.FileInfo_KIND_OTHER
}

func typeOf(kind pb.FileInfo_Kind) fs.FileMode {
	for _, k := range kinds {
		if k.kind == kind {
			return k.mode
		}
	}
	return fs.ModeIrregular
}

func infoTo(i workspace.Info) *pb.FileInfo {
	return &pb.FileInfo{
		Name: []byte(i.Name), Kind: kindTo(i.Mode), Permissions: uint32(i.Mode.Perm()), Size: i.Size,
		Modified: timestamppb.New(i.ModTime),
	}
}

func infoOf(i *pb.FileInfo) workspace.Info {
	return workspace.Info{
		Name: string(i.GetName()), Mode: typeOf(i.GetKind()) | fs.FileMode(i.GetPermissions()).Perm(), Size: i.GetSize(),
		ModTime: i.GetModified().AsTime().Local(),
	}
}
