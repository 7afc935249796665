//go:build !purego

#include "textflag.h"

// Go's order of operands: what is written comes last. ANDNQ a, b, c is c = a &^ b.

// By the lower half of a byte, 0 to 15, the canonical letter that ends so, lowest
// byte first: b at 2, t at 4, f at 6, the backslash at 12, n at 14. For r, at 2 too,
// and for the quote there are looks of their own. The others are bytes that end
// otherwise, so that nothing is equal to them.
DATA letter<>+0(SB)/8, $0x00660074006200ff
DATA letter<>+8(SB)/8, $0x006e005c00000000
GLOBL letter<>(SB), RODATA|NOPTR, $16

DATA sought<>+0(SB)/8, $0x000000000072225c // \ " r
GLOBL sought<>(SB), RODATA|NOPTR, $8

// func lookVectors(text []byte, at int, carry uint64) (stop stops)
TEXT ·lookVectors(SB), NOSPLIT, $0-72
	MOVQ           text_base+0(FP), SI
	MOVQ           text_len+8(FP), CX
	MOVQ           at+24(FP), DI
	MOVQ           carry+32(FP), R8
	SUBQ           $64, CX                      // where the last whole stride may begin; below 0 if there is none
	VPBROADCASTB   sought<>+0(SB), Y4           // 32 backslashes
	VPBROADCASTB   sought<>+1(SB), Y5           // 32 quotes
	VPBROADCASTB   sought<>+2(SB), Y6           // 32 times r
	VBROADCASTI128 letter<>(SB), Y7             // the table, once for each half
	MOVQ           $0x5555555555555555, R9      // evens
	JMP            bound

next:
	ADDQ $64, DI

bound:
	CMPQ DI, CX
	JGT  none

	// Bytes that are equal become 0xff, others 0. Of that one bit each is taken.
	VMOVDQU   (SI)(DI*1), Y0   // Y0, Y1: the stride
	VMOVDQU   32(SI)(DI*1), Y1
	VPCMPEQB  Y0, Y4, Y2
	VPCMPEQB  Y1, Y4, Y3
	VPMOVMSKB Y2, AX
	VPMOVMSKB Y3, BX
	SHLQ      $32, BX
	ORQ       BX, AX           // AX: backslashes
	VPCMPEQB  Y0, Y5, Y2
	VPCMPEQB  Y1, Y5, Y3
	VPMOVMSKB Y2, DX
	VPMOVMSKB Y3, BX
	SHLQ      $32, BX
	ORQ       BX, DX           // DX: quotes
	MOVQ      AX, BX
	ORQ       DX, BX
	ORQ       R8, BX
	JZ        next             // nothing here, and nothing escaped from before

	VPSHUFB   Y0, Y7, Y2       // each byte's letter by the table; 0 for those from 0x80 on
	VPSHUFB   Y1, Y7, Y3
	VPCMPEQB  Y0, Y2, Y2       // is it the byte?
	VPCMPEQB  Y1, Y3, Y3
	VPCMPEQB  Y0, Y6, Y0       // or is it r?
	VPCMPEQB  Y1, Y6, Y1
	VPOR      Y0, Y2, Y2
	VPOR      Y1, Y3, Y3
	VPMOVMSKB Y2, R10
	VPMOVMSKB Y3, BX
	SHLQ      $32, BX
	ORQ       BX, R10
	ORQ       DX, R10          // R10: letters of canonical escapes, wherever they stand

	// As in behindRuns.
	ANDNQ AX, R8, AX           // AX: backslashes, but for one that is escaped from before
	LEAQ  (R8)(AX*2), R11      // R11: what follows a backslash
	ANDNQ AX, R9, BX
	ANDNQ BX, R11, BX          // BX: those that begin a row at an odd place
	XORL  R8, R8
	ADDQ  AX, BX               // carries through their rows, and out of the stride
	ADCQ  $0, R8               // R8: whether it did
	ADDQ  BX, BX
	XORQ  R9, BX
	ANDQ  R11, BX              // BX: what is escaped
	ANDNQ BX, R10, R10         // R10: where no canonical letter is
	ANDNQ DX, BX, DX           // DX: quotes that aren't escaped
	MOVQ  DX, BX
	ORQ   R10, BX
	JZ    next
	JMP   done

none:
	XORL DX, DX
	XORL R10, R10

done:
	MOVQ DI, stop_at+40(FP)
	MOVQ DX, stop_quotes+48(FP)
	MOVQ R10, stop_odd+56(FP)
	MOVQ R8, stop_carry+64(FP)
	VZEROUPPER                 // older instructions would be slow otherwise
	RET
