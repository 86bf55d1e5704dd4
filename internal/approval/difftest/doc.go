// Package difftest holds what rules allow against what real shells do.
//
// It has tests only. They run scripts in a sandbox, a chroot in namespaces of its own, in
// which every program but bash and dash is a recorder: it notes by which path it was
// executed, its arguments, directory, environment and open files, and does nothing else.
//
//   - A script that is read as a plain one, run by bash as it was written, executes
//     exactly the words that were judged, in every branch that it takes; nothing else
//     is executed, no variable or directory differs, and no file is changed but those
//     that judged redirections name.
//   - The same holds for the text that is made from the judged words, which is the one
//     that is run, with bash and with dash.
//
// The scripts are mutations of command lines, from a seed. ABIDE_SCRIPTS is the number of
// judged scripts to run, and ABIDE_SEED the seed. Where there are no user namespaces, the
// tests are skipped with a line that says so, unless ABIDE_REQUIRE contains namespaces.
package difftest
