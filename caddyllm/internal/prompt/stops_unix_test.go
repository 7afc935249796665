//go:build unix

package prompt

import (
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"
)

// The page before a text and the page behind it can't be read: to try ends the test.
func TestNothingIsReadAroundAText(t *testing.T) {
	page := unix.Getpagesize()
	memory, err := unix.Mmap(-1, 0, 3*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(memory); err != nil {
			t.Error(err)
		}
	})
	for _, guard := range [][]byte{memory[:page], memory[2*page:]} {
		if err := unix.Mprotect(guard, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	middle := memory[page : 2*page : 2*page]
	r := rand.New(rand.NewPCG(11, 11))
	for n := range 201 {
		for _, text := range [][]byte{middle[:n:n], middle[page-n:]} {
			copy(text, someText(r, n))
			agree(t, text, uint64(n)&1)
		}
	}
	for _, body := range seeds {
		text := middle[page-len(body):]
		copy(text, body)
		var s Scanner
		s.Scan(Chat, text, true, block)
		s.Scan(Chat, text, false, block)
	}
}
