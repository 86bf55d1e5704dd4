package cgroup

import "testing"

func TestTheFolderOfAGroupIsFound(t *testing.T) {
	const (
		one   = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
		two   = "41 31 0:38 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
		part  = "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
		noise = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\nnonsense\n22 1 8:1 / / rw - ext4 /dev/root rw\n"
	)
	for name, tt := range map[string]struct{ mounts, groups, want string }{
		"version 1":                 {noise + one, "4:cpu,memory:/a/b\n0::/\n", "/sys/fs/cgroup/memory/a/b"},
		"version 1, at the top":     {one, "4:memory:/\n", "/sys/fs/cgroup/memory"},
		"version 2":                 {noise + two, "0::/user.slice/x.scope\n", "/sys/fs/cgroup/user.slice/x.scope"},
		"a part of a hierarchy":     {part, "4:memory:/docker/abc/d\n", "/sys/fs/cgroup/memory/d"},
		"another part":              {part, "4:memory:/docker/abcd\n", ""},
		"outside of the namespace":  {two, "0::/../x\n", ""},
		"a name with colons":        {two, "0::/a:b\n", "/sys/fs/cgroup/a:b"},
		"no hierarchy":              {noise, "0::/\n", ""},
		"no group in the hierarchy": {one, "3:cpu:/\n", ""},
		"nothing":                   {"", "", ""},
	} {
		got := ""
		for _, m := range memoryMounts([]byte(tt.mounts)) {
			if own, ok := ownGroup([]byte(tt.groups), m.version); ok {
				got, _ = m.folder(own)
			}
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestCountersAreRead(t *testing.T) {
	for text, want := range map[string]int{
		"low 0\noom 7\noom_kill 3\n": 3, "oom_kill_disable 1\nunder_oom 0\noom_kill 12\n": 12,
		"oom_kill 0\n": 0, "oom_group_kill 5\n": 0, "": 0,
	} {
		if got := counter([]byte(text), "oom_kill"); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
