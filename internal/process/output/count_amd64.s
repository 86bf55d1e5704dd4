#include "textflag.h"

// func countBlocks(p []byte) int64
//
// A comparison leaves -1 in every byte that is a line break. The four of a block
// are added up and summed horizontally.
TEXT ·countBlocks(SB), NOSPLIT, $0-32
	MOVQ p_base+0(FP), SI
	MOVQ p_len+8(FP), CX
	MOVQ $0x0a0a0a0a0a0a0a0a, AX
	MOVQ AX, X0
	PUNPCKLQDQ X0, X0
	PXOR X6, X6 // zero
	PXOR X7, X7 // the two halves of the count

next:
	CMPQ CX, $64
	JLT  done
	MOVOU (SI), X1
	MOVOU 16(SI), X2
	MOVOU 32(SI), X3
	MOVOU 48(SI), X4
	PCMPEQB X0, X1
	PCMPEQB X0, X2
	PCMPEQB X0, X3
	PCMPEQB X0, X4
	PADDB X2, X1
	PADDB X4, X3
	PADDB X3, X1
	PXOR X5, X5
	PSUBB X1, X5 // 0 to 4 in every byte
	PSADBW X6, X5
	PADDQ X5, X7
	ADDQ $64, SI
	SUBQ $64, CX
	JMP next

done:
	MOVQ X7, AX
	PSHUFD $0xee, X7, X7
	MOVQ X7, DX
	ADDQ DX, AX
	MOVQ AX, ret+24(FP)
	RET
