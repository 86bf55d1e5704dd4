package confine

const seccomp = 277

// abis are the calls of programs for 64 bits: bpf, add_key, request_key, keyctl,
// open_by_handle_at, kexec_load, kexec_file_load, init_module, finit_module, delete_module,
// reboot, swapon, swapoff, acct, quotactl, mq_unlink. Programs for 32 bits do not run.
var abis = []abi{{
	arch: 0xc00000b7, ioctl: 29, prlimit: 261, socket: 198,
	forbidden: []uint32{280, 217, 218, 219, 265, 104, 294, 105, 273, 106, 142, 224, 225, 89, 60, 181},
}}
