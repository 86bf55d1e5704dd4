package confine

const seccomp = 317

// abis are the calls of programs for 64 and for 32 bits: bpf, add_key, request_key, keyctl,
// open_by_handle_at, kexec_load, kexec_file_load, init_module, finit_module, delete_module,
// reboot, swapon, swapoff, acct, quotactl, mq_unlink.
var abis = []abi{
	{
		arch: 0xc000003e, x32: true, ioctl: 16, prlimit: 302, socket: 41,
		forbidden: []uint32{321, 248, 249, 250, 304, 246, 320, 175, 313, 176, 169, 167, 168, 163, 179, 241},
	},
	{
		arch: 0x40000003, ioctl: 54, prlimit: 340, socket: 359, socketcall: 102,
		forbidden: []uint32{357, 286, 287, 288, 342, 283, 128, 350, 129, 88, 87, 115, 51, 131, 278},
	},
}
