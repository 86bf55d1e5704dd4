package bridge

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"

	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

// filled returns a value with every field set, so that a test notices a field that is
// not converted.
func filled[T any](t *testing.T) T {
	t.Helper()
	v := new(T)
	n := 0
	set(t, reflect.ValueOf(v).Elem(), &n)
	return *v
}

func set(t *testing.T, v reflect.Value, n *int) {
	t.Helper()
	*n++
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Unix(1_800_000_000+int64(*n), int64(*n)).Local()))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("text " + string(rune('a'+*n)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Uint16, reflect.Uint32:
		v.SetUint(uint64(*n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		set(t, v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			set(t, v.Index(i), n)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			set(t, v.Field(i), n)
		}
	default:
		t.Fatalf("no value for a %v", v.Type())
	}
}

// same checks that a value does not change when it is converted to the wire and back, but
// for fields that stay here.
func same[T any, M proto.Message](t *testing.T, to func(T) M, of func(M) T, here ...string) {
	t.Helper()
	for _, want := range []T{filled[T](t), *new(T)} {
		data, err := proto.Marshal(to(want))
		if err != nil {
			t.Fatal(err)
		}
		m := to(*new(T))
		proto.Reset(m)
		if err := proto.Unmarshal(data, m); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, of(m), ignored[T](here)); diff != "" {
			t.Errorf("%T changes on the wire (-here +there):\n%s", want, diff)
		}
	}
}

func ignored[T any](fields []string) cmp.Option {
	if len(fields) == 0 {
		return nil
	}
	return cmpopts.IgnoreFields(*new(T), fields...)
}

// How a command is confined is said on the machine that it runs on: a workspace elsewhere
// confines none, and no engine can tell it how. It has no pipes either.
func TestEveryFieldIsConverted(t *testing.T) {
	same(t, processTo, processOf, "Profile", "Pipe")
	same(t, specTo, specOf, "Root", "Repository", "Writable", "Profile", "Free", "Pipe")
	same(t, chunkTo, chunkOf)
	same(t, inputTo, inputOf)
	same(t, sizeTo, sizeOf)
	same(t, pathTo, pathOf)
	same(t, func(r process.ReadRequest) *pb.OutputRequest { return readTo(nil, r) }, readOf)
	same(t, func(c process.TruncationInfo) *pb.ViewResponse_Truncation { return truncationTo(&c) },
		func(m *pb.ViewResponse_Truncation) process.TruncationInfo { return *truncationOf(m) })
	spec := specOf(specTo(process.Spec{Env: []string{}}))
	if spec.Env == nil {
		t.Error("an empty environment became the workspace's")
	}
	for _, k := range kinds {
		info := workspace.Info{Name: "\xff", Mode: k.mode | 0o751, Size: 5, ModTime: time.Unix(7, 8).Local()}
		if diff := cmp.Diff(info, infoOf(infoTo(info))); diff != "" {
			t.Errorf("a file changes on the wire:\n%s", diff)
		}
	}
}

func TestErrorsKeepTheirMeaning(t *testing.T) {
	for _, r := range reasons {
		for _, other := range reasons {
			if r.name == other.name && r.err != other.err {
				t.Errorf("%s is both %v and %v", r.name, r.err, other.err)
			}
		}
		if got := errorFor(&pb.Reason{Name: r.name}); got != r.err {
			t.Errorf("%s means %v, want %v", r.name, got, r.err)
		}
	}
}

// FuzzMessages checks that values from any message do not change when they are sent
// again.
func FuzzMessages(f *testing.F) {
	for _, m := range []proto.Message{
		specTo(process.Spec{Key: "k", Owner: "o", Command: "c", Env: []string{"A=b"}, TTY: &process.Size{Rows: 1, Cols: 2}, Limits: process.Limits{Time: time.Hour}}),
		processTo(process.Info{ID: "i", Exit: &process.Exit{Code: 1}, Survivors: []int{4}, Started: time.Unix(1, 2)}),
		chunkTo(process.Chunk{Data: []byte("d"), Runs: []process.Run{{Stream: 1, Offset: 3, Len: 1, Time: time.Unix(3, 4)}}}),
		infoTo(workspace.Info{Name: "n", Mode: 0o644}),
		&pb.ListDirRequest{Path: pathTo(workspace.Below("r", "n")), Offset: -1, Limit: 1 << 62},
		&pb.OutputRequest{Offset: -1, Limit: 1 << 40, Stream: 77},
		&pb.NotStarted{Id: "i", Reason: []byte("r")},
		&pb.CapReached{What: "w", Has: 1, Cap: 2},
		&pb.Reason{Name: "exist"},
	} {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		stable(t, data, new(pb.Spec), specTo, specOf)
		stable(t, data, new(pb.Process), processTo, processOf)
		stable(t, data, new(pb.OutputResponse), chunkTo, chunkOf)
		stable(t, data, new(pb.FileInfo), infoTo, infoOf)
		stable(t, data, new(pb.Path), pathTo, pathOf)
		stable(t, data, new(pb.WriteOptions), optionsTo, optionsOf)
		for _, m := range []proto.Message{new(pb.NotStarted), new(pb.CapReached), new(pb.Reason)} {
			if proto.Unmarshal(data, m) == nil {
				_ = errorFor(m)
			}
		}
		var list pb.ListDirRequest
		if proto.Unmarshal(data, &list) == nil && clamp(list.GetLimit()) < 0 {
			t.Errorf("the limit %d became %d", list.GetLimit(), clamp(list.GetLimit()))
		}
	})
}

func stable[T any, M proto.Message](t *testing.T, data []byte, m M, to func(T) M, of func(M) T) {
	t.Helper()
	if proto.Unmarshal(data, m) != nil {
		return
	}
	once := of(m)
	if twice := of(to(once)); !reflect.DeepEqual(once, twice) {
		t.Errorf("%T: %+v became %+v", m, once, twice)
	}
}
