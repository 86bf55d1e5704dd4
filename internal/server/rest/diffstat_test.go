package rest

import "testing"

// What looks like the head of a file within a hunk is a line of the file.
func TestDiffstat(t *testing.T) {
	const first = "diff --git a/x.c b/x.c\n--- a/x.c\n+++ b/x.c\n@@ -1,3 +1,3 @@ main\n same\n--- i;\n+++ i;\n-old\n+new\n\\ No newline at end of file\n"
	for _, test := range []struct {
		about, diff string
		want        Diffstat
	}{
		{"one file", first, Diffstat{Files: 1, Added: 2, Removed: 2}},
		{"two files", first + "--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", Diffstat{Files: 2, Added: 3, Removed: 3}},
		{"a hunk that was cut", "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n+a\ndiff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -0,0 +1 @@\n+b\n", Diffstat{Files: 2, Added: 2}},
		{"no hunk", "+a\n-b\n", Diffstat{Files: 1, Added: 1, Removed: 1}},
	} {
		if got := *diffstat(test.diff); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.about, got, test.want)
		}
	}
}
